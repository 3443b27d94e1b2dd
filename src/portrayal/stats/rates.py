"""Wilson intervals of rates, with the effective sample size of clustered trials."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from portrayal.stats.bootstrap import LEVEL, Array, Estimate, Resampler, divide_columns


def wilson(successes: float, trials: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval: inside [0, 1], contains the share, valid at both ends.

    >>> [round(bound, 4) for bound in wilson(2, 10)]
    [0.0567, 0.5098]
    """
    if trials <= 0:
        raise ValueError("A rate needs at least one trial.")
    z = float(ndtri((1 + level) / 2))
    share = min(max(successes / trials, 0.0), 1.0)
    center = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half_width = (
        z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    )
    # Exact at the ends, where rounding would leave a residue.
    low = 0.0 if share == 0 else max(0.0, center - half_width)
    high = 1.0 if share == 1 else min(1.0, center + half_width)
    return min(low, share), max(high, share)


def rate(
    successes: Array,
    trials: Array,
    resampler: Resampler,
    level: float = LEVEL,
    max_effective: float | None = None,
) -> Estimate:
    """sum(successes) / sum(trials) over clusters, with a Wilson interval and a bootstrap standard error."""
    total = float(np.sum(trials))
    if total <= 0:
        return Estimate.of(None)
    low, high = clustered_wilson(successes, trials, level, max_effective)
    if len(resampler.names) < 2:
        return Estimate(float(np.sum(successes)) / total, low, high, None, np.empty(0))
    replicates = divide_columns(resampler.totals(np.column_stack([successes, trials])))
    defined = replicates[np.isfinite(replicates)]
    se = float(defined.std(ddof=1)) if len(defined) > 1 else None
    return Estimate(float(np.sum(successes)) / total, low, high, se, replicates)


def clustered_wilson(
    successes: Array, trials: Array, level: float = LEVEL, max_effective: float | None = None
) -> tuple[float, float]:
    """Wilson interval of sum(successes) / sum(trials) for clustered trials, one entry per cluster.

    The variance of the ratio of sums over clusters gives the effective number of independent trials, at most
    `max_effective` (by default the number of trials; more where a trial is itself a mean, such as of the captions of an
    image). With one trial per cluster it is the plain Wilson interval.
    """
    total = float(np.sum(trials))
    if total <= 0:
        raise ValueError("A rate needs at least one trial.")
    share = min(max(float(np.sum(successes)) / total, 0.0), 1.0)
    spread = float(np.sum((successes - share * trials) ** 2))
    return wilson_of_spread(share, spread, total, float(np.count_nonzero(trials)), level, max_effective)


def wilson_of_sums(
    successes: float, squares: float, clusters: float, level: float = LEVEL
) -> tuple[float, float]:
    """The same with one trial per cluster, from the sums over clusters of successes (or shares) and their squares.

    >>> wilson_of_sums(2, 2, 10) == wilson(2, 10)
    True
    """
    if clusters <= 0:
        raise ValueError("A rate needs at least one trial.")
    share = min(max(successes / clusters, 0.0), 1.0)
    spread = squares - 2 * share * successes + share * share * clusters
    return wilson_of_spread(share, spread, clusters, clusters, level)


def wilson_of_spread(
    share: float,
    spread: float,
    total: float,
    clusters: float,
    level: float = LEVEL,
    max_effective: float | None = None,
) -> tuple[float, float]:
    """Wilson interval from `spread`, the sum over clusters of (successes - expected successes) squared."""
    variance = share * (1 - share)
    if variance < 1e-12:
        # All trials have the same outcome, so the correlation within clusters is unknown: count clusters.
        effective = clusters
    else:
        effective = min(
            variance / max(spread / total**2, 1e-300), total if max_effective is None else max_effective
        )
    return wilson(share * effective, effective, level)
