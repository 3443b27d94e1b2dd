"""Is it more than chance? p values from permutations, from draws, and the noise under a mean of absolute values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from portrayal.stats.bootstrap import LEVEL, Array

Places = NDArray[np.int64]
Statistic = Callable[[Places], Array]  # of entries in some order, as many columns as there are questions

PERMUTATIONS = 1000
AT_MOST = 10  # times as many permutations where p lies close to the threshold
_THRESHOLD = 0.05
_SURE = 2.6  # standard errors: one of a hundred such p would fall on the other side
LEAST_P = 1e-6  # of tests that approximate a tail


def permutation_p(observed: Array, null: Array) -> Array:
    """(1 + draws at least as far as observed) / (1 + draws), per column; `null` is (draws, columns).

    nan where the observed value is undefined; an undefined draw counts as having reached it.
    """
    reached = np.sum(~(null < observed[None, :] - 1e-12), axis=0)
    p: Array = np.where(np.isfinite(observed), (1 + reached) / (1 + len(null)), np.nan)
    return p


def permutation_test(
    statistic: Statistic, clusters: int | Places, seed: int, n_permutations: int = PERMUTATIONS
) -> Array:
    """p of each column of `statistic`, from permutations of entries (how many there are), or of clusters of them.

    A p that lies so close to .05 that other permutations could put it on the other side would depend on the seed.
    Permutations then go on, up to AT_MOST times as many.
    """
    if isinstance(clusters, int):
        observed, permute = statistic(np.arange(clusters)), partial(permutations, statistic, clusters, seed)
    else:
        observed, permute = statistic(np.arange(len(clusters))), partial(permuted, statistic, clusters, seed)
    null = permute(n_permutations)
    while True:
        p = permutation_p(observed, null)
        error = np.sqrt(p * (1 - p) / (1 + len(null)))
        if len(null) >= AT_MOST * n_permutations or not np.any(np.abs(p - _THRESHOLD) < _SURE * error):
            return p
        null = np.concatenate([null, permute(min(2 * len(null), AT_MOST * n_permutations), len(null))])


def permutations(
    statistic: Statistic, size: int, seed: int, n_permutations: int = PERMUTATIONS, start: int = 0
) -> Array:
    """The statistic under shuffled places: (draws, columns). Draw k is the same whatever is drawn around it.

    The first `start` draws are left out.
    """
    return np.array(
        [
            statistic(np.random.default_rng([seed, draw]).permutation(size))
            for draw in range(start, n_permutations)
        ]
    )


def permuted(
    statistic: Statistic, clusters: Places, seed: int, n_permutations: int = PERMUTATIONS, start: int = 0
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
    for draw in range(start, n_permutations):
        rng = np.random.default_rng([seed, draw])
        dealt = np.empty(len(clusters), dtype=np.int64)
        for block in blocks:
            dealt[block] = rng.permuted(block[rng.permutation(len(block))], axis=1)
        made.append(statistic(dealt))
    return np.array(made)


def bootstrap_p(replicates: Array, null: float = 0.0, level: float = LEVEL) -> float | None:
    """Two-sided p of a value against `null` from its bootstrap resamples; None where too few of them are defined.

    It inverts the percentile interval: p is below 1 - level only where the interval excludes `null`. Inside the
    interval p is twice the share of resamples beyond `null`, with one added to them, which matters where they are few.
    Outside, hardly any are left to count (one of a thousand would make .002 into .004), so that the tail goes on from
    the interval's end as a normal one, with the spread that the resamples have on that side of their median. Never
    below LEAST_P: a thousand resamples do not know a tail that far out.
    """
    known = np.sort(replicates[np.isfinite(replicates)])
    if len(known) < 2 or len(known) < 0.95 * len(replicates):
        return None
    levels = np.arange(1, len(known) + 1) / (len(known) + 1)
    below = float(np.interp(null, known, levels))
    above = float(np.interp(-null, -known[::-1], levels))
    edge = max((1 - level) / 2, float(levels[0]))
    if min(below, above) > edge:
        return min(1.0, 2 * min(below, above))
    if known[0] == known[-1]:  # all alike: how far others might have differed is not known
        return 2 / (1 + len(known))
    towards, target = (known, null) if below < above else (-known[::-1], -null)  # `null` lies below them
    median = float(np.median(towards))
    spread = float(np.sqrt(np.mean((towards[towards <= median] - median) ** 2)))
    spread = spread if spread > 0 else float(towards.std(ddof=1))
    distance = float(np.interp(edge, levels, towards)) - target
    return bounded_p(2 * float(ndtr(float(ndtri(edge)) - distance / spread)))


def normal_p(z: float) -> float:
    """Two-sided p of a standard normal score.

    >>> round(normal_p(3.77), 5)
    0.00016
    """
    return bounded_p(2 * float(ndtr(-abs(z))))


def bounded_p(p: float) -> float:
    """p, or LEAST_P where it is smaller: so far out an approximated tail is a guess."""
    return max(p, LEAST_P)


def noise_floor(
    values: Array, items: NDArray[np.int64], seed: int, n_permutations: int = PERMUTATIONS
) -> float:
    """What the mean over items of |mean of the item's values| would be if signs meant nothing.

    A mean of absolute values is above 0 without any bias; this is how far above. Signs are flipped value by
    value. The excess is the observed mean less this floor.
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
