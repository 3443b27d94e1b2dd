"""What a page needs to draw its charts itself: the drawings, the library that draws them, and a script.

All of it stands in the page, compressed, so that nothing is fetched. The library evaluates no text as a program.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import vl_convert
from markupsafe import Markup

from portrayal.report.charts.counterbias_specs import DARK
from portrayal.report.charts.forest import height
from portrayal.report.charts.panel import Panel
from portrayal.report.page.embedded import compressed, hash_of, packed, template_text

_LICENCES = (
    "The charts are drawn by Vega, Vega-Lite and Vega-Embed (BSD 3-Clause, University of Washington Interactive Data "
    "Lab) with D3 (ISC, Mike Bostock) inside them: https://vega.github.io."
)
_OWN = ("$schema", "background")  # the page has its own paper, and the library is of one version


@cache
def library() -> str:
    """Made once, since it takes seconds."""
    made: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # all of it, where nothing is asked for
    return compressed(made)


class Plots:
    """The drawings of one page, each with a place in it."""

    def __init__(self, panels: Iterable[Panel]) -> None:
        self._panels = list(panels)
        self._places = {id(panel): place for place, panel in enumerate(self._panels)}

    def __bool__(self) -> bool:
        return bool(self._panels)

    @property
    def sources(self) -> str:
        """What the content security policy lets run for them: the one script, and the library that it unpacks."""
        return f" '{hash_of(template_text('charts.js'))}' blob:" if self else ""

    def place(self, panel: Panel) -> Markup:
        """Where a drawing will stand, and what it shows in words."""
        return Markup(
            '<div class="plot" role="img" data-chart="{}" data-height="{}" aria-label="{}"></div>'
        ).format(self._places[id(panel)], height(panel.spec), panel.alt)

    def scripts(self) -> Markup:
        """Nothing where a page has no chart."""
        if not self:
            return Markup("")
        specs = [{k: v for k, v in panel.spec.items() if k not in _OWN} for panel in self._panels]
        data: dict[str, Any] = {"specs": specs, "dark": DARK}
        return Markup(
            "<!-- {} -->\n"
            '<script type="text/plain" id="charts-library">{}</script>\n'
            '<script type="text/plain" id="charts">{}</script>\n'
            "<script>{}</script>"
        ).format(_LICENCES, library(), packed(data), Markup(template_text("charts.js")))
