"""Cluster-robust variances, with one or several kinds of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from portrayal.stats.bootstrap import Array

Indices = NDArray[np.int64]


def clustered_variance(effect: Array, cluster: Indices) -> float:
    """The cluster-robust variance of a sum of effects that add up to 0.

    >>> clustered_variance(np.array([1.0, 1.0, -1.0, -1.0]), np.array([0, 0, 1, 2]))
    6.0
    """
    return float(np.sum(np.bincount(cluster, weights=effect) ** 2))


def multiway_variance(effect: Array, *ways: Indices) -> float:
    """Multi-way cluster-robust variance of a sum of effects (Cameron, Gelbach and Miller 2011).

    Variances by each kind of cluster are added, those by the intersection of two kinds subtracted, and so on. Never
    below the variance by any single kind.
    """
    total = 0.0
    for count in range(1, len(ways) + 1):
        for subset in combinations(ways, count):
            total += (-1) ** (count + 1) * clustered_variance(effect, _intersection(subset))
    return max(total, *(clustered_variance(effect, way) for way in ways))


def _intersection(ways: Sequence[Indices]) -> Indices:
    """Labels of the intersection of several kinds of clusters."""
    labels = ways[0]
    for way in ways[1:]:
        _, labels = np.unique(labels * (way.max(initial=0) + 1) + way, return_inverse=True)
    return labels


def training_variance(effect: Array, pair_effects: Array) -> float:
    """Variance of a number that depends on images both as test and as training data: (images), (images, signs).

    Squared total effects count the part of each pair of images (one in training, one in test) twice (Efron and Stein
    1981), which matters where little else is left: without leakage, or in the difference of two similar systems. With
    random signs on the test images only that part remains, so it can be subtracted.
    """
    pair_part = float(np.mean(np.sum(pair_effects**2, axis=0))) if pair_effects.shape[1] else 0.0
    return max(float(np.sum(effect**2)) - 2 * pair_part, 0.0)
