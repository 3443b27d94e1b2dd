"""Labels made as wrong as a system's, without regard to anybody's group.

What a system's labels tell of a group is held against what true labels tell. A system makes mistakes, and mistakes hide
a group too, so the true labels get as many: dealt at random, they cannot tell the group, and what the system's labels
tell beyond them is its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def micro_f1(said: Array, truth: Array) -> float | None:
    """2 x right / (said + true), over all images and labels; None where nothing is said and nothing is there.

    >>> micro_f1(np.array([[1.0, 1.0]]), np.array([[1.0, 0.0]]))
    0.6666666666666666
    """
    whole = float(said.sum() + truth.sum())
    return 2 * float((said * truth).sum()) / whole if whole else None


def degrade(truth: Array, said: Array, how: str, rng: np.random.Generator) -> Array:
    """True labels (images, labels), each 0 or 1, with mistakes like those of what is said, which may be shares."""
    if how == "label":
        return _by_label(truth, said, rng)
    if how == "overall":
        return _overall(truth, said, rng)
    return _flipped(truth, micro_f1(said, truth) or 0.0, rng)


def _by_label(truth: Array, said: Array, rng: np.random.Generator) -> Array:
    """What is said of a label where it is there is dealt anew to the images that have it; and so where it is not there.

    Every label keeps its precision, its recall and how often it is said."""
    made = said.copy()
    for label in range(truth.shape[1]):
        for there in (truth[:, label] > 0, truth[:, label] == 0):
            places = np.flatnonzero(there)
            made[places, label] = said[rng.permutation(places), label]
    return made


def _overall(truth: Array, said: Array, rng: np.random.Generator) -> Array:
    """The same with all labels together: precision and recall over all of them stay, those of each label do not.

    False labels go to labels in proportion to how often they are true."""
    made = np.zeros_like(said)
    there = truth > 0
    made[there] = rng.permutation(said[there])
    wrong = said[~there & (said > 0)]
    image, label = np.nonzero(~there)
    weight = np.maximum(truth.sum(axis=0), 1e-12)[label]  # one that is never true comes last
    first = np.argsort(rng.exponential(size=len(label)) / weight, kind="stable")[: len(wrong)]
    made[image[first], label[first]] = rng.permutation(wrong)
    return made


def _flipped(truth: Array, f1: float, rng: np.random.Generator) -> Array:
    """Labels turned into their opposite at random until F1 has come down, as published."""
    flat = truth.reshape(-1).copy()
    order = rng.permutation(flat.size)
    lost = np.concatenate([[0], np.cumsum(flat[order] > 0)])
    added = np.arange(flat.size + 1) - lost
    right = flat.sum() - lost
    f1_after = np.divide(2 * right, 2 * right + lost + added, out=np.zeros(len(right)), where=right > 0)
    turned = order[: int(np.argmin(np.abs(f1_after - f1)))]
    flat[turned] = 1 - flat[turned]
    return flat.reshape(truth.shape)
