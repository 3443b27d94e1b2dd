"""What lists would look like if the groups of their items were a matter of chance."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.retrieval.skew.formulas import Array, ndkl, shares
from portrayal.metrics.retrieval.skew.ranked_lists import UNKNOWN, RankedList, at
from portrayal.metrics.retrieval.skew.reference import Reference

_CHUNK = 50  # dealings that are held at once

Places = NDArray[np.int64]


def deal_lists(
    lists: Sequence[RankedList],
    reference: Reference,
    groups: int,
    tops: Sequence[int],
    depth: int | None,
    seed: int,
    n_resamples: int,
) -> tuple[dict[int, Array], Array]:
    """Shares of the groups in each top, k -> (draws, lists, groups), and the NDKL, (draws, lists), by chance.

    Held against its own shares, a list keeps the groups it has, dealt to its items anew. Held against other shares,
    every person's group is drawn from those. An item has one random number in a draw, whichever lists it is in: what
    stands in several lists is of one group in all of them, as it is in truth, and lists that are alike are not taken
    for as many independent ones.
    """
    items = sorted({item for listed in lists for item in listed.items})
    number = {item: place for place, item in enumerate(items)}
    placed = [np.array([number[item] for item in listed.items], dtype=np.int64) for listed in lists]
    share = {k: np.full((n_resamples, len(lists), groups), np.nan) for k in tops}
    apart = np.full((n_resamples, len(lists)), np.nan)
    for start in range(0, n_resamples, _CHUNK):
        numbers = range(start, min(start + _CHUNK, n_resamples))
        keys = np.array([np.random.default_rng([seed, draw]).random(len(items)) for draw in numbers])
        drawn = slice(start, start + len(keys))
        alike: dict[tuple[bytes, bytes], Places] = {}  # lists of the same items are dealt once
        for place, (listed, where) in enumerate(zip(lists, placed, strict=True)):
            known = listed.group != UNKNOWN
            if not known.any():
                continue
            dealt = np.full((len(keys), len(where)), UNKNOWN)
            if reference.shares is None:
                dealt[:, known] = _own_groups(keys, where[known], listed.group[known], groups, alike)
            else:
                edges = np.cumsum(reference.shares)[:-1]
                dealt[:, known] = np.searchsorted(edges, keys[:, where[known]], side="right")
            upto = listed.counted(groups, dealt)
            for k in tops:
                share[k][drawn, place] = shares(at(upto, k))
            apart[drawn, place] = ndkl(upto[:, :depth], reference.of(listed, groups))
    return share, apart


def _own_groups(
    keys: Array, where: Places, group: Places, groups: int, alike: dict[tuple[bytes, bytes], Places]
) -> Places:
    """The groups that a list has, dealt by the items' random numbers: the lowest get the first group, and so on."""
    counts = np.bincount(group, minlength=groups)
    names = np.sort(where)
    key = (names.tobytes(), counts.tobytes())
    if key not in alike:
        order = keys[:, names].argsort(axis=1)
        made = np.empty_like(order)
        np.put_along_axis(
            made, order, np.broadcast_to(np.repeat(np.arange(groups), counts), order.shape), axis=1
        )
        alike[key] = made
    return alike[key][:, np.searchsorted(names, where)]
