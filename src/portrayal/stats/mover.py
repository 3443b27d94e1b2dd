"""The confidence interval of a difference, made from the intervals of the two numbers (MOVER)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from portrayal.stats.bootstrap import LEVEL, Array
from portrayal.stats.permutation import bounded_p


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def p(self, null: float = 0.0) -> float:
        """Two-sided p against `null`, from how far the bound that faces it is away: .05 where the bound reaches it.

        1 where the interval has no width on that side: that nothing varied does not say that nothing would.

        >>> round(Interval(2.0, 0.0, 4.0).p(), 3)
        0.05
        """
        distance = self.value - null
        if distance == 0:
            return 1.0
        half = self.value - self.low if distance > 0 else self.high - self.value
        if half <= 0:
            return 1.0
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


def difference(a: Interval, b: Interval, correlation: float = 0.0) -> Interval:
    """a - b of two numbers, by the method of variance estimates recovery (Zou and Donner 2008).

    It needs nothing but the two intervals and how far the numbers go together, and is as asymmetric as they are. Of two
    Wilson intervals it is Newcombe's hybrid score interval, and with a correlation that of paired shares.

    >>> made = difference(Interval(56 / 70, 0.6918, 0.8774), Interval(48 / 80, 0.4905, 0.7004))
    >>> [round(number, 3) for number in (made.value, made.low, made.high)]
    [0.2, 0.052, 0.334]
    >>> difference(Interval(5.0, 2.0, 8.0), Interval(1.0, -3.0, 5.0), correlation=-1.0).low  # 4 - (3 + 4)
    -3.0
    """
    value = a.value - b.value
    return Interval(
        value,
        value - _side(a.value - a.low, b.high - b.value, correlation),
        value + _side(a.high - a.value, b.value - b.low, correlation),
    )


def _side(first: float, second: float, correlation: float) -> float:
    return math.sqrt(max(0.0, first * first + second * second - 2 * correlation * first * second))


def correlation_of(a: Interval, b: Interval, draws_a: Array, draws_b: Array) -> float:
    """The correlation of two numbers from draws made with the same resamples.

    An interval may be wider than its draws (other seeds, captions that repeat each other): what makes it so is taken to
    be each number's own, as `paired_difference` does.
    """
    known = np.isfinite(draws_a) & np.isfinite(draws_b)
    if known.sum() < 2:
        return 0.0
    spreads = draws_a[known].std(ddof=1), draws_b[known].std(ddof=1)
    halves = (a.high - a.low) / 2, (b.high - b.low) / 2
    if min(*spreads, *halves) <= 0:
        return 0.0
    together = float(np.corrcoef(draws_a[known], draws_b[known])[0, 1])
    z = float(ndtri((1 + LEVEL) / 2))
    for spread, half in zip(spreads, halves, strict=True):
        together *= min(1.0, float(spread) / (half / z))
    return together if math.isfinite(together) else 0.0
