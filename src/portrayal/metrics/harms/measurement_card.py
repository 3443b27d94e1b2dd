"""The card of one measurement of harm: what it counts, and what of it is published."""

from __future__ import annotations

from dataclasses import dataclass

from portrayal.metrics.base.card import Term, TermRule


@dataclass(frozen=True)
class MeasurementCard:
    """What one measurement counts. `published` is what the paper says, `reconstructed` what it leaves open."""

    harm: str
    name: str
    question: str
    rule: str
    published: str
    reconstructed: str
    stages: tuple[str, ...]  # at which it is defined
    better: str | None = "lower"
    caveats: tuple[str, ...] = ()
    items: tuple[str, ...] = ()  # items that have rows in every study
    # Whether the headline counts significant tests. More images make more tests significant.
    counts_tests: bool = False
    label: str = ""  # as `Term.label`

    @property
    def term(self) -> str:
        return f"{self.harm}.{self.name}"

    def as_term(self) -> Term:
        return Term(
            self.term,
            self.question,
            "share",
            self.better,
            items=self.items,
            depends_on_n=self.counts_tests,
            label=self.label,
        )

    def as_rule(self) -> TermRule:
        return TermRule(
            self.term,
            self.rule,
            (f"Published: {self.published}", f"Reconstructed: {self.reconstructed}"),
            self.caveats,
        )
