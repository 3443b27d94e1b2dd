"""Means of biases over images, concepts and templates, with each image a cluster, and their noise floor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.stats import Estimate, Resampler, bootstrap

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
N_SIGN_FLIPS = 1000
_FLIP_BATCH = 100  # sign flips that are held in memory together
N_GROUPS = 2


@dataclass(frozen=True)
class Means:
    """Biases of the instances of one kind: positive toward the first group, nan where undefined."""

    values: Array  # (instances, templates)
    image_index: IntArray  # of each instance, as the resampler numbers images
    concept_index: IntArray
    group_index: IntArray  # 0 or 1
    n_concepts: int
    resampler: Resampler

    @property
    def n_templates(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def _cell_sums(self) -> sparse.csr_array:
        """A row for each image; for each template, concept and group, the sum of defined values and their count."""
        rows, columns, sums = [], [], []
        cell = self.concept_index * N_GROUPS + self.group_index
        width = self.n_concepts * N_GROUPS
        for template in range(self.n_templates):
            is_defined = np.isfinite(self.values[:, template])
            value_column = 2 * (template * width + cell[is_defined])
            for column, values in (
                (value_column, self.values[is_defined, template]),
                (value_column + 1, np.ones(is_defined.sum())),
            ):
                rows.append(self.image_index[is_defined])
                columns.append(column)
                sums.append(values)
        shape = (len(self.resampler.names), 2 * self.n_templates * width)
        coordinates = (np.concatenate(rows), np.concatenate(columns))
        return sparse.csr_array((np.concatenate(sums), coordinates), shape=shape)

    def _by_group(self, totals: Array) -> Array:
        """(resamples, templates, concepts, groups)"""
        cells = totals.reshape(len(totals), self.n_templates, self.n_concepts, N_GROUPS, 2)
        return _divide(cells[..., 0], cells[..., 1])

    def _by_concept(self, totals: Array, pooled: bool = False) -> Array:
        """(resamples, templates, concepts): the mean of both groups' means, or of all instances."""
        if not pooled:
            means: Array = self._by_group(totals).mean(axis=-1)
            return means
        cells = totals.reshape(len(totals), self.n_templates, self.n_concepts, N_GROUPS, 2).sum(axis=3)
        return _divide(cells[..., 0], cells[..., 1])

    def _mean_absolute(self, totals: Array, pooled: bool = False) -> Array:
        """(resamples, templates): the mean over concepts of the absolute bias."""
        return _nanmean(np.abs(self._by_concept(totals, pooled)), axis=-1)

    @cached_property
    def n_images_by_concept(self) -> IntArray:
        """(concepts, groups): number of images with a value in any template."""
        is_defined = np.isfinite(self.values).any(axis=1)
        cells = np.unique(
            np.column_stack(
                [self.concept_index[is_defined], self.group_index[is_defined], self.image_index[is_defined]]
            ),
            axis=0,
        )
        counts = np.zeros((self.n_concepts, N_GROUPS), dtype=np.int64)
        np.add.at(counts, (cells[:, 0], cells[:, 1]), 1)
        return counts

    @property
    def n_images(self) -> int:
        """Number of images with a value for a concept that is defined."""
        is_defined = np.isfinite(self.values).any(axis=1) & self.defined[self.concept_index]
        return len(np.unique(self.image_index[is_defined]))

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Whether each concept has a value in every template."""
        return np.asarray(np.isfinite(self._by_concept(self._totals)).all(axis=(0, 1)))

    @cached_property
    def _totals(self) -> Array:
        return np.asarray(self._cell_sums.sum(axis=0), dtype=np.float64).reshape(1, -1)

    def mean_absolute(self, pooled: bool = False) -> list[Estimate]:
        """Return the mean absolute bias over concepts: over all templates, then of each template.

        Noise pushes such a mean up, once more in every resample: the resamples are centred on the estimate.
        """

        def statistic(totals: Array) -> Array:
            means = self._mean_absolute(totals, pooled)
            return np.column_stack([means.mean(axis=1), means])

        return bootstrap(self._cell_sums, statistic, self.resampler, "centred")

    def concept_biases(
        self, template: int | None = None, group: int | None = None, pooled: bool = False
    ) -> list[Estimate]:
        """Return the bias of each concept toward the first group.

        Over all templates or in one; over the images of one group or of both.
        """

        def statistic(totals: Array) -> Array:
            means = self._by_concept(totals, pooled) if group is None else self._by_group(totals)[..., group]
            return np.asarray(means.mean(axis=1) if template is None else means[:, template])

        return bootstrap(self._cell_sums, statistic, self.resampler)

    def group_differences(self, template: int | None = None) -> list[Estimate]:
        """Return, for each concept, the first group's mean minus the second's."""

        def statistic(totals: Array) -> Array:
            means = self._by_group(totals)
            means = means.mean(axis=1) if template is None else means[:, template]
            return np.asarray(means[..., 0] - means[..., 1])

        return bootstrap(self._cell_sums, statistic, self.resampler)

    def mean_absolute_difference(self) -> Estimate:
        """Return the mean over concepts of the absolute group difference."""

        def statistic(totals: Array) -> Array:
            means = self._by_group(totals).mean(axis=1)
            return _nanmean(np.abs(means[..., 0] - means[..., 1]), axis=-1)

        return bootstrap(self._cell_sums, statistic, self.resampler, "centred")[0]

    def mean_absolute_excess_over(self, other: Means) -> list[Estimate]:
        """Return `mean_absolute` minus that of other values of the same images, with the same resamples of images."""

        def statistic(own_totals: Array, other_totals: Array) -> Array:
            difference = self._mean_absolute(own_totals) - other._mean_absolute(other_totals)
            return np.column_stack([difference.mean(axis=1), difference])

        return self._bootstrap_jointly(other, statistic, "centred")

    def concept_biases_beyond(self, other: Means) -> list[Estimate]:
        """Return each concept's bias, shrunk toward 0 by the absolute bias of other values of the same images.

        Other values with a bias of the opposite sign shrink it as much: their sign means nothing, and must
        not add to a bias.
        """

        def statistic(own_totals: Array, other_totals: Array) -> Array:
            own = self._by_concept(own_totals).mean(axis=1)
            others = other._by_concept(other_totals).mean(axis=1)
            remainder = np.sign(own) * np.maximum(np.abs(own) - np.abs(others), 0.0)
            return np.asarray(remainder + 0.0)  # 0 and not -0, which would be printed

        return self._bootstrap_jointly(other, statistic, "percentile")

    def _bootstrap_jointly(
        self, other: Means, statistic: Callable[[Array, Array], Array], method: str
    ) -> list[Estimate]:
        """Bootstrap a statistic of the totals of both, with the same resamples of images."""
        joint_sums = sparse.hstack([self._cell_sums, other._cell_sums]).tocsr()
        width = self._cell_sums.shape[1]
        return bootstrap(
            joint_sums,
            lambda totals: statistic(totals[:, :width], totals[:, width:]),
            self.resampler,
            method,
        )

    def noise_floors(self, seed: int, n_flips: int = N_SIGN_FLIPS) -> Array:
        """Return the expected `mean_absolute` under random signs: the sign of each image's values is flipped."""
        value_sums = self._cell_sums.tocsc()[:, 0::2].tocsr()
        rng, batches = np.random.default_rng(seed), []
        for start in range(0, n_flips, _FLIP_BATCH):
            signs = rng.integers(0, 2, (min(_FLIP_BATCH, n_flips - start), value_sums.shape[0])) * 2.0 - 1.0
            totals = np.repeat(self._totals, len(signs), axis=0)
            totals[:, 0::2] = signs @ value_sums
            batches.append(self._mean_absolute(totals))
        means = np.concatenate(batches)
        floors: Array = np.concatenate([[means.mean()], means.mean(axis=0)])
        return floors


def _divide(sums: Array, counts: Array) -> Array:
    quotient: Array = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return quotient


def _nanmean(values: Array, axis: int) -> Array:
    """Return the mean of the defined values; nan where there is none."""
    is_defined = np.isfinite(values)
    return _divide(
        np.where(is_defined, values, 0.0).sum(axis=axis), is_defined.sum(axis=axis).astype(np.float64)
    )
