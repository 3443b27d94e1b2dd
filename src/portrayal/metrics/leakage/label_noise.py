"""Label noise: true labels with as many errors as a system's labels, at random with respect to the group.

Leakage compares what a system's labels and true labels reveal about the group. A system makes errors, and
errors hide the group, so true labels get equally many. Random errors cannot reveal the group; what the
system's labels reveal beyond them is due to the system.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def micro_f1(outputs: Array, truth: Array) -> float | None:
    """2 x correct / (named + true), over all images and labels; None where nothing is named and nothing is
    true.

    >>> micro_f1(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]))
    0.6666666666666666
    """
    total = float(outputs.sum() + truth.sum())
    return 2 * float((outputs * truth).sum()) / total if total else None


def add_label_noise(truth: Array, outputs: Array, method: str, rng: np.random.Generator) -> Array:
    """Return true labels (images, labels; 0 or 1) with errors like those of the outputs, which may be shares."""
    if method == "label":
        return _noise_by_label(truth, outputs, rng)
    if method == "overall":
        return _noise_overall(truth, outputs, rng)
    return _noise_by_flips(truth, micro_f1(outputs, truth) or 0.0, rng)


def _noise_by_label(truth: Array, outputs: Array, rng: np.random.Generator) -> Array:
    """Permute the outputs of each label among the images that have it, and among those that do not.

    Each label keeps its precision, recall and frequency.
    """
    noisy = outputs.copy()
    for label in range(truth.shape[1]):
        for has_label in (truth[:, label] > 0, truth[:, label] == 0):
            indices = np.flatnonzero(has_label)
            noisy[indices, label] = outputs[rng.permutation(indices), label]
    return noisy


def _noise_overall(truth: Array, outputs: Array, rng: np.random.Generator) -> Array:
    """Permute outputs over all labels together: overall precision and recall stay, those of each label do
    not.

    False labels are drawn in proportion to their true frequency.
    """
    noisy = np.zeros_like(outputs)
    is_true = truth > 0
    noisy[is_true] = rng.permutation(outputs[is_true])
    wrong = outputs[~is_true & (outputs > 0)]
    image, label = np.nonzero(~is_true)
    weight = np.maximum(truth.sum(axis=0), 1e-12)[label]  # a label that is never true comes last
    first = np.argsort(rng.exponential(size=len(label)) / weight, kind="stable")[: len(wrong)]
    noisy[image[first], label[first]] = rng.permutation(wrong)
    return noisy


def _noise_by_flips(truth: Array, f1: float, rng: np.random.Generator) -> Array:
    """Flip labels at random until F1 is reached, as published."""
    flat = truth.reshape(-1).copy()
    order = rng.permutation(flat.size)
    lost = np.concatenate([[0], np.cumsum(flat[order] > 0)])
    added = np.arange(flat.size + 1) - lost
    correct = flat.sum() - lost
    f1_after = np.divide(
        2 * correct, 2 * correct + lost + added, out=np.zeros(len(correct)), where=correct > 0
    )
    flipped = order[: int(np.argmin(np.abs(f1_after - f1)))]
    flat[flipped] = 1 - flat[flipped]
    return flat.reshape(truth.shape)
