"""The published formulas of ranking skew, on arrays of counts.

Groups are the last axis, ranks the one before it. Leading axes are free, so that the same code handles one list and a
thousand permutations of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

Array = NDArray[np.float64]


def shares(counts: Array) -> Array:
    """Share of each group among the items counted; nan where there are none."""
    total = counts.sum(axis=-1, keepdims=True)
    result: Array = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    return result


def bias(share: Array) -> Array:
    """(N_g - N_others) / (N_g + N_others), from -1 (none of the group) to 1 (nobody else).

    >>> bias(shares(np.array([7.0, 3.0]))).round(3).tolist()
    [0.4, -0.4]
    """
    result: Array = 2 * share - 1
    return result


def distance(share: Array, reference: Array) -> Array:
    """Sum over groups of |share - reference|; for two groups, the distance of the bias from its ideal."""
    result: Array = np.abs(share - reference).sum(axis=-1)
    return result


def skew(share: Array, reference: Array) -> Array:
    """ln(share / reference): minus infinity where the group is absent, nan where both shares are 0.

    >>> skew(np.array([0.75, 0.25]), np.array([0.5, 0.5])).round(3).tolist()
    [0.405, -0.693]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        result: Array = np.log(share / reference)
    return result


def max_skew(share: Array, reference: Array) -> Array:
    """The largest skew of any group; never below 0, since shares sum to 1."""
    skews = skew(share, reference)
    largest = np.where(np.isnan(skews), -np.inf, skews).max(axis=-1)
    result: Array = np.where(np.isnan(share).any(axis=-1), np.nan, np.maximum(largest, 0.0))
    return result


def ndkl(cumulative: Array, reference: Array) -> Array:
    """Normalised discounted Kullback-Leibler divergence; `cumulative` counts each group down to each rank.

    Ranks above the first item with a known group have no distribution and weight 0.

    >>> alternating = np.array([[1.0, 0.0], [1.0, 1.0]])  # KL: ln 2 at rank 1, 0 at rank 2
    >>> round(float(ndkl(alternating, np.array([0.5, 0.5]))), 4)  # ln 2 / (1 + 1 / log2(3))
    0.425
    """
    share = shares(cumulative)
    known = ~np.isnan(share).any(axis=-1)
    divergence = np.maximum(rel_entr(np.nan_to_num(share), reference).sum(axis=-1), 0.0)
    weight = known / np.log2(np.arange(cumulative.shape[-2]) + 2)
    total = weight.sum(axis=-1)
    # Avoid 0 times infinity at ranks without weight.
    summed = np.where(known, divergence * weight, 0.0).sum(axis=-1)
    result: Array = np.divide(summed, total, out=np.full(total.shape, np.nan), where=total > 0)
    return result
