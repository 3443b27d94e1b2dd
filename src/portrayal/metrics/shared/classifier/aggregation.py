"""Means over groups and repeats, with their standard errors.

Captions that share a text were tested together, and captions of one image are alike. Both lower the number of
independent captions, so both are clusters of the variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear_classifier import Array, Predictions
from portrayal.stats import (
    Estimate,
    bootstrap_p,
    clustered_variance,
    multiway_variance,
    percentile_interval,
    replicates_over_seeds,
    resampler,
    sorted_clusters,
    training_variance,
)

PERCENT = 100.0


@dataclass(frozen=True)
class RepeatedEstimate:
    """An estimate, its standard deviation over seeds, and replicates that vary both data and seeds."""

    estimate: Estimate
    std_seed: float | None = None
    replicates: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, shares: Sequence[float]) -> RepeatedEstimate:
        """Mean of one share per repeat, without an interval."""
        std = float(np.std(shares, ddof=1)) * PERCENT if len(shares) > 1 else None
        return cls(Estimate.of(float(np.mean(shares)) * PERCENT), std)

    @property
    def value(self) -> float | None:
        return self.estimate.value

    def shifted(self, constant: float, error: float) -> RepeatedEstimate:
        """Add a constant that is known up to a standard error."""
        estimate = self.estimate.shifted(constant)
        if estimate.value is None or not estimate.se:
            return RepeatedEstimate(estimate, self.std_seed, self.replicates + constant)
        wider = math.hypot(1.0, error / estimate.se)

        def widen(number: Any) -> Any:
            return None if number is None else estimate.value + (number - estimate.value) * wider

        wider_estimate = replace(
            estimate, low=widen(estimate.low), high=widen(estimate.high), se=estimate.se * wider
        )
        return RepeatedEstimate(wider_estimate, self.std_seed, widen(self.replicates + constant))

    def scaled(self, factor: float) -> RepeatedEstimate:
        """Multiply by a constant."""

        def multiply(number: float | None) -> float | None:
            return None if number is None else number * factor

        old = self.estimate
        estimate = Estimate(
            multiply(old.value),
            multiply(old.low),
            multiply(old.high),
            multiply(old.se),
            old.replicates * factor,
        )
        return RepeatedEstimate(estimate, multiply(self.std_seed), self.replicates * factor)

    @property
    def p(self) -> float | None:
        """Two-sided bootstrap p value against 0."""
        return bootstrap_p(self.replicates) if len(self.replicates) else None


@dataclass(frozen=True, eq=False)  # compared by identity, since resampled means are cached
class CaptionScores:
    """Values of every test caption: one row per test, over all repeats."""

    groups: int
    repeats: int
    repeat: NDArray[np.int64]
    group: NDArray[np.int64]
    images: tuple[str, ...]
    image: NDArray[np.int64]
    texts: tuple[str, ...]
    text: NDArray[np.int64]
    values: Array  # (rows, columns)
    train_images: tuple[str, ...]  # names of images
    training_effects: Array  # (images, columns, groups): effect of training on each image
    # (images, signs, groups): the same for the first column, with a random sign for each test
    signed_effects: Array

    @classmethod
    def of(
        cls,
        predictions: Sequence[Sequence[Predictions]],
        columns: Sequence[Sequence[Array]],
        training_effects: Sequence[Sequence[Array]],
        groups: int,
        clusters: str,
    ) -> CaptionScores:
        """Collect predictions by repeat and corpus.

        Parameters
        ----------
        predictions
            By repeat and corpus.
        columns
            For each of them the values to average: (tested, columns).
        training_effects
            For each of them the effects of its training captions on the groups' means: (captions, columns +
            signs, groups).
        groups
            Number of groups.
        clusters
            "image" or "text".
        """
        mean = np.asarray(
            np.mean([np.mean(repeat_values, axis=0) for repeat_values in training_effects], axis=0)
        )
        width = columns[0][0].shape[1]
        flat = [(repeat, pred) for repeat, repeat_values in enumerate(predictions) for pred in repeat_values]
        images = [pred.corpus.images[index] for _, pred in flat for index in pred.test]
        texts = (
            images if clusters == "image" else [pred.corpus.texts[p] for _, pred in flat for p in pred.test]
        )
        return cls(
            groups,
            len(predictions),
            np.repeat([repeat for repeat, _ in flat], [len(pred.test) for _, pred in flat]),
            np.concatenate([pred.group for _, pred in flat]),
            *sorted_clusters(images),
            *sorted_clusters(texts),
            np.concatenate([values for repeat_values in columns for values in repeat_values]),
            flat[0][1].corpus.images,
            mean[:, :width],
            mean[:, width:],
        )

    @cached_property
    def points(self) -> Array:
        """Means (repeats, groups, columns), nan for an empty group."""
        return self.means(self.sums(np.zeros(len(self.repeat), dtype=np.int64), 1))[:, 0]

    def resampled_means(self, clusters: str, seed: int, n_resamples: int) -> Array:
        """Means of resampled images or texts: (repeats, resamples, groups, columns)."""
        return _resampled_means(self, clusters, seed, n_resamples)

    def mean_by_image(self) -> dict[str, float]:
        """Mean of the first column over all tests of each image."""
        totals = np.bincount(self.image, weights=self.values[:, 0]) / np.bincount(self.image)
        return dict(zip(self.images, totals.tolist(), strict=True))

    def influence(self, group: int | None, column: int) -> Array:
        """Influence of each row on the mean over repeats of one group, or of the mean over groups."""
        sizes = np.zeros((self.repeats, self.groups))
        np.add.at(sizes, (self.repeat, self.group), 1)
        mean = self.points[self.repeat, self.group, column]
        effects = (self.values[:, column] - mean) / sizes[self.repeat, self.group] / self.repeats
        if group is None:
            return np.asarray(effects / self.groups)
        return np.asarray(np.where(self.group == group, effects, 0.0))

    def total_effects(self, group: int | None, column: int) -> tuple[Array, Array]:
        """Effect of each image by being tested and trained on, and its signed version: (images), (images,
        signs).
        """
        tested = np.bincount(
            self._train_index, weights=self.influence(group, column), minlength=len(self.train_images)
        )
        signed = select_group(self.signed_effects, group) * (column == 0)
        return tested + select_group(self.training_effects[:, column], group), signed

    @cached_property
    def _train_index(self) -> NDArray[np.int64]:
        """Index of each test caption's image among the training images."""
        index_of = {image: index for index, image in enumerate(self.train_images)}
        return np.array([index_of[image] for image in self.images], dtype=np.int64)[self.image]

    def sums(self, clusters: NDArray[np.int64], count: int) -> Array:
        """Row counts and sums of values: (repeats, clusters, groups * (1 + columns))."""
        width = 1 + self.values.shape[1]
        totals = np.zeros((self.repeats, count, self.groups, width))
        np.add.at(
            totals,
            (self.repeat, clusters, self.group),
            np.column_stack([np.ones(len(clusters)), self.values]),
        )
        return totals.reshape(self.repeats, count, -1)

    def means(self, totals: Array) -> Array:
        shaped = totals.reshape(*totals.shape[:2], self.groups, -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            averages: Array = shaped[..., 1:] / shaped[..., :1]
        return averages


@lru_cache(maxsize=4)
def _resampled_means(scores: CaptionScores, clusters: str, seed: int, n_resamples: int) -> Array:
    names, cluster = (scores.images, scores.image) if clusters == "image" else (scores.texts, scores.text)
    sums = scores.sums(cluster, len(names))
    side_by_side = sums.transpose(1, 0, 2).reshape(len(names), -1)
    totals = resampler(names, seed, n_resamples).totals(side_by_side)
    return scores.means(totals.reshape(n_resamples, scores.repeats, -1).transpose(1, 0, 2))


def select_group(means: Array, group: int | None) -> Array:
    """Select one group from (..., groups), or average over groups."""
    return np.asarray(means.mean(axis=-1) if group is None else means[..., group])


def estimate_mean(
    scores: CaptionScores, column: int, group: int | None, seed: int, n_resamples: int
) -> RepeatedEstimate:
    """Return a mean with its interval, in percent. Replicates resample images, so that they pair with another
    system's.
    """
    clusters = "text" if len(scores.texts) < len(scores.images) else "image"
    points = select_group(scores.points[..., column], group)
    resampled = scores.resampled_means(clusters, seed, n_resamples)
    paired_resamples = scores.resampled_means("image", seed, n_resamples)
    effect = scores.influence(group, column)
    # Images with the same text share its training effect, so clustering by text covers part of the training
    # variance. Where no text is repeated it covers none of it; the larger of the two variances is the valid
    # one.
    variance = max(
        multiway_variance(effect, scores.image, scores.text),
        training_variance(*scores.total_effects(group, column)),
    )
    return _rescaled_estimate(
        points,
        select_group(resampled[..., column], group),
        select_group(paired_resamples[..., column], group),
        variance,
        clustered_variance(effect, scores.text if clusters == "text" else scores.image),
        seed,
    )


def difference(
    first: CaptionScores, second: CaptionScores, group: int | None, seed: int, n_resamples: int
) -> RepeatedEstimate:
    """Return first - second for the first column; images tested by both are paired."""
    points = select_group(first.points[..., 0], group) - select_group(second.points[..., 0], group)
    first_resamples = first.resampled_means("image", seed, n_resamples)
    second_resamples = second.resampled_means("image", seed, n_resamples)
    resampled = select_group(first_resamples[..., 0], group) - select_group(second_resamples[..., 0], group)
    effect, clusters = _paired_effects(first, second, group)
    totals = [
        first_effect - second_effect
        for first_effect, second_effect in zip(
            first.total_effects(group, 0), second.total_effects(group, 0), strict=True
        )
    ]
    variance = max(multiway_variance(effect, *clusters), training_variance(totals[0], totals[1]))
    return _rescaled_estimate(
        points, resampled, resampled, variance, clustered_variance(effect, clusters[0]), seed
    )


def relative_difference(
    first: CaptionScores, second: CaptionScores, seed: int, n_resamples: int
) -> RepeatedEstimate:
    """Return (first - second) / (first + second) for the first column, from -1 to 1."""
    first_mean, second_mean = (
        estimate_mean(scores, 0, None, seed, n_resamples) for scores in (first, second)
    )
    paired = difference(first, second, None, seed, n_resamples)
    if (
        first_mean.value is None
        or second_mean.value is None
        or paired.value is None
        or first_mean.value + second_mean.value <= 0
    ):
        return RepeatedEstimate(Estimate.of(None))
    points = [select_group(scores.points[..., 0], None) for scores in (first, second)]
    with np.errstate(invalid="ignore", divide="ignore"):
        by_repeat = (points[0] - points[1]) / (points[0] + points[1])
    std = float(by_repeat.std(ddof=1)) if len(by_repeat) > 1 and np.isfinite(by_repeat).all() else None
    total = first_mean.value + second_mean.value
    if not len(paired.replicates) or not len(first_mean.replicates) or not len(second_mean.replicates):
        return RepeatedEstimate(Estimate.of(paired.value / total), std)
    replicates = paired.replicates / (first_mean.replicates + second_mean.replicates)
    data_replicates = paired.estimate.replicates / (
        first_mean.estimate.replicates + second_mean.estimate.replicates
    )
    (low,), (high,) = percentile_interval(replicates[:, None])
    if paired.estimate.se is None or not np.isfinite(low):
        return RepeatedEstimate(Estimate.of(paired.value / total), std)
    se = paired.estimate.se / total
    return RepeatedEstimate(
        Estimate(paired.value / total, float(low), float(high), se, data_replicates), std, replicates
    )


def _paired_effects(
    first: CaptionScores, second: CaptionScores, group: int | None
) -> tuple[Array, list[NDArray[np.int64]]]:
    """Effect of each image on the difference in each repeat, and its clusters.

    Clusters are images and, where texts are clusters, the texts of both: images for which one source repeats
    a caption are alike in the captions of the other.
    """
    both = (first, second)
    effect = np.concatenate([first.influence(group, 0), -second.influence(group, 0)])
    _, image = sorted_clusters([scores.images[index] for scores in both for index in scores.image])
    repeat = np.concatenate([scores.repeat for scores in both])
    keys, pair = np.unique(repeat * (image.max(initial=0) + 1) + image, return_inverse=True)
    summed = np.bincount(pair, weights=effect).astype(np.float64)
    clusters = [keys % (image.max(initial=0) + 1)]
    start = 0
    for scores in both:
        pairs = pair[start : start + len(scores.repeat)]
        start += len(scores.repeat)
        if scores.texts != scores.images:
            text = np.arange(
                len(scores.texts), len(scores.texts) + len(keys)
            )  # an image without a caption of this source is its own cluster
            text[pairs] = scores.text
            clusters.append(np.unique(text, return_inverse=True)[1])
    return summed, clusters


def _rescaled_estimate(
    points: Array,
    resampled: Array,
    paired_resamples: Array,
    variance: float,
    resampled_variance: float,
    seed: int,
) -> RepeatedEstimate:
    """Build the estimate from points (repeats) and resampled means (repeats, resamples), rescaled to the
    right variance.
    """
    if not np.isfinite(points).all():
        return RepeatedEstimate(Estimate.of(None))
    value = float(points.mean()) * PERCENT
    std = float(points.std(ddof=1)) * PERCENT if len(points) > 1 else None
    if not resampled.shape[1] or resampled_variance <= 0:
        return RepeatedEstimate(Estimate.of(value), std)
    scale = math.sqrt(variance / resampled_variance)
    scaled = (points[:, None] + scale * (resampled - points[:, None])) * PERCENT
    data_replicates, replicates = scaled.mean(axis=0), replicates_over_seeds(scaled, points * PERCENT, seed)
    (low,), (high,) = percentile_interval(replicates[:, None])
    finite = data_replicates[np.isfinite(data_replicates)]
    if not np.isfinite(low) or len(finite) < 2:
        return RepeatedEstimate(Estimate.of(value), std)
    se = float(finite.std(ddof=1))
    estimate = Estimate(value, float(low), float(high), se, paired_resamples.mean(axis=0) * PERCENT)
    return RepeatedEstimate(estimate, std, replicates)
