"""Two sources of variance kept apart: the data, and the seed of whatever was trained on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from portrayal.stats.resample import LEVEL, Array, Resampler


@dataclass(frozen=True)
class Spread:
    """A mean over seeds; `std_seed` between seeds, `se_data` over the data, and one interval for both."""

    value: float
    low: float
    high: float
    std_seed: float | None
    se_data: float


def spread_over_seeds(
    scores: Array, statistic: Callable[[Array], Array], resampler: Resampler, level: float = LEVEL
) -> Spread:
    """Scores per seed, cluster and count: (seeds, clusters, columns).

    The interval is a hierarchical bootstrap: every draw takes seeds with replacement, then clusters with
    replacement, the same clusters for each of its seeds, since they all saw the same data.
    """
    seeds = len(scores)
    points = np.array([float(statistic(part.sum(axis=0)[None, :])[0]) for part in scores])
    draws = np.stack([statistic(resampler.totals(part)) for part in scores])  # (seeds, draws)
    rng = np.random.default_rng([resampler.seed, seeds])
    picked = rng.integers(0, seeds, size=(draws.shape[1], seeds))
    both = np.take_along_axis(draws.T, picked, axis=1).mean(axis=1)
    low, high = np.nanquantile(both, [(1 - level) / 2, (1 + level) / 2])
    return Spread(
        value=float(points.mean()),
        low=float(low),
        high=float(high),
        std_seed=float(points.std(ddof=1)) if seeds > 1 else None,
        se_data=float(np.nanstd(draws.mean(axis=0), ddof=1)),
    )
