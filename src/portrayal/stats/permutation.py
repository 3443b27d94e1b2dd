"""Permutation tests, and the noise floor of a mean of absolute values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from portrayal.stats.bootstrap import Array

Indices = NDArray[np.int64]
Statistic = Callable[[Indices], Array]  # from an order of the entries to one value per column

PERMUTATIONS = 1000
MAX_FACTOR = 10  # up to so many times more permutations where p lies close to the threshold
_THRESHOLD = 0.05
_MARGIN = 2.6  # standard errors: one p of a hundred would fall on the other side of the threshold


def permutation_p(observed: Array, null: Array) -> Array:
    """Permutation p of each column: (1 + permutations at least as extreme) / (1 + permutations).

    `null` is (permutations, columns). nan where the observed value is undefined; an undefined permutation counts as
    extreme.
    """
    as_extreme = np.sum(~(null < observed[None, :] - 1e-12), axis=0)
    p: Array = np.where(np.isfinite(observed), (1 + as_extreme) / (1 + len(null)), np.nan)
    return p


def permutation_test(
    statistic: Statistic, clusters: int | Indices, seed: int, n_permutations: int = PERMUTATIONS
) -> Array:
    """Permutation p of each column of `statistic`.

    Parameters
    ----------
    statistic
        From an order of the entries to one value per column; larger is more extreme.
    clusters
        The number of entries to permute, or the cluster of each entry: clusters are then permuted as a whole.
    seed
        Seed of the permutations.
    n_permutations
        How many at first. Where p lies so close to .05 that it could fall on the other side with another seed, up to
        MAX_FACTOR times as many are used.
    """
    if isinstance(clusters, int):
        observed, permute = statistic(np.arange(clusters)), partial(permutations, statistic, clusters, seed)
    else:
        observed, permute = (
            statistic(np.arange(len(clusters))),
            partial(cluster_permutations, statistic, clusters, seed),
        )
    null = permute(n_permutations)
    while True:
        p = permutation_p(observed, null)
        error = np.sqrt(p * (1 - p) / (1 + len(null)))
        if len(null) >= MAX_FACTOR * n_permutations or not np.any(np.abs(p - _THRESHOLD) < _MARGIN * error):
            return p
        null = np.concatenate([null, permute(min(2 * len(null), MAX_FACTOR * n_permutations), len(null))])


def permutations(
    statistic: Statistic, n_entries: int, seed: int, n_permutations: int = PERMUTATIONS, start: int = 0
) -> Array:
    """The statistic under permuted entries: (permutations, columns).

    Permutation k depends on the seed and k only. The first `start` permutations are left out.
    """
    return np.array(
        [
            statistic(np.random.default_rng([seed, index]).permutation(n_entries))
            for index in range(start, n_permutations)
        ]
    )


def cluster_permutations(
    statistic: Statistic, clusters: Indices, seed: int, n_permutations: int = PERMUTATIONS, start: int = 0
) -> Array:
    """The statistic when clusters of entries are permuted as a whole: (permutations, columns).

    A cluster takes the entries of another cluster of its size, in any order. Entries of one cluster are alike, so that
    permuting them one by one would make the null too narrow. With one entry per cluster this is `permutations`.
    """
    order = np.argsort(clusters, kind="stable")
    sizes = np.unique(clusters[order], return_counts=True)[1]
    starts = np.cumsum(sizes) - sizes
    blocks = [order[starts[sizes == size][:, None] + np.arange(size)] for size in np.unique(sizes)]
    null = []
    for index in range(start, n_permutations):
        rng = np.random.default_rng([seed, index])
        permuted = np.empty(len(clusters), dtype=np.int64)
        for block in blocks:
            permuted[block] = rng.permuted(block[rng.permutation(len(block))], axis=1)
        null.append(statistic(permuted))
    return np.array(null)


def noise_floor(
    values: Array, items: NDArray[np.int64], seed: int, n_permutations: int = PERMUTATIONS
) -> float:
    """Noise floor: the expected mean over items of |mean of the item's values| under random signs.

    A mean of absolute values is above 0 without any bias. The excess is the observed mean minus this floor.
    """
    counts = np.bincount(items)
    present = counts > 0
    rng = np.random.default_rng(seed)
    total = 0.0
    for _ in range(n_permutations):
        signs = rng.choice((-1.0, 1.0), size=len(values))
        means = np.bincount(items, weights=values * signs, minlength=len(counts))[present] / counts[present]
        total += float(np.mean(np.abs(means)))
    return total / n_permutations
