"""Intervals of rates: Wilson's, with the number of independent units that clustering leaves."""

from __future__ import annotations

import math

import numpy as np
from scipy import stats

from portrayal.stats.resample import LEVEL, Array, Estimate, Resampler, divide_columns


def wilson(successes: float, trials: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval; it stays inside 0 to 1 and is sound at both ends.

    >>> [round(bound, 4) for bound in wilson(2, 10)]
    [0.0567, 0.5098]
    """
    if trials <= 0:
        raise ValueError("A rate needs at least one trial.")
    z = float(stats.norm.ppf((1 + level) / 2))
    share = successes / trials
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    return max(0.0, middle - half), min(1.0, middle + half)


def rate(successes: Array, trials: Array, resampler: Resampler, level: float = LEVEL) -> Estimate:
    """sum(successes) / sum(trials) over clusters, with Wilson's interval and the bootstrap's standard error."""
    total = float(np.sum(trials))
    if total <= 0:
        return Estimate.of(None)
    low, high = clustered_wilson(successes, trials, level)
    sums = resampler.totals(np.column_stack([successes, trials]))
    draws = divide_columns(sums)
    known = draws[np.isfinite(draws)]
    se = float(known.std(ddof=1)) if len(known) > 1 else None
    return Estimate(float(np.sum(successes)) / total, low, high, se, draws)


def clustered_wilson(successes: Array, trials: Array, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's interval of sum(successes) / sum(trials) when trials come in clusters, one entry per cluster.

    The rate's variance is that of a ratio of sums over clusters; it fixes how many independent trials would
    be as informative. With one trial per cluster that is the number of trials, and the interval is Wilson's.
    """
    total = float(np.sum(trials))
    used = int(np.count_nonzero(trials))
    if total <= 0:
        raise ValueError("A rate needs at least one trial.")
    share = float(np.sum(successes)) / total
    variance = float(np.sum((successes - share * trials) ** 2)) / total**2
    inside = share * (1 - share)
    # Where every trial went the same way the variance is 0; the clusters are then all that is independent.
    effective = inside / variance if variance > 0 and inside > 0 else float(used)
    return wilson(share * effective, effective, level)
