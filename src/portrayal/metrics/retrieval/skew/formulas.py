"""How groups are spread over the top of a list: the published formulas on bare counts.

Groups are the last axis, and places of a list the one before it; any others come first, so that the same lines
serve one list and a thousand dealings of it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import rel_entr

Array = NDArray[np.float64]


def shares(counts: Array) -> Array:
    """Of each group among the people counted; nan where there is nobody."""
    total = counts.sum(axis=-1, keepdims=True)
    made: Array = np.divide(counts, total, out=np.full(counts.shape, np.nan), where=total > 0)
    return made


def bias(share: Array) -> Array:
    """(N_g - N_others) / (N_g + N_others), of -1 (none of the group) to 1 (nobody else).

    >>> bias(shares(np.array([7.0, 3.0]))).round(3).tolist()
    [0.4, -0.4]
    """
    made: Array = 2 * share - 1
    return made


def distance(share: Array, reference: Array) -> Array:
    """Sum over groups of |share - reference|: of two groups, how far the bias is from what it should be."""
    made: Array = np.abs(share - reference).sum(axis=-1)
    return made


def skew(share: Array, reference: Array) -> Array:
    """ln(share / reference): minus infinity where the group is absent, nan where it has no share of either.

    >>> skew(np.array([0.75, 0.25]), np.array([0.5, 0.5])).round(3).tolist()
    [0.405, -0.693]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        made: Array = np.log(share / reference)
    return made


def max_skew(share: Array, reference: Array) -> Array:
    """The largest skew of any group: 0 or more, since a share that is lower in one group is higher in another."""
    found = skew(share, reference)
    largest = np.where(np.isnan(found), -np.inf, found).max(axis=-1)
    made: Array = np.where(np.isnan(share).any(axis=-1), np.nan, np.maximum(largest, 0.0))
    return made


def ndkl(upto: Array, reference: Array) -> Array:
    """Normalised discounted Kullback-Leibler divergence; `upto` counts each group from the top to each place.

    Places above the first person whose group is known have no distribution, and no weight.

    >>> alternating = np.array([[1.0, 0.0], [1.0, 1.0]])  # KL: ln 2 at the first place, 0 at the second
    >>> round(float(ndkl(alternating, np.array([0.5, 0.5]))), 4)  # ln 2 / (1 + 1 / log2(3))
    0.425
    """
    share = shares(upto)
    known = ~np.isnan(share).any(axis=-1)
    apart = np.maximum(rel_entr(np.nan_to_num(share), reference).sum(axis=-1), 0.0)
    weight = known / np.log2(np.arange(upto.shape[-2]) + 2)
    total = weight.sum(axis=-1)
    # A place without weight must not make 0 times infinity.
    summed = np.where(known, apart * weight, 0.0).sum(axis=-1)
    made: Array = np.divide(summed, total, out=np.full(total.shape, np.nan), where=total > 0)
    return made
