"""Is it more than chance? p values from permutations, from draws, and the noise under a mean of absolute values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from portrayal.stats.resample import Array

PERMUTATIONS = 1000


def permutation_p(observed: Array, null: Array) -> Array:
    """(1 + draws at least as far as observed) / (1 + draws), per column; `null` is (draws, columns).

    nan where the observed value is undefined; an undefined draw counts as having reached it.
    """
    reached = np.sum(~(null < observed[None, :] - 1e-12), axis=0)
    p: Array = np.where(np.isfinite(observed), (1 + reached) / (1 + len(null)), np.nan)
    return p


def permutations(
    statistic: Callable[[NDArray[np.int64]], Array], size: int, seed: int, draws: int = PERMUTATIONS
) -> Array:
    """The statistic under shuffled places: (draws, columns). Draw k is the same whatever is drawn around it."""
    return np.array(
        [statistic(np.random.default_rng([seed, draw]).permutation(size)) for draw in range(draws)]
    )


def dealings(
    statistic: Callable[[NDArray[np.int64]], Array],
    clusters: NDArray[np.int64],
    seed: int,
    draws: int = PERMUTATIONS,
) -> Array:
    """The statistic when what belongs to entries is dealt out anew, clusters as a whole: (draws, columns).

    A cluster takes what another one of its size had, in any order: entries of one cluster are alike, and dealing them
    one by one would make chance look smaller than it is. Where every cluster has one entry, these are permutations.
    """
    order = np.argsort(clusters, kind="stable")
    sizes = np.unique(clusters[order], return_counts=True)[1]
    starts = np.cumsum(sizes) - sizes
    blocks = [order[starts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes)]
    made = []
    for draw in range(draws):
        rng = np.random.default_rng([seed, draw])
        dealt = np.empty(len(clusters), dtype=np.int64)
        for block in blocks:
            dealt[block] = rng.permuted(block[rng.permutation(len(block))], axis=1)
        made.append(statistic(dealt))
    return np.array(made)


def bootstrap_p(replicates: Array, null: float = 0.0) -> float | None:
    """Two-sided p of a value against `null` from its bootstrap draws; None where draws are undefined.

    Where no draw reaches the null, counting them only says "below 2 / draws", which no correction for several
    comparisons survives; the normal tail at the draws' own spread then says how far below.
    """
    known = replicates[np.isfinite(replicates)]
    if len(known) < 2 or len(known) < 0.95 * len(replicates):
        return None
    beyond = min(np.sum(known >= null), np.sum(known <= null))
    p = min(1.0, 2 * (1 + beyond) / (1 + len(known)))
    spread = float(known.std(ddof=1))
    if beyond == 0 and spread > 0:
        p = min(p, float(2 * ndtr(-abs(float(np.median(known)) - null) / spread)))
    return float(p)


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
