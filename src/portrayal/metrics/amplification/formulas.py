"""Formulas of bias amplification: Zhao et al. (2017), and Wang and Russakovsky (2021).

Tables count (objects, groups), or (resamples, objects, groups), with a value for each resample.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def bias_amplification(truth: Array, predicted: Array) -> float:
    """Bias amplification (ba) from counts of (objects, groups); objects without a share in both are left out."""
    table = np.asarray(truth, float)[None]
    return float(ba(table, np.asarray(predicted, float)[None], biased_toward(table))[0])


def attribute_to_task(truth: Array, predicted: Array, group_counts: Array | None = None) -> float:
    """Directional bias amplification a-to-t from counts of (tasks, groups).

    `truth` counts labelled tasks and `predicted` predicted tasks, both by the labelled group. `group_counts` counts
    images per group; by default every image has one task.
    """
    table = np.asarray(truth, float)[None]
    per_group = table.sum(axis=1) if group_counts is None else np.asarray(group_counts, float)[None]
    sign = association_sign(table, table.sum(axis=2), per_group, per_group.sum(axis=1), "negative")
    return float(a_to_t(table, np.asarray(predicted, float)[None], per_group, sign)[0])


def task_to_attribute(truth: Array, predicted: Array, group_counts: Array | None = None) -> float:
    """Directional bias amplification t-to-a: counts of labelled and predicted groups, both by the labelled task."""
    table = np.asarray(truth, float)[None]
    per_group = table.sum(axis=1) if group_counts is None else np.asarray(group_counts, float)[None]
    sign = association_sign(table, table.sum(axis=2), per_group, per_group.sum(axis=1), "negative")
    return float(t_to_a(table, np.asarray(predicted, float)[None], sign)[0])


def group_shares(table: Array) -> Array:
    sums = table.sum(axis=2, keepdims=True)
    shares: Array = np.divide(table, sums, out=np.full_like(table, np.nan), where=sums > 0)
    return shares


def biased_toward(truth: Array) -> NDArray[np.bool_]:
    """Whether an object is biased toward a group, b* > 1 / number of groups: (1, objects, groups)."""
    return np.asarray(group_shares(truth) > 1 / truth.shape[2])


def share_changes(truth: Array, predicted: Array, biased: NDArray[np.bool_]) -> Array:
    """b~ - b* where the object is biased toward the group, else 0; nan where either is undefined."""
    before, after = group_shares(truth), group_shares(predicted)
    return np.where(np.isnan(after + before), np.nan, np.where(biased, after - before, 0.0))


def ba(truth: Array, predicted: Array, biased: NDArray[np.bool_]) -> Array:
    return nan_mean(share_changes(truth, predicted, biased).sum(axis=2))


def association_sign(joint: Array, tasks: Array, groups: Array, images: Array, ties: str) -> Array:
    """y: +1 where P(a, t) > P(a) P(t), else -1; nan where they are equal and `ties` is "drop"."""
    expected = tasks[:, :, None] * groups[:, None, :] / np.maximum(images, 1)[:, None, None]
    above = joint > expected + 1e-9
    equal = np.abs(joint - expected) <= 1e-9
    sign = np.where(above, 1.0, -1.0)
    return np.where(equal, np.nan, sign) if ties == "drop" else sign


def a_to_t(truth: Array, predicted: Array, group_counts: Array, sign: Array) -> Array:
    per_group = np.where(group_counts > 0, group_counts, np.nan)[:, None, :]
    return nan_mean((sign * (predicted - truth) / per_group).reshape(len(truth), -1))


def rescale_predicted(predicted: Array, truth: Array) -> Array:
    """Predicted counts scaled to the true total of each task, so that only their distribution over groups differs."""
    predicted_totals, true_totals = predicted.sum(axis=2, keepdims=True), truth.sum(axis=2, keepdims=True)
    rescaled: Array = predicted * np.divide(
        true_totals, predicted_totals, out=np.full_like(true_totals, np.nan), where=predicted_totals > 0
    )
    return rescaled


def t_to_a(truth: Array, predicted: Array, sign: Array) -> Array:
    """Mean of y (P(a^|t) - P(a|t)) over defined pairs."""
    return nan_mean((sign * (group_shares(predicted) - group_shares(truth))).reshape(len(truth), -1))


def nan_mean(values: Array) -> Array:
    known = np.isfinite(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    means: Array = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return means


def sampling_error(labelled: Array, named: Array) -> Array:
    """Standard error of b~ - b* under random sampling of named from labelled: labels (sets, groups), named (sets,).

    Where a set is named once or twice, its resamples hardly vary and their spread underestimates the error.
    """
    share = group_shares(labelled[None])[0]
    total, n_named = labelled.sum(axis=1, keepdims=True), named[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse_size = np.clip(1 / n_named - 1 / total, 0, None)
    return np.asarray(
        np.sqrt(share * (1 - share) * np.where(np.isfinite(inverse_size), inverse_size, np.nan))
    )


def effective_count(per_image: Array, squared: Array) -> Array:
    """Effective number of images, (sum of weights)^2 / sum of squared weights.

    An image with several captions has the share of them that name a set as its weight: five images with one such
    caption in five sum to one image, but are five independent observations.
    """
    counts: Array = np.divide(per_image**2, squared, out=np.zeros_like(per_image), where=squared > 0)
    return counts


def nan_std(values: Array) -> Array:
    """Standard deviation over resamples: (resamples, sets, groups) to (sets, groups); nan where all are undefined."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    count = np.maximum(known.sum(axis=0), 1)
    mean = filled.sum(axis=0) / count
    spread = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / count
    return np.asarray(np.where(known.any(axis=0), np.sqrt(spread), np.nan))
