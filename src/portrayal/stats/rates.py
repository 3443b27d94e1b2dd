"""Intervals of rates: Wilson's, with the number of independent units that clustering leaves."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from portrayal.stats.bootstrap import LEVEL, Array, Estimate, Resampler, divide_columns


def wilson(successes: float, trials: float, level: float = LEVEL) -> tuple[float, float]:
    """Wilson's score interval; it stays inside 0 to 1, holds the share itself, and is sound at both ends.

    >>> [round(bound, 4) for bound in wilson(2, 10)]
    [0.0567, 0.5098]
    """
    if trials <= 0:
        raise ValueError("A rate needs at least one trial.")
    z = float(ndtri((1 + level) / 2))
    share = min(max(successes / trials, 0.0), 1.0)
    middle = (share + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z / (1 + z * z / trials) * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    low = (
        0.0 if share == 0 else max(0.0, middle - half)
    )  # exact at the ends, where rounding would leave a trace
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return min(low, share), max(high, share)


def rate(
    successes: Array, trials: Array, resampler: Resampler, level: float = LEVEL, most: float | None = None
) -> Estimate:
    """sum(successes) / sum(trials) over clusters, with Wilson's interval and the bootstrap's standard error."""
    total = float(np.sum(trials))
    if total <= 0:
        return Estimate.of(None)
    low, high = clustered_wilson(successes, trials, level, most)
    if len(resampler.names) < 2:
        return Estimate(float(np.sum(successes)) / total, low, high, None, np.empty(0))
    n_resamples = divide_columns(resampler.totals(np.column_stack([successes, trials])))
    known = n_resamples[np.isfinite(n_resamples)]
    se = float(known.std(ddof=1)) if len(known) > 1 else None
    return Estimate(float(np.sum(successes)) / total, low, high, se, n_resamples)


def clustered_wilson(
    successes: Array, trials: Array, level: float = LEVEL, most: float | None = None
) -> tuple[float, float]:
    """Wilson's interval of sum(successes) / sum(trials) when trials come in clusters, one entry per cluster.

    The rate's variance is that of a ratio of sums over clusters; it fixes how many independent trials would
    be as informative, but no more than `most` (by default the trials there are; more where a trial is itself a
    mean, as of the captions of an image). With one trial per cluster it is Wilson's own interval.
    """
    total = float(np.sum(trials))
    if total <= 0:
        raise ValueError("A rate needs at least one trial.")
    share = min(max(float(np.sum(successes)) / total, 0.0), 1.0)
    spread = float(np.sum((successes - share * trials) ** 2))
    return wilson_of_spread(share, spread, total, float(np.count_nonzero(trials)), level, most)


def wilson_of_sums(
    successes: float, squares: float, clusters: float, level: float = LEVEL
) -> tuple[float, float]:
    """The same for one trial per cluster, from sums over clusters that need not be kept: of successes, which may be
    shares of one, and of their squares.

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
    most: float | None = None,
) -> tuple[float, float]:
    """`spread` is the sum over clusters of the squared distance between successes and what the share expects."""
    inside = share * (1 - share)
    if inside < 1e-12:
        # Every trial went the same way, so nothing shows how alike a cluster's trials are: count clusters.
        effective = clusters
    else:
        effective = min(inside / max(spread / total**2, 1e-300), total if most is None else most)
    return wilson(share * effective, effective, level)
