"""Conditional rates, summed image by image: how often a word occurs where an object goes unnamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from portrayal.stats.rates import wilson_of_spread


class ConditionalRate(NamedTuple):
    """The rate of another word among the cases, with its confidence interval."""

    other: str
    value: float
    low: float
    high: float
    cases: float


@dataclass
class ConditionalRates:
    """Sums over images of cases and hits, and the sums of products that confidence intervals need."""

    cases: dict[str, list[float]] = field(default_factory=dict)  # sum, sum of squares, images
    # sum, sum of squares, sum of products with cases
    hits: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, cases: Mapping[str, float], hits: Mapping[tuple[str, str], float]) -> None:
        """Add one image.

        Parameters
        ----------
        cases
            Name -> share of the image's captions that are a case.
        hits
            (name, other word) -> share of the image's captions that are a case and have the word.
        """
        for name, share in cases.items():
            _add_to(self.cases.setdefault(name, [0.0, 0.0, 0.0]), (share, share * share, 1.0))
        for (name, other), share in hits.items():
            sums = self.hits.setdefault(name, {}).setdefault(other, [0.0, 0.0, 0.0])
            _add_to(sums, (share, share * share, share * cases[name]))

    def merge(self, more: ConditionalRates) -> None:
        for name, sums in more.cases.items():
            _add_to(self.cases.setdefault(name, [0.0, 0.0, 0.0]), sums)
        for name, others in more.hits.items():
            for other, sums in others.items():
                _add_to(self.hits.setdefault(name, {}).setdefault(other, [0.0, 0.0, 0.0]), sums)

    def names_with_cases(self, min_cases: float) -> list[str]:
        """The names that have at least so many cases."""
        return sorted(name for name, (total, _, _) in self.cases.items() if total >= min_cases - 1e-9)

    def most_frequent(self, name: str) -> ConditionalRate | None:
        """The rate of the other word that occurs most often among the cases; None where no word does."""
        others = self.hits.get(name)
        if not others:
            return None
        other = min(others, key=lambda word: (-others[word][0], word))
        return self.rate(name, other)

    def rate(self, name: str, other: str) -> ConditionalRate:
        total, squares, images = self.cases[name]
        hits, hit_squares, products = self.hits.get(name, {}).get(other, [0.0, 0.0, 0.0])
        share = min(hits / total, 1.0)
        spread = max(hit_squares - 2 * share * products + share * share * squares, 0.0)
        low, high = wilson_of_spread(share, spread, total, min(images, total))
        return ConditionalRate(other, share, low, high, total)


def _add_to(sums: list[float], more: tuple[float, ...] | list[float]) -> None:
    for index, number in enumerate(more):
        sums[index] += number
