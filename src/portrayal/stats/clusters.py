"""Rows that are alike for several reasons at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from portrayal.stats.bootstrap import Array

Places = NDArray[np.int64]


def clustered_variance(effect: Array, cluster: Places) -> float:
    """Of a sum of effects that add up to 0 and are alike within clusters.

    >>> clustered_variance(np.array([1.0, 1.0, -1.0, -1.0]), np.array([0, 0, 1, 2]))
    6.0
    """
    return float(np.sum(np.bincount(cluster, weights=effect) ** 2))


def multiway_variance(effect: Array, *ways: Places) -> float:
    """Of a sum of effects that are alike within several kinds of clusters (Cameron, Gelbach and Miller 2011).

    Pairs of effects that share any cluster count once: variances by each kind are added, those by two kinds together
    taken off, and so on. Never below that of any kind alone.
    """
    total = 0.0
    for count in range(1, len(ways) + 1):
        for some in combinations(ways, count):
            total += (-1) ** (count + 1) * clustered_variance(effect, _together(some))
    return max(total, *(clustered_variance(effect, way) for way in ways))


def _together(ways: Sequence[Places]) -> Places:
    """Equal where every kind of cluster is."""
    made = ways[0]
    for way in ways[1:]:
        _, made = np.unique(made * (way.max(initial=0) + 1) + way, return_inverse=True)
    return made


def learning_variance(effect: Array, by_pairs: Array) -> float:
    """Of a number that depends on images by testing and by learning them: (images), (images, signs).

    Squares of whole effects count what a pair of images does together (one learnt, one tested) twice as often as it
    happens, which matters where nothing else is left: where nothing leaks, or in the difference of two that are alike
    (Efron and Stein 1981). With random signs of the tested ones only that part is left, so that it can be taken off.
    """
    pairs = float(np.mean(np.sum(by_pairs**2, axis=0))) if by_pairs.shape[1] else 0.0
    return max(float(np.sum(effect**2)) - 2 * pairs, 0.0)
