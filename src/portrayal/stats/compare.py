"""Two measurements of the same thing: their difference, paired where the resamples or the images are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, betaincinv, ndtri

from portrayal.stats.bootstrap import LEVEL, Array, percentile_interval
from portrayal.stats.mover import Interval, difference
from portrayal.stats.permutation import bootstrap_p, bounded_p, normal_p
from portrayal.stats.power import minimum_detectable_effect

BOOTSTRAP = "paired bootstrap"
MCNEMAR = "McNemar, exact"
NORMAL = "two standard errors"
INTERVALS = "both intervals"


@dataclass(frozen=True)
class Difference:
    """second - first, with its interval, p, the smallest difference that could have been seen, and the test.

    Where nothing differs there is nothing to test: a value of 0 and no p. A standard error of 0 says that nothing was
    seen to vary, and not how far other data would: nothing is said to be detectable then.
    """

    value: float
    low: float | None
    high: float | None
    se: float | None
    p: float | None
    detectable: float | None
    test: str | None = None


def paired_difference(
    first: float,
    second: float,
    draws_first: Array,
    draws_second: Array,
    errors: tuple[float | None, float | None] = (None, None),
    error: float | None = None,
) -> Difference:
    """From draws made with the same clusters in the same order, so that what they share cancels.

    A number may be less sure than its draws say, where its own clusters are coarser than those that both share (a
    system's captions that repeat each other, and images). Their standard errors then say by how much: the difference's
    variance is that of both numbers, less twice what their draws have in common. That is cautious; the difference's own
    `error` is used where it is known.

    Where few images differ, and most of them one way, the resamples have a thin tail on the side of 0: six images of a
    thousand would be surer than the sign test is. So the longer of both tails counts on both sides.
    """
    if len(draws_first) != len(draws_second):
        raise ValueError("Paired draws must be equally many.")
    value = second - first
    draws = _as_wide_as(errors, error, draws_first, draws_second, value)
    (low,), (high,) = percentile_interval(draws[:, None])
    known = draws[np.isfinite(draws)]
    if not np.isfinite(low):
        return Difference(value, None, None, None, None, None)
    if np.ptp(known) == 0:  # an interval without width would say that other data could not differ
        return Difference(value, None, None, 0.0, bootstrap_p(draws) if value else None, None, BOOTSTRAP)
    se = float(known.std(ddof=1))
    mirrored = 2 * value - draws
    low, high = min(float(low), 2 * value - float(high)), max(float(high), 2 * value - float(low))
    p_values = [p for p in (bootstrap_p(draws), bootstrap_p(mirrored)) if p is not None]
    return Difference(value, low, high, se, max(p_values, default=None), _detectable(se), BOOTSTRAP)


def interval_difference(first: Interval, second: Interval) -> Difference:
    """From the intervals of two numbers alone, where resamples of either do not vary: none of 30 images counts, and yet
    a few of a thousand might. What both share does not cancel, so it errs on the careful side.

    >>> found = interval_difference(Interval(0.0, 0.0, 0.114), Interval(0.025, 0.017, 0.037))  # 0 of 30, 25 of 1,000
    >>> found.low < 0, round(found.p, 2)
    (True, 0.67)
    """
    apart = difference(second, first)
    se = (apart.high - apart.low) / 2 / float(ndtri((1 + LEVEL) / 2))
    if se == 0:
        return Difference(apart.value, None, None, 0.0, None, None, INTERVALS)
    return Difference(apart.value, apart.low, apart.high, se, apart.p(), _detectable(se), INTERVALS)


def mcnemar_difference(only_first: int, only_second: int, images: int) -> Difference:
    """Between two shares of the same images, from how many of them count on one side only (McNemar 1947, exact).

    Images that count on both sides or on neither say nothing of the difference. Of the others each side has half if
    nothing differs. The interval holds all values that the same test does not reject (Clopper and Pearson, of the
    images that differ), and those that chance in how many images differ leaves open (Wald). It excludes 0 exactly where
    p is below .05, since near 0 the test's own part is the wider one. Where no image differs, it holds all shares of
    images that differ, on one side, of which as many images would show none once in 40 times.

    >>> round(mcnemar_difference(2, 12, 100).p, 4)
    0.0129
    """
    apart = only_first + only_second
    value = (only_second - only_first) / images
    # The usual variance of a paired difference: of ones, minus ones and zeros.
    se = math.sqrt(max(apart - (only_second - only_first) ** 2 / images, 0.0)) / images
    tail = (1 - LEVEL) / 2
    if apart == 0:
        most = 1 - tail ** (1 / images)
        return Difference(0.0, -most, most, 0.0, None, None, MCNEMAR)
    p = bounded_p(min(1.0, 2 * float(bdtr(min(only_first, only_second), apart, 0.5))))
    low = float(betaincinv(only_second, only_first + 1, tail)) if only_second else 0.0
    high = float(betaincinv(only_second + 1, only_first, 1 - tail)) if only_first else 1.0
    half = float(ndtri((1 + LEVEL) / 2)) * se
    low = min((2 * low - 1) * apart / images, value - half)
    high = max((2 * high - 1) * apart / images, value + half)
    return Difference(value, low, high, se, p, _detectable(se), MCNEMAR)


def _detectable(se: float) -> float | None:
    return minimum_detectable_effect(se) if se else None


def _as_wide_as(
    errors: tuple[float | None, float | None], error: float | None, first: Array, second: Array, value: float
) -> Array:
    draws = second - first
    both = np.isfinite(draws)
    if both.sum() < 2:
        return draws
    covariance = np.cov(first[both], second[both])
    narrow = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    if error is not None:
        wide = error**2
    elif None in errors:
        return draws
    else:
        wide = sum(float(one) ** 2 for one in errors if one is not None) - 2 * float(covariance[0, 1])
    if narrow <= 0 or wide <= narrow * (1 + 1e-9):
        return draws
    return np.asarray(value + (draws - value) * math.sqrt(wide / narrow))


def unpaired_difference(
    first: float, second: float, se_first: float | None, se_second: float | None
) -> Difference:
    """From two standard errors of independent data, by the normal approximation."""
    value = second - first
    if se_first is None or se_second is None:
        return Difference(value, None, None, None, None, None)
    se = math.hypot(se_first, se_second)
    # Neither side was seen to vary, or one of them further than numbers go: nothing is known.
    if se == 0 or not math.isfinite(abs(value) + 4 * se):
        return Difference(value, None, None, 0.0, None, None, NORMAL)
    half = float(ndtri((1 + LEVEL) / 2)) * se
    p = normal_p(value / se)
    return Difference(value, value - half, value + half, se, p, _detectable(se), NORMAL)
