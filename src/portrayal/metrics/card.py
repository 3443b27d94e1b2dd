"""A metric's card: what it asks, how it answers, and what the answer cannot say.

The list of metrics, the documentation and the page are made from cards, so none of them can drift from
the code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Term:
    """One number a metric gives."""

    name: str
    meaning: str
    unit: str
    better: str | None = (
        None  # "lower", "higher", "closer" to the ideal; None where neither end is good in itself
    )
    ideal: float | None = None


@dataclass(frozen=True)
class Card:
    name: str
    title: str
    question: str
    formula: str
    range: str
    needs: tuple[str, ...]  # tables of the study: captions, references, attributes, objects
    paper: str
    caveats: tuple[str, ...]
    terms: tuple[Term, ...]

    def term(self, name: str) -> Term:
        return next(term for term in self.terms if term.name == name)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
