"""The confidence interval of a difference from the intervals of two numbers (MOVER)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from portrayal.stats.bootstrap import LEVEL, Array
from portrayal.stats.p_values import floored_p


@dataclass(frozen=True)
class Interval:
    """A number with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def p(self, null: float = 0.0) -> float:
        """Two-sided p against `null`, from the bound that faces it: .05 where the bound equals `null`.

        1 where the interval has no width on that side, since the variation is then unknown."""
        distance = self.value - null
        if distance == 0:
            return 1.0
        half = self.value - self.low if distance > 0 else self.high - self.value
        if half <= 0:
            return 1.0
        return floored_p(float(2 * ndtr(-abs(distance) / half * ndtri((1 + LEVEL) / 2))))

    def simultaneous(self, comparisons: int) -> Interval:
        """The interval widened for simultaneous coverage of this many comparisons (Bonferroni)."""
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

    It uses only the two intervals and their correlation, and is as asymmetric as they are. For two Wilson intervals it
    is Newcombe's hybrid score interval; with a correlation, that of paired shares.

    >>> interval = difference(Interval(56 / 70, 0.6918, 0.8774), Interval(48 / 80, 0.4905, 0.7004))
    >>> [round(number, 3) for number in (interval.value, interval.low, interval.high)]
    [0.2, 0.052, 0.334]
    >>> difference(Interval(5.0, 2.0, 8.0), Interval(1.0, -3.0, 5.0), correlation=-1.0).low  # 4 - (3 + 4)
    -3.0
    """
    value = a.value - b.value
    return Interval(
        value,
        value - _half_width(a.value - a.low, b.high - b.value, correlation),
        value + _half_width(a.high - a.value, b.value - b.low, correlation),
    )


def _half_width(first: float, second: float, correlation: float) -> float:
    return math.sqrt(max(0.0, first * first + second * second - 2 * correlation * first * second))


def correlation_of(a: Interval, b: Interval, replicates_a: Array, replicates_b: Array) -> float:
    """The correlation of two numbers, from replicates of the same resamples.

    An interval can be wider than the spread of its replicates (training seeds, repeated captions); the additional
    variance is treated as independent between the two numbers, as in `paired_difference`.
    """
    defined = np.isfinite(replicates_a) & np.isfinite(replicates_b)
    if defined.sum() < 2:
        return 0.0
    spreads = replicates_a[defined].std(ddof=1), replicates_b[defined].std(ddof=1)
    half_widths = (a.high - a.low) / 2, (b.high - b.low) / 2
    if min(*spreads, *half_widths) <= 0:
        return 0.0
    correlation = float(np.corrcoef(replicates_a[defined], replicates_b[defined])[0, 1])
    z = float(ndtri((1 + LEVEL) / 2))
    for spread, half in zip(spreads, half_widths, strict=True):
        correlation *= min(1.0, float(spread) / (half / z))
    return correlation if math.isfinite(correlation) else 0.0
