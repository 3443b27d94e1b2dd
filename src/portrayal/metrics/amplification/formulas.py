"""How strongly groups and objects are tied, and how much more in one table than in another: the bare formulas.

Tables count (objects, groups), or (draws, objects, groups), where every draw gives a value of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def bias_amplification(truth: Array, predicted: Array) -> float:
    """ba from counts of (objects, groups). Objects without a share on both sides are left out of the mean."""
    table = np.asarray(truth, float)[None]
    return float(ba(table, np.asarray(predicted, float)[None], leans(table))[0])


def attribute_to_task(truth: Array, predicted: Array, people: Array | None = None) -> float:
    """a-to-t from counts of (tasks, groups): labelled tasks, predicted tasks, both by the labelled group.

    `people` counts images per group; by default every image has one task.
    """
    table = np.asarray(truth, float)[None]
    per_group = table.sum(axis=1) if people is None else np.asarray(people, float)[None]
    lean = lean_of(table, table.sum(axis=2), per_group, per_group.sum(axis=1), "negative")
    return float(a_to_t(table, np.asarray(predicted, float)[None], per_group, lean)[0])


def task_to_attribute(truth: Array, predicted: Array, people: Array | None = None) -> float:
    """t-to-a from counts of (tasks, groups): labelled and predicted groups, both by the labelled task."""
    table = np.asarray(truth, float)[None]
    per_group = table.sum(axis=1) if people is None else np.asarray(people, float)[None]
    lean = lean_of(table, table.sum(axis=2), per_group, per_group.sum(axis=1), "negative")
    return float(t_to_a(table, np.asarray(predicted, float)[None], lean)[0])


def shares(table: Array) -> Array:
    sums = table.sum(axis=2, keepdims=True)
    made: Array = np.divide(table, sums, out=np.full_like(table, np.nan), where=sums > 0)
    return made


def leans(truth: Array) -> NDArray[np.bool_]:
    """Where b* leans to a group: (1, objects, groups)."""
    return np.asarray(shares(truth) > 1 / truth.shape[2])


def changes(truth: Array, predicted: Array, leaning: NDArray[np.bool_]) -> Array:
    """b~ - b* where b* leans to the group, 0 where it does not, nan where either is undefined."""
    before, after = shares(truth), shares(predicted)
    return np.where(np.isnan(after + before), np.nan, np.where(leaning, after - before, 0.0))


def ba(truth: Array, predicted: Array, leaning: NDArray[np.bool_]) -> Array:
    return mean_of_known(changes(truth, predicted, leaning).sum(axis=2))


def lean_of(together: Array, tasks: Array, people: Array, images: Array, ties: str) -> Array:
    """y: +1 where a group and a task meet more often than chance, else -1 (0 for ties that are dropped)."""
    expected = tasks[:, :, None] * people[:, None, :] / np.maximum(images, 1)[:, None, None]
    above = together > expected + 1e-9
    even = np.abs(together - expected) <= 1e-9
    lean = np.where(above, 1.0, -1.0)
    return np.where(even, np.nan, lean) if ties == "drop" else lean


def a_to_t(truth: Array, predicted: Array, people: Array, lean: Array) -> Array:
    per_group = np.where(people > 0, people, np.nan)[:, None, :]
    return mean_of_known((lean * (predicted - truth) / per_group).reshape(len(truth), -1))


def as_often(predicted: Array, truth: Array) -> Array:
    """Predicted tasks scaled to be as common as the true ones, over all groups: what is left is who they go to."""
    named, there = predicted.sum(axis=2, keepdims=True), truth.sum(axis=2, keepdims=True)
    made: Array = predicted * np.divide(there, named, out=np.full_like(there, np.nan), where=named > 0)
    return made


def t_to_a(truth: Array, predicted: Array, lean: Array) -> Array:
    """Both shares are among what is known: the groups labelled, and the groups named where one is."""
    return mean_of_known((lean * (shares(predicted) - shares(truth))).reshape(len(truth), -1))


def mean_of_known(values: Array) -> Array:
    known = np.isfinite(values)
    counts = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    made: Array = np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)
    return made


def sampling_error(labelled: Array, named: Array) -> Array:
    """Of b~ - b* where those named are a chance part of those labelled: (sets, groups) labels, (sets,) namings.

    Where a set is named once or twice its draws all look alike, and their spread says nothing of chance.
    """
    share = shares(labelled[None])[0]
    total, part = labelled.sum(axis=1, keepdims=True), named[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.clip(1 / part - 1 / total, 0, None)
    return np.asarray(np.sqrt(share * (1 - share) * np.where(np.isfinite(left), left, np.nan)))


def effective_count(per_image: Array, squared: Array) -> Array:
    """How many images that count in full would tell as much, from the sums of their parts and of the parts squared.

    An image with several captions counts for the share of them that name a set, so that five images of which one
    caption in five does are one image by their sum, but five chances to be wrong.
    """
    made: Array = np.divide(per_image**2, squared, out=np.zeros_like(per_image), where=squared > 0)
    return made


def spread_of_known(values: Array) -> Array:
    """Over draws: (draws, sets, groups) to (sets, groups); nan where a set is undefined in the study itself."""
    known = np.isfinite(values)
    filled = np.where(known, values, 0.0)
    count = np.maximum(known.sum(axis=0), 1)
    mean = filled.sum(axis=0) / count
    spread = np.where(known, (values - mean) ** 2, 0.0).sum(axis=0) / count
    return np.asarray(np.where(known.any(axis=0), np.sqrt(spread), np.nan))
