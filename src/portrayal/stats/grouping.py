"""Values of all clusters, of each group, and the gap between groups, from counts per cluster.

A metric hands over counts per image and a function from summed counts to its values; the intervals, the gaps and their
p values follow. Groups share the resamples of images, so the difference of two groups is a paired one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from portrayal.stats.bootstrap import Array, Estimate, Resampler, Statistic, bootstrap
from portrayal.stats.compare import paired_difference
from portrayal.stats.permutation import permutation_test


@dataclass(frozen=True)
class Gap:
    """The largest difference between the values of two groups that have enough images; `p` by permuting groups."""

    estimate: Estimate
    p: float
    low_group: str
    high_group: str


@dataclass(frozen=True)
class GroupedCounts:
    """Counts of clusters that belong to groups.

    Parameters
    ----------
    counts
        One row per cluster of the resampler, one column per count.
    measured
        Per value of the statistic: the clusters that it is computed from, (values, clusters).
    statistic
        From summed counts (n, columns) to values (n, values).
    resampler
        The resamples of the clusters.
    group_by_cluster
        The group of each cluster; None where it is unknown.
    min_size
        Number of measured clusters that a group needs to enter a gap.
    """

    counts: Array
    measured: NDArray[np.bool_]
    statistic: Statistic
    resampler: Resampler
    group_by_cluster: Sequence[str | None]
    min_size: int

    @cached_property
    def groups(self) -> tuple[str, ...]:
        return tuple(sorted({group for group in self.group_by_cluster if group is not None}))

    @cached_property
    def is_member(self) -> NDArray[np.bool_]:
        """Whether a cluster belongs to a group: (groups, clusters)."""
        members = [[group == name for group in self.group_by_cluster] for name in self.groups]
        return np.array(members, dtype=bool).reshape(len(self.groups), len(self.group_by_cluster))

    @cached_property
    def estimates(self) -> list[list[Estimate]]:
        """Per value: the estimate of all clusters, then of each group."""
        by_group = np.hstack([self.counts, *(self.counts * members[:, None] for members in self.is_member)])
        n_blocks = 1 + len(self.groups)

        def statistic(sums: Array) -> Array:
            return np.hstack([self.statistic(block) for block in np.split(sums, n_blocks, axis=1)])

        estimates = bootstrap(by_group, statistic, self.resampler)
        n_values = len(self.measured)
        return [estimates[index::n_values] for index in range(n_values)]

    def members(self, group: str | None) -> NDArray[np.bool_]:
        """Return whether each cluster belongs to a group; None stands for all clusters."""
        if group is None:
            return np.ones(len(self.group_by_cluster), dtype=bool)
        return np.asarray(self.is_member[self.groups.index(group)], dtype=bool)

    def size(self, value: int, group: str | None) -> int:
        """Return the number of clusters that a value of a group is computed from."""
        return int((self.measured[value] & self.members(group)).sum())

    @cached_property
    def is_comparable(self) -> NDArray[np.bool_]:
        """Whether a group has a value from enough clusters: (groups, values)."""
        sizes = self.is_member.astype(np.int64) @ self.measured.T.astype(np.int64)
        defined = [[estimate.value is not None for estimate in estimates[1:]] for estimates in self.estimates]
        return np.asarray((sizes >= self.min_size) & np.array(defined, dtype=bool).T, dtype=bool)

    def compared(self, value: int) -> NDArray[np.bool_]:
        """Return whether each cluster is behind a value and belongs to a group that can be compared."""
        members = self.is_member[self.is_comparable[:, value]].any(axis=0)
        return np.asarray(self.measured[value] & members, dtype=bool)

    def gap(self, value: int) -> Gap | None:
        """Return the gap of a value; None where fewer than two groups can be compared."""
        groups = np.flatnonzero(self.is_comparable[:, value]).tolist()
        if len(groups) < 2:
            return None
        estimates = self.estimates[value]
        ranked = sorted(groups, key=lambda group: estimates[group + 1].value or 0.0)
        low, high = estimates[ranked[0] + 1], estimates[ranked[-1] + 1]
        difference = paired_difference(low.value or 0.0, high.value or 0.0, low.replicates, high.replicates)
        replicates = high.replicates - low.replicates
        estimate = Estimate(difference.value, difference.low, difference.high, difference.se, replicates)
        return Gap(estimate, float(self._p_values[value]), self.groups[ranked[0]], self.groups[ranked[-1]])

    @cached_property
    def _p_values(self) -> Array:
        """The p value of each gap: groups are permuted among the clusters that have one."""
        labelled = np.flatnonzero(self.is_member.any(axis=0))
        counts, is_member = self.counts[labelled], self.is_member[:, labelled].astype(np.float64)

        def gaps(order: NDArray[np.int64]) -> Array:
            values = np.where(self.is_comparable, self.statistic(is_member[:, order] @ counts), np.nan)
            high = np.where(np.isnan(values), -np.inf, values).max(axis=0)
            low = np.where(np.isnan(values), np.inf, values).min(axis=0)
            return np.where(np.isfinite(high), high - low, np.nan)

        return permutation_test(gaps, len(labelled), self.resampler.seed, self.resampler.n_resamples)
