"""A metric's card: what it asks, how it answers, and what the answer cannot say.

The list of metrics, the documentation and the page are made from cards, so none of them can drift from
the code.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from portrayal.statements import Statement


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
    items: tuple[str, ...] = ()  # that have a row of their own in every study
    # Whether its expected value changes with how many images there are, so that studies of other sizes give other
    # numbers of the same system: on those it rests on, or on all that are searched.
    depends_on_n: bool | Literal["searched"] = False


@dataclass(frozen=True)
class Part:
    """One of several measurements that share a card: what it counts, whose rule that is, what it cannot say."""

    term: str
    rule: str
    origin: tuple[str, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    name: str
    title: str
    question: str
    formula: str
    range: str
    # Of the study: captions, references, attributes, objects, rankings, pictures; or a model that somebody names.
    needs: tuple[str, ...]
    paper: str
    caveats: tuple[str, ...]
    terms: tuple[Term, ...]
    parts: tuple[Part, ...] = ()  # where its terms are measurements of their own
    by_term: bool = (
        False  # whether a table has a line per term and a column per system, as where terms are many
    )
    statements: tuple[Statement, ...] = ()  # what a page says of its numbers
    uses: tuple[str, ...] = ()  # tables that give more numbers where they are there
    # Two terms, of a system and of people, whose captions the page shows side by side.
    beside: tuple[str, str] | None = None
    # What the lab holds the metric against: term -> the dial it must follow, and the dials that must not move it.
    # "@one" after a term or a dial means: of one group only; "@object" after a term: of that group and an object that
    # leans to it; "@" and one of its items: of that item; "-" before a dial: the term falls as it is turned up.
    responds_to: dict[str, str] = field(default_factory=dict)
    should_ignore: tuple[str, ...] = ()
    # Whether its numbers depend on how much there is to learn from, so that their true value is that of one size.
    learns: bool = False
    # Cautions about a study that concern some of its terms: what the caution is about (`study.cautions`) -> the terms.
    cautioned: dict[str, tuple[str, ...]] = field(default_factory=dict)
    # Why a term does not hold what the lab asks, where it does not: term -> the reason.
    lab_notes: dict[str, str] = field(default_factory=dict)

    def term(self, name: str) -> Term:
        return next(term for term in self.terms if term.name == name)

    def claimed(self, claim: str) -> tuple[str, str]:
        """The term of a claim and of whom it speaks ("z@one": z, one); a term's own name may hold an "@" (tr@1)."""
        name, _, whom = (
            (claim, "", "") if claim in {term.name for term in self.terms} else claim.rpartition("@")
        )
        return (name, whom) if name else (whom, "")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
