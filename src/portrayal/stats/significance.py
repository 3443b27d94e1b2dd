"""Is it more than chance? p values from permutations, from draws, and the noise under a mean of absolute values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from portrayal.stats.resample import Array

PERMUTATIONS = 1000


def permutation_p(observed: Array, null: Array) -> Array:
    """(1 + draws at least as far as observed) / (1 + draws), per column; `null` is (draws, columns)."""
    reached = np.sum(null >= observed[None, :] - 1e-12, axis=0)
    p: Array = (1 + reached) / (1 + len(null))
    return p


def permutations(
    statistic: Callable[[NDArray[np.int64]], Array], size: int, seed: int, draws: int = PERMUTATIONS
) -> Array:
    """The statistic under shuffled places: (draws, columns). Draw k is the same whatever is drawn around it."""
    return np.array(
        [statistic(np.random.default_rng([seed, draw]).permutation(size)) for draw in range(draws)]
    )


def bootstrap_p(replicates: Array, null: float = 0.0) -> float | None:
    """Two-sided p of a value against `null` from its bootstrap draws; None where draws are undefined."""
    known = replicates[np.isfinite(replicates)]
    if not len(known) or len(known) < 0.95 * len(replicates):
        return None
    above, below = np.sum(known >= null), np.sum(known <= null)
    return float(min(1.0, 2 * (1 + min(above, below)) / (1 + len(known))))


def noise_floor(values: Array, items: NDArray[np.int64], seed: int, draws: int = PERMUTATIONS) -> float:
    """What the mean over items of |mean of the item's values| would be if signs meant nothing.

    A mean of absolute values is above 0 without any bias; this is how far above. Signs are flipped value by
    value. The excess is the observed mean less this floor.
    """
    counts = np.bincount(items)
    present = counts > 0
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(draws):
        signs = rng.choice((-1.0, 1.0), size=len(values))
        means = np.bincount(items, weights=values * signs, minlength=len(counts))[present] / counts[present]
        total += float(np.mean(np.abs(means)))
    return total / draws
