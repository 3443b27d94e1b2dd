"""A list that a search gives, best first, with the group of each item where it is known."""

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
    """Items of equal score share their places: each counts in every top with the same part. So neither the order of
    rows nor that of names puts one group before another.
    """

    query: str
    items: tuple[str, ...]  # best first
    scores: Array
    group: NDArray[np.int64]  # of each item; UNKNOWN where it is not known

    @cached_property
    def block_starts(self) -> NDArray[np.int64]:
        """Where each run of items of one score begins."""
        return np.flatnonzero(np.append(True, np.diff(self.scores) != 0))

    @cached_property
    def ranks(self) -> NDArray[np.int64]:
        """1 for the best; tied items have the best rank of their block."""
        return np.repeat(self.block_starts + 1, self._sizes)

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.diff(np.append(self.block_starts, len(self.items)))

    def counted(self, groups: int, dealt: NDArray[np.int64] | None = None) -> Array:
        """How many of each group are expected from the top to each place: (.., items, groups).

        `dealt` has other groups for the items, (.., items).
        """
        one = np.vstack([np.eye(groups), np.zeros(groups)])  # UNKNOWN is the last row
        rows = one[self.group if dealt is None else dealt]
        if len(self.block_starts) < len(self.items):
            means = np.add.reduceat(rows, self.block_starts, axis=-2) / self._sizes[:, None]
            rows = np.repeat(means, self._sizes, axis=-2)
        made: Array = rows.cumsum(axis=-2)
        return made

    def top(self, k: int) -> NDArray[np.bool_]:
        """Which items have a part in the first k places."""
        return np.asarray(self.scores >= self.scores[min(k, len(self.scores)) - 1])


def at(upto: Array, k: int) -> Array:
    """The counts of the first k places; of the whole list where it is shorter."""
    return upto[..., min(k, upto.shape[-2]) - 1, :]


def read_lists(study: Study, system: str, attribute: str, groups: Sequence[str]) -> list[RankedList]:
    """The lists of one system, by query."""
    place = {group: number for number, group in enumerate(groups)}
    # The name decides where a tied item is shown, and no number.
    mine = study.ranked(attribute).filter(pl.col("system") == system)
    mine = mine.sort("query", "score", "image_id", descending=[False, True, False])
    made = []
    for rows in mine.partition_by("query", maintain_order=True):
        group = [UNKNOWN if name is None else place[name] for name in rows[attribute]]
        scores = rows["score"].to_numpy().astype(np.float64)
        items = tuple(rows["image_id"].to_list())
        made.append(RankedList(rows["query"][0], items, scores, np.array(group, dtype=np.int64)))
    return made
