"""Two sources of variance kept apart: the data, and the seed of whatever was trained on it."""

from __future__ import annotations

import numpy as np

from portrayal.stats.bootstrap import Array


def replicates_over_seeds(replicates: Array, points: Array, seed: int) -> Array:
    """Draws of a mean over seeds that vary the seeds too, for one interval over both: (seeds, draws) to (draws,).

    Every draw takes clusters with replacement, the same for all seeds, since they all saw the same data; and seeds
    with replacement, which move it by how far their `points` lie from the mean of all. (To take a seed's draws along
    with it would count what data does to one seed alone a second time.)
    """
    seeds, count = replicates.shape
    picked = np.random.default_rng([seed, seeds]).integers(0, seeds, size=(count, seeds))
    moved: Array = replicates.mean(axis=0) + points[picked].mean(axis=1) - points.mean()
    return moved
