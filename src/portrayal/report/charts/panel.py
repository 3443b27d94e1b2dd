"""Charts: panels with a text summary each, and an explanation of how to read them."""

from __future__ import annotations

from dataclasses import dataclass

import vl_convert

from portrayal.report.charts.vega import Spec

IN_PAGE_TABLES = "The tables on this page have the strongest of these numbers, results.json has all."


@dataclass(frozen=True)
class Panel:
    """One plot of a chart, such as that of one model or one term."""

    name: str
    summary: str  # the main numbers in one or two sentences
    spec: Spec
    data_note: str = IN_PAGE_TABLES  # where the reader finds the same numbers as text

    @property
    def alt(self) -> str:
        """The alternative text of the plot."""
        return f"{self.summary} {self.data_note}".strip()

    def svg(self) -> str:
        """The plot as SVG without scripts, in which names are plain text."""
        svg: str = vl_convert.vegalite_to_svg(self.spec)
        return svg


@dataclass(frozen=True)
class Chart:
    """One or more panels with a title."""

    title: str
    explanation: str  # how to read it, and what is not drawn
    panels: tuple[Panel, ...]
