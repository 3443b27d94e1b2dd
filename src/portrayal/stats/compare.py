"""Two measurements of the same thing: their difference, paired where the draws are."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats

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


def paired_difference(first: float, second: float, draws_first: Array, draws_second: Array) -> Difference:
    """From draws made with the same clusters in the same order, so that what they share cancels."""
    if len(draws_first) != len(draws_second):
        raise ValueError("Paired draws must be equally many.")
    draws = draws_second - draws_first
    (low,), (high,) = percentile_interval(draws[:, None])
    known = draws[np.isfinite(draws)]
    if not np.isfinite(low):
        return Difference(second - first, None, None, None, None, None)
    se = float(known.std(ddof=1))
    detectable = minimum_detectable_effect(se)
    return Difference(second - first, float(low), float(high), se, bootstrap_p(draws), detectable)


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
    half = float(stats.norm.ppf((1 + LEVEL) / 2)) * se
    p = float(2 * stats.norm.sf(abs(value) / se))
    return Difference(value, value - half, value + half, se, p, minimum_detectable_effect(se))
