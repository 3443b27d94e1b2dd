"""The card of one measurement of harm: what it counts, and whose rule that is."""

from __future__ import annotations

from dataclasses import dataclass

from portrayal.metrics.base.card import Part, Term


@dataclass(frozen=True)
class Rule:
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
    items: tuple[str, ...] = ()  # items that it always tells of
    verdicts: bool = (
        False  # whether its headline counts tests that pass, as more do where there are more images
    )

    @property
    def term(self) -> str:
        return f"{self.harm}.{self.name}"

    def as_term(self) -> Term:
        return Term(
            self.term, self.question, "share", self.better, items=self.items, depends_on_n=self.verdicts
        )

    def as_part(self) -> Part:
        return Part(
            self.term,
            self.rule,
            (f"Published: {self.published}", f"Reconstructed: {self.reconstructed}"),
            self.caveats,
        )
