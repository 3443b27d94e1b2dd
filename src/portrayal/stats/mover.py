"""The confidence interval of a difference, made from the intervals of the two numbers (MOVER)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import ndtr, ndtri

from portrayal.stats.resample import LEVEL
from portrayal.stats.significance import LEAST_P, bounded_p


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def p(self, null: float = 0.0) -> float:
        """Two-sided p against `null`, from how far the bound that faces it is away: .05 where the bound reaches it.

        >>> round(Interval(2.0, 0.0, 4.0).p(), 3)
        0.05
        """
        distance = self.value - null
        if distance == 0:
            return 1.0
        half = self.value - self.low if distance > 0 else self.high - self.value
        if half <= 0:  # no uncertainty was left in the interval
            return LEAST_P
        return bounded_p(float(2 * ndtr(-abs(distance) / half * ndtri((1 + LEVEL) / 2))))

    def simultaneous(self, comparisons: int) -> Interval:
        """Wider, so that the intervals of so many comparisons hold all at once (Bonferroni).

        >>> Interval(2.0, 0.0, 4.0).simultaneous(1).low
        0.0
        >>> round(Interval(2.0, 0.0, 4.0).simultaneous(3).low, 3)
        -0.443
        """
        if comparisons == 1:
            return self
        factor = float(ndtri(1 - (1 - LEVEL) / 2 / comparisons) / ndtri((1 + LEVEL) / 2))
        return Interval(
            self.value,
            self.value - factor * (self.value - self.low),
            self.value + factor * (self.high - self.value),
        )


def difference(a: Interval, b: Interval) -> Interval:
    """a - b of two independent numbers, by the method of variance estimates recovery (Zou and Donner 2008).

    It needs nothing but the two intervals, and is as asymmetric as they are. Of two Wilson intervals it is Newcombe's
    hybrid score interval. Where the numbers are positively correlated, it is wider than need be.

    >>> made = difference(Interval(56 / 70, 0.6918, 0.8774), Interval(48 / 80, 0.4905, 0.7004))
    >>> [round(number, 3) for number in (made.value, made.low, made.high)]
    [0.2, 0.052, 0.334]
    """
    value = a.value - b.value
    return Interval(
        value,
        value - math.hypot(a.value - a.low, b.high - b.value),
        value + math.hypot(a.high - a.value, b.value - b.low),
    )
