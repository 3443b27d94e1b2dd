"""Rates of one thing given another, added up image by image: how often a word stands where an object goes unnamed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from portrayal.stats.rates import wilson_of_spread


class Rate(NamedTuple):
    """The rate of the most usual other word, with its interval."""

    other: str
    value: float
    low: float
    high: float
    cases: float


@dataclass
class Rates:
    """Sums over images of cases, of hits, and of the products that an interval needs."""

    cases: dict[str, list[float]] = field(default_factory=dict)  # sum, sum of squares, images
    hits: dict[str, dict[str, list[float]]] = field(
        default_factory=dict
    )  # sum, of squares, of products with cases

    def add(self, cases: Mapping[str, float], hits: Mapping[tuple[str, str], float]) -> None:
        """One image: in which share of its captions something is the case, and in which share it is so with another."""
        for name, share in cases.items():
            _add(self.cases.setdefault(name, [0.0, 0.0, 0.0]), (share, share * share, 1.0))
        for (name, other), share in hits.items():
            sums = self.hits.setdefault(name, {}).setdefault(other, [0.0, 0.0, 0.0])
            _add(sums, (share, share * share, share * cases[name]))

    def merge(self, more: Rates) -> None:
        for name, sums in more.cases.items():
            _add(self.cases.setdefault(name, [0.0, 0.0, 0.0]), sums)
        for name, others in more.hits.items():
            for other, sums in others.items():
                _add(self.hits.setdefault(name, {}).setdefault(other, [0.0, 0.0, 0.0]), sums)

    def labels(self, least: float) -> list[str]:
        """What is the case often enough."""
        return sorted(name for name, (total, _, _) in self.cases.items() if total >= least - 1e-9)

    def most_usual(self, name: str) -> Rate | None:
        """The other word that goes with it most often; None where none does."""
        others = self.hits.get(name)
        if not others:
            return None
        other = min(others, key=lambda word: (-others[word][0], word))
        return self.rate(name, other)

    def rate(self, name: str, other: str) -> Rate:
        total, squares, images = self.cases[name]
        hits, hit_squares, products = self.hits.get(name, {}).get(other, [0.0, 0.0, 0.0])
        share = min(hits / total, 1.0)
        spread = max(hit_squares - 2 * share * products + share * share * squares, 0.0)
        low, high = wilson_of_spread(share, spread, total, min(images, total))
        return Rate(other, share, low, high, total)


def _add(sums: list[float], more: tuple[float, ...] | list[float]) -> None:
    for place, number in enumerate(more):
        sums[place] += number
