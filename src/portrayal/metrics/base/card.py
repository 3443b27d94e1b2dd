"""The card of a metric: its question, formula, terms, references and caveats.

The list of metrics, the documentation and the report are generated from cards, so they stay in line with the code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from portrayal.statements import Statement


@dataclass(frozen=True)
class Term:
    """One number that a metric reports."""

    name: str
    meaning: str
    unit: str
    # "lower", "higher", or "closer" to the ideal; None where neither end is good in itself.
    better: str | None = None
    ideal: float | None = None
    # Items that have a row of their own in every study.
    items: tuple[str, ...] = ()
    # Whether the expected value depends on the number of images, so that studies of different sizes give different
    # values for the same system. "searched": it depends on all images that are searched, not on those measured.
    depends_on_n: bool | Literal["searched"] = False


@dataclass(frozen=True)
class TermRule:
    """The rule of one term, where several measurements share a card: what is counted, its origin and caveats."""

    term: str
    rule: str
    origin: tuple[str, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """Description of a metric."""

    name: str
    title: str
    question: str
    formula: str
    range: str
    # Required inputs: captions, references, attributes, objects, rankings, images; or "model", named by the user.
    needs: tuple[str, ...]
    paper: str
    caveats: tuple[str, ...]
    terms: tuple[Term, ...]
    # The question of an audit that it answers (`portrayal.questions`).
    answers: str = "other"
    # Rules of terms that are measurements of their own.
    parts: tuple[TermRule, ...] = ()
    # Whether tables have a row per term and a column per system, for metrics with many terms.
    by_term: bool = False
    # Sentences that the report can make from its numbers.
    statements: tuple[Statement, ...] = ()
    # Optional inputs that add numbers.
    uses: tuple[str, ...] = ()
    # A term of a system and a term of human captions whose captions the page shows side by side.
    side_by_side: tuple[str, str] | None = None
    # Validation in the lab: term -> the dial that it must follow, and the dials that must not move it. "@one" after a
    # term or a dial: for one group only; "@object" after a term: for that group and an object associated with it;
    # "@" and one of its items: for that item; "-" before a dial: the term decreases as the dial increases.
    responds_to: dict[str, str] = field(default_factory=dict)
    should_ignore: tuple[str, ...] = ()
    # Whether it fits a model on the study, so that its numbers depend on the amount of training data.
    fits_model: bool = False
    # Cautions about a study that apply to some of its terms: subject of the caution (`study.cautions`) -> the terms.
    caution_terms: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Why a term fails its validation in the lab: term -> the reason.
    lab_notes: dict[str, str] = field(default_factory=dict)

    def term(self, name: str) -> Term:
        """The term of this name."""
        return next(term for term in self.terms if term.name == name)

    def parse_claim(self, claim: str) -> tuple[str, str]:
        """The term and the scope of a claim ("z@one": z, one); the name of a term may contain an "@" (tr@1)."""
        name, _, scope = (
            (claim, "", "") if claim in {term.name for term in self.terms} else claim.rpartition("@")
        )
        return (name, scope) if name else (scope, "")

    def as_dict(self) -> dict[str, Any]:
        """The card as it is written into results files."""
        return asdict(self)
