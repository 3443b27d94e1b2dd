"""p values from bootstrap replicates and from the normal distribution."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from portrayal.stats.bootstrap import LEVEL, Array

MIN_P = 1e-6  # of tests that approximate a tail


def bootstrap_p(replicates: Array, null: float = 0.0, level: float = LEVEL) -> float | None:
    """Two-sided p of a value against `null` from its bootstrap resamples; None where too few of them are defined.

    It inverts the percentile interval: p is below 1 - level only where the interval excludes `null`. Inside the
    interval p is twice the share of resamples beyond `null`, with one added to them, which matters where they are few.
    Outside, hardly any are left to count (one of a thousand would make .002 into .004), so that the tail goes on from
    the interval's end as a normal one, with the spread that the resamples have on that side of their median. Never
    below MIN_P: a thousand resamples do not know a tail that far out.
    """
    ordered = np.sort(replicates[np.isfinite(replicates)])
    if len(ordered) < 2 or len(ordered) < 0.95 * len(replicates):
        return None
    levels = np.arange(1, len(ordered) + 1) / (len(ordered) + 1)
    below = float(np.interp(null, ordered, levels))
    above = float(np.interp(-null, -ordered[::-1], levels))
    tail = max((1 - level) / 2, float(levels[0]))
    if min(below, above) > tail:
        return min(1.0, 2 * min(below, above))
    if ordered[0] == ordered[-1]:  # all equal: the spread is unknown
        return 2 / (1 + len(ordered))
    facing, target = (ordered, null) if below < above else (-ordered[::-1], -null)  # `null` lies below them
    median = float(np.median(facing))
    spread = float(np.sqrt(np.mean((facing[facing <= median] - median) ** 2)))
    spread = spread if spread > 0 else float(facing.std(ddof=1))
    distance = float(np.interp(tail, levels, facing)) - target
    return floored_p(2 * float(ndtr(float(ndtri(tail)) - distance / spread)))


def normal_p(z: float) -> float:
    """Two-sided p of a standard normal score.

    >>> round(normal_p(3.77), 5)
    0.00016
    """
    return floored_p(2 * float(ndtr(-abs(z))))


def floored_p(p: float) -> float:
    """p, or MIN_P where it is smaller: an approximated tail is not known that far out."""
    return max(p, MIN_P)
