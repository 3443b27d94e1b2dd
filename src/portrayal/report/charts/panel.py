"""A chart: panels with summaries in words, and an explanation of how to read them."""

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
    data_note: str = IN_PAGE_TABLES  # where the same numbers are as text

    @property
    def alt(self) -> str:
        return f"{self.summary} {self.data_note}".strip()

    def svg(self) -> str:
        """The plot as SVG without scripts. Names are plain text in it."""
        svg: str = vl_convert.vegalite_to_svg(self.spec)
        return svg


@dataclass(frozen=True)
class Chart:
    title: str
    explanation: str  # how to read it, and what it leaves out
    panels: tuple[Panel, ...]
