"""The null distribution of ranked lists: groups of items are permuted, or drawn from the reference shares."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.retrieval.skew.formulas import Array, ndkl, shares
from portrayal.metrics.retrieval.skew.ranked_lists import UNKNOWN, RankedList, counts_at
from portrayal.metrics.retrieval.skew.reference import Reference

_CHUNK = 50  # permutations held in memory at once

Indices = NDArray[np.int64]


def permute_lists(
    lists: Sequence[RankedList],
    reference: Reference,
    groups: int,
    cutoffs: Sequence[int],
    depth: int | None,
    seed: int,
    n_permutations: int,
) -> tuple[dict[int, Array], Array]:
    """Null distribution of the top-k shares, k -> (permutations, lists, groups), and of NDKL, (permutations, lists).

    With the list's own shares as reference, the groups of its items are permuted. With other shares, each item's group
    is drawn from those. An item has one random key per permutation, whichever lists it is in: an item of several lists
    has the same group in all of them, so similar lists are not treated as independent.
    """
    items = sorted({item for ranked in lists for item in ranked.items})
    item_index = {item: list_index for list_index, item in enumerate(items)}
    item_indices = [np.array([item_index[item] for item in ranked.items], dtype=np.int64) for ranked in lists]
    share = {k: np.full((n_permutations, len(lists), groups), np.nan) for k in cutoffs}
    divergence = np.full((n_permutations, len(lists)), np.nan)
    for start in range(0, n_permutations, _CHUNK):
        numbers = range(start, min(start + _CHUNK, n_permutations))
        keys = np.array([np.random.default_rng([seed, draw]).random(len(items)) for draw in numbers])
        chunk = slice(start, start + len(keys))
        cache: dict[tuple[bytes, bytes], Indices] = {}  # lists of the same items are permuted once
        for list_index, (ranked, indices) in enumerate(zip(lists, item_indices, strict=True)):
            labelled = ranked.group != UNKNOWN
            if not labelled.any():
                continue
            permuted = np.full((len(keys), len(indices)), UNKNOWN)
            if reference.shares is None:
                permuted[:, labelled] = _permuted_groups(
                    keys, indices[labelled], ranked.group[labelled], groups, cache
                )
            else:
                edges = np.cumsum(reference.shares)[:-1]
                permuted[:, labelled] = np.searchsorted(edges, keys[:, indices[labelled]], side="right")
            cumulative = ranked.cumulative_counts(groups, permuted)
            for k in cutoffs:
                share[k][chunk, list_index] = shares(counts_at(cumulative, k))
            divergence[chunk, list_index] = ndkl(cumulative[:, :depth], reference.of(ranked, groups))
    return share, divergence


def _permuted_groups(
    keys: Array,
    indices: Indices,
    group: Indices,
    groups: int,
    cache: dict[tuple[bytes, bytes], Indices],
) -> Indices:
    """The groups of a list, permuted by the items' random keys: the lowest keys get the first group, and so on."""
    counts = np.bincount(group, minlength=groups)
    ordered = np.sort(indices)
    key = (ordered.tobytes(), counts.tobytes())
    if key not in cache:
        order = keys[:, ordered].argsort(axis=1)
        permuted = np.empty_like(order)
        np.put_along_axis(
            permuted, order, np.broadcast_to(np.repeat(np.arange(groups), counts), order.shape), axis=1
        )
        cache[key] = permuted
    return cache[key][:, np.searchsorted(ordered, indices)]
