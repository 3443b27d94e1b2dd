"""HTML views for notebooks: small, without scripts, and readable on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jinja2

from portrayal.errors import counted

MAX_ROWS = 15  # of a table in a view

# Text and lines take the notebook's colors. Jupyter's own rules for tables are overridden.
_STYLE = """
.portrayal-view { max-width: 64rem; line-height: 1.45; }
.portrayal-view p { margin: 0 0 .35rem; max-width: 50rem; overflow-wrap: anywhere; }
.portrayal-view .scroll { overflow-x: auto; margin: .4rem 0; }
.portrayal-view table { border-collapse: collapse; border: 0; margin: 0; font-variant-numeric: tabular-nums; }
.portrayal-view tr, .portrayal-view tbody tr:nth-child(odd), .portrayal-view tbody tr:hover { background: none; }
.portrayal-view th, .portrayal-view td { padding: .2rem .9rem .2rem 0; border: 0;
  border-bottom: 1px solid rgb(128 128 128 / .35); text-align: left; vertical-align: top; font-weight: normal; }
.portrayal-view thead th { font-weight: 600; white-space: nowrap; }
.portrayal-view .n { text-align: right; white-space: nowrap; }
.portrayal-view small, .portrayal-view .note { opacity: .75; font-size: .85em; }
.portrayal-view td small { display: block; }
.portrayal-view summary { cursor: pointer; }
"""


def render_view(
    template: str, values: Mapping[str, Any], filters: Mapping[str, Callable[..., str]] | None = None
) -> str:
    """Return the HTML of a view. Names and captions are untrusted: autoescaping makes all values text.

    >>> render_view("<p>{{ name }}</p>", {"name": "<b>"}).endswith("<p>&lt;b&gt;</p></div>")
    True
    """
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"counted": counted, **(filters or {})}
    content = environment.from_string(template).render(values)
    return f'<div class="portrayal-view"><style>{_STYLE}</style>{content}</div>'
