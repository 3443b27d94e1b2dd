"""Interactive charts of a page: their specifications, the Vega libraries, and the script that draws them.

Everything is embedded in the page and compressed, so that nothing is downloaded. Vega does not evaluate text as code.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import vl_convert
from markupsafe import Markup

from portrayal.report.charts.forest import chart_height
from portrayal.report.charts.panel import Panel
from portrayal.report.charts.vega import DARK_COLORS
from portrayal.report.page.embedded import compress, csp_hash, pack_json, read_template

_LICENCES = (
    "The charts are drawn by Vega, Vega-Lite and Vega-Embed (BSD 3-Clause, University of Washington Interactive Data "
    "Lab) with D3 (ISC, Mike Bostock) inside them: https://vega.github.io."
)
_DROPPED_KEYS = ("$schema", "background")  # keys of a specification that the page sets


@cache
def compressed_library() -> str:
    """The JavaScript libraries, compressed with gzip and encoded as base64. Cached, since bundling takes seconds."""
    library: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # without arguments: all
    return compress(library)


class Plots:
    """The charts of a page. Each has a placeholder element that the script replaces with the chart."""

    def __init__(self, panels: Iterable[Panel]) -> None:
        self._panels = list(panels)
        self._indices = {id(panel): index for index, panel in enumerate(self._panels)}

    def __bool__(self) -> bool:
        return bool(self._panels)

    @property
    def csp_sources(self) -> str:
        """The script sources for the content security policy: the script, and the library that it decompresses."""
        return f" '{csp_hash(read_template('charts.js'))}' blob:" if self else ""

    def placeholder(self, panel: Panel) -> Markup:
        """The HTML element in which a chart is drawn, labelled with its summary."""
        return Markup(
            '<div class="plot" role="img" data-chart="{}" data-height="{}" aria-label="{}"></div>'
        ).format(self._indices[id(panel)], chart_height(panel.spec), panel.alt)

    def scripts(self) -> Markup:
        """The HTML of the embedded data and scripts; empty if the page has no chart."""
        if not self:
            return Markup("")
        specs = [
            {key: value for key, value in panel.spec.items() if key not in _DROPPED_KEYS}
            for panel in self._panels
        ]
        data: dict[str, Any] = {"specs": specs, "dark": DARK_COLORS}
        return Markup(
            "<!-- {} -->\n"
            '<script type="text/plain" id="charts-library">{}</script>\n'
            '<script type="text/plain" id="charts">{}</script>\n'
            "<script>{}</script>"
        ).format(_LICENCES, compressed_library(), pack_json(data), Markup(read_template("charts.js")))
