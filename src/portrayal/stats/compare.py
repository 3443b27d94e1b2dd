"""Two measurements of the same thing: their difference, paired where the draws are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from portrayal.stats.power import minimum_detectable_effect
from portrayal.stats.resample import LEVEL, Array, percentile_interval
from portrayal.stats.significance import bootstrap_p


@dataclass(frozen=True)
class Difference:
    """second - first, with its interval, p and the smallest difference that could have been seen."""

    value: float
    low: float | None
    high: float | None
    se: float | None
    p: float | None
    detectable: float | None


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
    """
    if len(draws_first) != len(draws_second):
        raise ValueError("Paired draws must be equally many.")
    value = second - first
    draws = _as_wide_as(errors, error, draws_first, draws_second, value)
    (low,), (high,) = percentile_interval(draws[:, None])
    known = draws[np.isfinite(draws)]
    if not np.isfinite(low):
        return Difference(value, None, None, None, None, None)
    se = float(known.std(ddof=1))
    return Difference(value, float(low), float(high), se, bootstrap_p(draws), minimum_detectable_effect(se))


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
    if se == 0:
        return Difference(value, value, value, 0.0, 1.0 if value == 0 else 0.0, 0.0)
    half = float(ndtri((1 + LEVEL) / 2)) * se
    p = float(2 * ndtr(-abs(value) / se))
    return Difference(value, value - half, value + half, se, p, minimum_detectable_effect(se))
