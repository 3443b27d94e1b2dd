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
    # Its name in tables of the command line, where another one says more.
    label: str = ""


@dataclass(frozen=True)
class TermRule:
    """The rule of one term, where several measurements share a card: what is counted, its origin and caveats."""

    term: str
    rule: str
    origin: tuple[str, ...]
    caveats: tuple[str, ...]


@dataclass(frozen=True)
class TradeOff:
    """The axis that a metric has in charts of bias against quality."""

    # Whether its terms stand for bias; else they stand for quality.
    is_bias: bool
    # Bias: the first of these terms that two points have is drawn. Quality: each term has a chart.
    terms: tuple[str, ...]
    # What the better end of the axis means: "more like human captions".
    direction: str
    # What a point is: a captioner, or a model trained with a method (in results with a metric of the layout "methods").
    points: Literal["captioners", "models"] = "captioners"
    # Settings of the numbers that are drawn; others are not.
    settings: dict[str, str] = field(default_factory=dict)
    # Settings that all points of a chart share. Models have a chart for each combination, captioners for the first.
    shared_settings: tuple[str, ...] = ()
    # Settings that the title of a chart (bias) or of its axis (quality) gives.
    titled_settings: tuple[str, ...] = ()


@dataclass(frozen=True)
class BeforeAfter:
    """What `mitigate captions` measures and reports of a metric, before and after."""

    # Rank among the metrics that it measures by default, which are those that have this description.
    order: int
    # Terms whose change is reported; empty: all.
    terms: tuple[str, ...] = ()
    # Terms that the command prints; empty: those of `terms`.
    printed: tuple[str, ...] = ()
    # Printed terms that are also printed for each group.
    printed_by_group: tuple[str, ...] = ()
    # Options of the metric that limit it to these terms.
    options: dict[str, Any] = field(default_factory=dict)
    # Options of the metric that the command has as well.
    offered_options: tuple[str, ...] = ()

    @property
    def printed_terms(self) -> tuple[str, ...]:
        """The terms that the command prints."""
        return self.printed or self.terms


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
    # Which charts and tables it has: "terms": those of any metric; "concepts": a model's bias toward each concept, of
    # which the evidence are prompts, not captions; "methods": methods that mitigate a model's bias.
    layout: Literal["terms", "concepts", "methods"] = "terms"
    # Terms that stand for it; empty: the term with its name if it has one, else the first.
    headline: tuple[str, ...] = ()
    # Its axis in charts of bias against quality.
    trade_off: TradeOff | None = None
    # What `mitigate captions` reports of it.
    before_after: BeforeAfter | None = None
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
