"""Ranked lists, best item first, with the group of each item where it is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.retrieval.skew.formulas import Array
from portrayal.study import Study

UNKNOWN = -1


@dataclass(frozen=True)
class RankedList:
    """The ranked items of one query.

    Items with equal scores share their ranks: each counts in every top k with the same fraction. So neither the order
    of rows nor that of names favours a group.
    """

    query: str
    items: tuple[str, ...]  # best first
    scores: Array
    group: NDArray[np.int64]  # group index of each item, or UNKNOWN

    @cached_property
    def block_starts(self) -> NDArray[np.int64]:
        """The index at which each block of tied items begins."""
        return np.flatnonzero(np.append(True, np.diff(self.scores) != 0))

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """1 for the best; tied items have the best rank of their block."""
        return np.repeat(self.block_starts + 1, self._sizes)

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.diff(np.append(self.block_starts, len(self.items)))

    def cumulative_counts(self, groups: int, permuted: NDArray[np.int64] | None = None) -> Array:
        """Expected count of each group down to each rank: (.., items, groups).

        `permuted` replaces the groups of the items: (.., items).
        """
        one_hot = np.vstack([np.eye(groups), np.zeros(groups)])  # UNKNOWN is the last row
        rows = one_hot[self.group if permuted is None else permuted]
        if len(self.block_starts) < len(self.items):
            means = np.add.reduceat(rows, self.block_starts, axis=-2) / self._sizes[:, None]
            rows = np.repeat(means, self._sizes, axis=-2)
        counts: Array = rows.cumsum(axis=-2)
        return counts

    def in_top(self, k: int) -> NDArray[np.bool_]:
        """Which items are in the top k, including those tied with the last one."""
        return np.asarray(self.scores >= self.scores[min(k, len(self.scores)) - 1])


def counts_at(cumulative: Array, k: int) -> Array:
    """The counts at rank k, or of the whole list where it is shorter."""
    return cumulative[..., min(k, cumulative.shape[-2]) - 1, :]


def read_lists(study: Study, system: str, attribute: str, groups: Sequence[str]) -> list[RankedList]:
    """The ranked lists of one system, sorted by query."""
    group_index = {group: number for number, group in enumerate(groups)}
    # The name decides only where a tied item is shown.
    rankings = study.ranked_items(attribute).filter(pl.col("system") == system)
    rankings = rankings.sort("query", "score", "image_id", descending=[False, True, False])
    lists = []
    for rows in rankings.partition_by("query", maintain_order=True):
        group = [UNKNOWN if name is None else group_index[name] for name in rows[attribute]]
        scores = rows["score"].to_numpy().astype(np.float64)
        items = tuple(rows["image_id"].to_list())
        lists.append(RankedList(rows["query"][0], items, scores, np.array(group, dtype=np.int64)))
    return lists
