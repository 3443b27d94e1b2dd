"""Means of a bias over pictures, concepts and templates, each picture a cluster, and the floor under them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.stats import Estimate, Resampler, bootstrap

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
FLIPS = 1000
_TOGETHER = 100  # flips that are held at once
GROUPS = 2


@dataclass(frozen=True)
class Means:
    """What instances of one kind say: values toward the first group, nan where they are not defined."""

    values: Array  # (instances, templates)
    image: Whole  # of each instance, as the resampler numbers them
    concept: Whole
    group: Whole  # 0 or 1
    concepts: int
    draw: Resampler

    @property
    def templates(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def _counts(self) -> sparse.csr_array:
        """A row for each image; for each template, concept and group the sum of what is defined, and how many."""
        rows, columns, sums = [], [], []
        cell = self.concept * GROUPS + self.group
        width = self.concepts * GROUPS
        for template in range(self.templates):
            known = np.isfinite(self.values[:, template])
            at = 2 * (template * width + cell[known])
            for column, numbers in ((at, self.values[known, template]), (at + 1, np.ones(known.sum()))):
                rows.append(self.image[known])
                columns.append(column)
                sums.append(numbers)
        shape = (len(self.draw.names), 2 * self.templates * width)
        where = (np.concatenate(rows), np.concatenate(columns))
        return sparse.csr_array((np.concatenate(sums), where), shape=shape)

    def _by_group(self, totals: Array) -> Array:
        """(draws, templates, concepts, groups)"""
        cells = totals.reshape(len(totals), self.templates, self.concepts, GROUPS, 2)
        return _over(cells[..., 0], cells[..., 1])

    def _by_concept(self, totals: Array, pooled: bool = False) -> Array:
        """(draws, templates, concepts): the mean of both groups' means, or of all instances."""
        if not pooled:
            made: Array = self._by_group(totals).mean(axis=-1)
            return made
        cells = totals.reshape(len(totals), self.templates, self.concepts, GROUPS, 2).sum(axis=3)
        return _over(cells[..., 0], cells[..., 1])

    def _sizes(self, totals: Array, pooled: bool = False) -> Array:
        """(draws, templates): the mean over concepts of how far each leans, whichever way."""
        return _mean(np.abs(self._by_concept(totals, pooled)), axis=-1)

    @cached_property
    def images(self) -> Whole:
        """(concepts, groups): how many images have a value, in any template."""
        known = np.isfinite(self.values).any(axis=1)
        cells = np.unique(
            np.column_stack([self.concept[known], self.group[known], self.image[known]]), axis=0
        )
        made = np.zeros((self.concepts, GROUPS), dtype=np.int64)
        np.add.at(made, (cells[:, 0], cells[:, 1]), 1)
        return made

    @property
    def pictures(self) -> int:
        """How many images have a value of a concept that is defined."""
        known = np.isfinite(self.values).any(axis=1) & self.defined[self.concept]
        return len(np.unique(self.image[known]))

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Which concepts have a value in every template."""
        return np.asarray(np.isfinite(self._by_concept(self._point)).all(axis=(0, 1)))

    @cached_property
    def _point(self) -> Array:
        return np.asarray(self._counts.sum(axis=0), dtype=np.float64).reshape(1, -1)

    def sizes(self, pooled: bool = False) -> list[Estimate]:
        """The mean over concepts of the absolute value: over all templates, then of each.

        Noise pushes such a mean up, in every draw once more: the draws are moved back to where the value lies.
        """

        def statistic(totals: Array) -> Array:
            each = self._sizes(totals, pooled)
            return np.column_stack([each.mean(axis=1), each])

        return bootstrap(self._counts, statistic, self.draw, "centred")

    def leans(
        self, template: int | None = None, group: int | None = None, pooled: bool = False
    ) -> list[Estimate]:
        """Of each concept, toward the first group: over all templates or in one; of one group's pictures or both's."""

        def statistic(totals: Array) -> Array:
            each = self._by_concept(totals, pooled) if group is None else self._by_group(totals)[..., group]
            return np.asarray(each.mean(axis=1) if template is None else each[:, template])

        return bootstrap(self._counts, statistic, self.draw)

    def gaps(self, template: int | None = None) -> list[Estimate]:
        """By how much the first group's pictures have more than the second's, of each concept."""

        def statistic(totals: Array) -> Array:
            each = self._by_group(totals)
            each = each.mean(axis=1) if template is None else each[:, template]
            return np.asarray(each[..., 0] - each[..., 1])

        return bootstrap(self._counts, statistic, self.draw)

    def gap_size(self) -> Estimate:
        """The mean over concepts of the absolute value of their gaps."""

        def statistic(totals: Array) -> Array:
            each = self._by_group(totals).mean(axis=1)
            return _mean(np.abs(each[..., 0] - each[..., 1]), axis=-1)

        return bootstrap(self._counts, statistic, self.draw, "centred")[0]

    def sizes_beyond(self, other: Means) -> list[Estimate]:
        """By how much `sizes` are larger than another's of the same images: the same draws of images for both."""

        def statistic(own: Array, others: Array) -> Array:
            each = self._sizes(own) - other._sizes(others)
            return np.column_stack([each.mean(axis=1), each])

        return self._beside(other, statistic, "centred")

    def leans_beyond(self, other: Means) -> list[Estimate]:
        """What is left of how far each concept leans once as much is taken off as another leans, whichever way.

        Another that leans the other way takes off as much: its side means nothing, and must not add to a bias.
        """

        def statistic(own: Array, others: Array) -> Array:
            lean, off = self._by_concept(own).mean(axis=1), other._by_concept(others).mean(axis=1)
            left = np.sign(lean) * np.maximum(np.abs(lean) - np.abs(off), 0.0)
            return np.asarray(left + 0.0)  # 0 and not -0, which would be printed

        return self._beside(other, statistic, "percentile")

    def _beside(
        self, other: Means, statistic: Callable[[Array, Array], Array], method: str
    ) -> list[Estimate]:
        """A statistic of the totals of both, in the same draws of images."""
        both = sparse.hstack([self._counts, other._counts]).tocsr()
        width = self._counts.shape[1]
        return bootstrap(
            both, lambda totals: statistic(totals[:, :width], totals[:, width:]), self.draw, method
        )

    def floors(self, seed: int, flips: int = FLIPS) -> Array:
        """What `sizes` would be if signs meant nothing: the signs of each image are turned by lot."""
        sums = self._counts.tocsc()[:, 0::2].tocsr()
        random, parts = np.random.default_rng(seed), []
        for start in range(0, flips, _TOGETHER):
            signs = random.integers(0, 2, (min(_TOGETHER, flips - start), sums.shape[0])) * 2.0 - 1.0
            totals = np.repeat(self._point, len(signs), axis=0)
            totals[:, 0::2] = signs @ sums
            parts.append(self._sizes(totals))
        each = np.concatenate(parts)
        made: Array = np.concatenate([[each.mean()], each.mean(axis=0)])
        return made


def _over(sums: Array, counts: Array) -> Array:
    made: Array = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return made


def _mean(values: Array, axis: int) -> Array:
    """Of what is defined; nan where nothing is."""
    known = np.isfinite(values)
    return _over(np.where(known, values, 0.0).sum(axis=axis), known.sum(axis=axis).astype(np.float64))
