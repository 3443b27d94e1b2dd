"""Two sources of variance: the data, and the training seed."""

from __future__ import annotations

import numpy as np

from portrayal.stats.bootstrap import Array


def replicates_over_seeds(replicates: Array, points: Array, seed: int) -> Array:
    """Replicates of a mean over seeds that vary data and seeds: (seeds, resamples) to (resamples,).

    Each resample uses the same clusters for all seeds, since all were trained on the same data, and resamples the
    seeds by their `points`' distance from the mean. (Resampling a seed's replicates with it would count the data
    variance of a single seed twice.)
    """
    seeds, count = replicates.shape
    chosen = np.random.default_rng([seed, seeds]).integers(0, seeds, size=(count, seeds))
    pooled: Array = replicates.mean(axis=0) + points[chosen].mean(axis=1) - points.mean()
    return pooled
