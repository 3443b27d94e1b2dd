"""The difference of two measurements, paired where they share resamples or images."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, betaincinv, ndtri

from portrayal.stats.bootstrap import LEVEL, Array, percentile_interval
from portrayal.stats.mover import Interval, difference
from portrayal.stats.p_values import bootstrap_p, floored_p, normal_p
from portrayal.stats.power import minimum_detectable_effect

BOOTSTRAP = "paired bootstrap"
MCNEMAR = "McNemar, exact"
NORMAL = "two standard errors"
INTERVALS = "both intervals"


@dataclass(frozen=True)
class Difference:
    """second - first, with its interval, standard error, p, minimum detectable effect (MDE) and test.

    Where nothing differs there is nothing to test: the value is 0 and p is None. With a standard error of 0 the
    variation of other data is unknown, and the MDE is None.
    """

    value: float
    low: float | None
    high: float | None
    se: float | None
    p: float | None
    mde: float | None
    test: str | None = None


def paired_difference(
    first: float,
    second: float,
    replicates_first: Array,
    replicates_second: Array,
    errors: tuple[float | None, float | None] = (None, None),
    error: float | None = None,
) -> Difference:
    """Paired difference from bootstrap replicates of the same resamples, so that what both share cancels.

    A number's standard error can be larger than the spread of its replicates, where its own clusters are coarser than
    the shared ones (captions of a system that repeat each other, versus images). The variance of the difference is
    then the sum of both variances minus twice the covariance of the replicates, which is conservative; `error`, the
    standard error of the difference itself, is used where it is known.

    Where few images differ, and most of them in one direction, the replicates have a thin tail towards 0: six images of
    a thousand would give a smaller p than the sign test. The longer of both tails is therefore used on both sides.
    """
    if len(replicates_first) != len(replicates_second):
        raise ValueError("Paired replicates must have the same length.")
    value = second - first
    replicates = _widened(errors, error, replicates_first, replicates_second, value)
    (low,), (high,) = percentile_interval(replicates[:, None])
    defined = replicates[np.isfinite(replicates)]
    if not np.isfinite(low):
        return Difference(value, None, None, None, None, None)
    if np.ptp(defined) == 0:  # an interval without width would claim that other data cannot differ
        return Difference(value, None, None, 0.0, bootstrap_p(replicates) if value else None, None, BOOTSTRAP)
    se = float(defined.std(ddof=1))
    mirrored = 2 * value - replicates
    low, high = min(float(low), 2 * value - float(high)), max(float(high), 2 * value - float(low))
    p_values = [p for p in (bootstrap_p(replicates), bootstrap_p(mirrored)) if p is not None]
    return Difference(value, low, high, se, max(p_values, default=None), _mde(se), BOOTSTRAP)


def interval_difference(first: Interval, second: Interval) -> Difference:
    """Difference from the two intervals alone, for numbers whose replicates do not vary (0 of 30 images).

    What both numbers share does not cancel, so the interval is conservative.

    >>> result = interval_difference(Interval(0.0, 0.0, 0.114), Interval(0.025, 0.017, 0.037))  # 0 of 30, 25 of 1,000
    >>> result.low < 0, round(result.p, 2)
    (True, 0.67)
    """
    interval = difference(second, first)
    se = (interval.high - interval.low) / 2 / float(ndtri((1 + LEVEL) / 2))
    if se == 0:
        return Difference(interval.value, None, None, 0.0, None, None, INTERVALS)
    return Difference(interval.value, interval.low, interval.high, se, interval.p(), _mde(se), INTERVALS)


def mcnemar_difference(only_first: int, only_second: int, images: int) -> Difference:
    """Difference of two shares of the same images by McNemar's exact test (1947).

    Only discordant images (counted on one side only) are informative; under the null each side has half of them. The
    interval is the union of Clopper-Pearson on the discordant images and the Wald interval, which adds the variation
    in how many images are discordant. It excludes 0 exactly where p is below .05, since near 0 the exact part is the
    wider one. Without discordant images, its ends are the share of discordant images in one direction that would
    give none in this many images with probability 1/40.

    >>> round(mcnemar_difference(2, 12, 100).p, 4)
    0.0129
    """
    discordant = only_first + only_second
    value = (only_second - only_first) / images
    # Variance of a paired difference of 0/1 outcomes.
    se = math.sqrt(max(discordant - (only_second - only_first) ** 2 / images, 0.0)) / images
    tail = (1 - LEVEL) / 2
    if discordant == 0:
        largest = 1 - tail ** (1 / images)
        return Difference(0.0, -largest, largest, 0.0, None, None, MCNEMAR)
    p = floored_p(min(1.0, 2 * float(bdtr(min(only_first, only_second), discordant, 0.5))))
    low = float(betaincinv(only_second, only_first + 1, tail)) if only_second else 0.0
    high = float(betaincinv(only_second + 1, only_first, 1 - tail)) if only_first else 1.0
    half_width = float(ndtri((1 + LEVEL) / 2)) * se
    low = min((2 * low - 1) * discordant / images, value - half_width)
    high = max((2 * high - 1) * discordant / images, value + half_width)
    return Difference(value, low, high, se, p, _mde(se), MCNEMAR)


def _mde(se: float) -> float | None:
    return minimum_detectable_effect(se) if se else None


def _widened(
    errors: tuple[float | None, float | None], error: float | None, first: Array, second: Array, value: float
) -> Array:
    replicates = second - first
    defined = np.isfinite(replicates)
    if defined.sum() < 2:
        return replicates
    covariance = np.cov(first[defined], second[defined])
    resampled_variance = float(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    if error is not None:
        variance = error**2
    elif None in errors:
        return replicates
    else:
        variance = sum(float(se) ** 2 for se in errors if se is not None) - 2 * float(covariance[0, 1])
    if resampled_variance <= 0 or variance <= resampled_variance * (1 + 1e-9):
        return replicates
    return np.asarray(value + (replicates - value) * math.sqrt(variance / resampled_variance))


def unpaired_difference(
    first: float, second: float, se_first: float | None, se_second: float | None
) -> Difference:
    """Difference of independent numbers from their standard errors, by the normal approximation."""
    value = second - first
    if se_first is None or se_second is None:
        return Difference(value, None, None, None, None, None)
    se = math.hypot(se_first, se_second)
    # Neither side varies, or one overflows: the error is unknown.
    if se == 0 or not math.isfinite(abs(value) + 4 * se):
        return Difference(value, None, None, 0.0, None, None, NORMAL)
    half_width = float(ndtri((1 + LEVEL) / 2)) * se
    p = normal_p(value / se)
    return Difference(value, value - half_width, value + half_width, se, p, _mde(se), NORMAL)
