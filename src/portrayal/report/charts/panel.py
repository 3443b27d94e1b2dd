"""A chart on its way to a page or a file: drawings with their main numbers in words, and how to read them."""

from __future__ import annotations

from dataclasses import dataclass

import vl_convert

from portrayal.report.charts.counterbias_specs import Spec

ON_PAGE = "The tables on this page have the strongest of these numbers, results.json has all."


@dataclass(frozen=True)
class Panel:
    """One drawing: of one model or one term, or of several in one picture."""

    name: str
    about: str  # the main numbers, as a sentence or two
    spec: Spec
    elsewhere: str = ON_PAGE  # where the same numbers stand as text

    @property
    def alt(self) -> str:
        return f"{self.about} {self.elsewhere}".strip()

    def svg(self) -> str:
        """A drawing without scripts. Names of models and concepts are text in it and nothing else."""
        made: str = vl_convert.vegalite_to_svg(self.spec)
        return made


@dataclass(frozen=True)
class Chart:
    title: str
    reading: str  # how to read it, and what is left out
    panels: tuple[Panel, ...]
