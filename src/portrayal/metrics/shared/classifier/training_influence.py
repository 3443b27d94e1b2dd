"""How far each caption moves a number by being learnt from, beside what it moves by being tested.

A number made of guesses depends on the captions twice: on those that are tested, and on those from which the guesser
learnt, which are mostly the same ones. An interval that only drew the tested ones again would be too narrow. How the
weights move when a caption counts a little more follows from the curvature of the losses (an infinitesimal jackknife),
so nothing has to be learnt again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear import Array, Guesser, Guesses
from portrayal.metrics.shared.classifier.splits import Split


def score_slopes(likely: Array, group: NDArray[np.int64]) -> Array:
    """How the score of each caption moves with the log odds of each group: (tested, groups).

    Where a guess turns from wrong to right the score jumps; over many captions that is a slope, as steep as there are
    captions close to the turn.
    """
    sure, right, turn, rival = _margins(likely, group)
    made = -likely * (sure * right)[:, None]
    rows = np.arange(len(group))
    made[rows, group] += sure * right + sure * turn
    made[rows, rival] -= sure * turn
    return made


def accuracy_slopes(likely: Array, group: NDArray[np.int64]) -> Array:
    """The same for whether the group is guessed."""
    _, _, turn, rival = _margins(likely, group)
    made = np.zeros_like(likely)
    rows = np.arange(len(group))
    made[rows, group] += turn
    made[rows, rival] -= turn
    return made


def confidence_slopes(likely: Array) -> Array:
    """The same for how sure the guesser is of what it guesses."""
    best, top = likely.argmax(axis=1), likely.max(axis=1)
    made: Array = -likely * top[:, None]
    made[np.arange(len(best)), best] += top
    return made


def _margins(likely: Array, group: NDArray[np.int64]) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Probability of the true group, whether it is guessed, how steeply that turns, and its best rival."""
    rows = np.arange(len(group))
    sure = likely[rows, group]
    others = likely.copy()
    others[rows, group] = -1.0
    rival = others.argmax(axis=1)
    margin = np.log(np.clip(sure, 1e-300, None)) - np.log(np.clip(likely[rows, rival], 1e-300, None))
    spread = float(margin.std()) if len(margin) else 0.0
    width = max(0.9 * spread * max(len(margin), 1) ** -0.2, 1e-3)  # Silverman's rule
    turn = np.exp(-0.5 * (margin / width) ** 2) / (width * math.sqrt(2 * math.pi))
    right = (likely.argmax(axis=1) == group).astype(np.float64)
    return sure, right, turn, rival


def learning_effects(
    guesser: Guesser, guesses: Guesses, splits: Sequence[Split], slopes: Sequence[Array]
) -> Array:
    """What each caption of the corpus adds to the groups' means of some columns by being learnt from.

    (captions, columns, groups), for the fits of one repeat; `slopes` has (tested, groups) for each column.
    """
    assert guesses.weights is not None
    corpus, design = guesses.corpus, guesses.corpus.design
    texts, fits, groups = len(design.texts), len(splits), guesser.groups
    outputs = guesses.weights.shape[2]
    size = np.bincount(guesses.group, minlength=groups)
    moved = np.zeros((texts, fits, len(slopes), groups, outputs))
    row = design.row[guesses.test]
    for column, slope in enumerate(slopes):
        share = slope[:, -outputs:] / size[guesses.group][:, None]
        np.add.at(moved[:, :, column], (row, guesses.fit, guesses.group), share)
    solver, counts, weight, allowed = guesser.learnt(corpus, splits)
    numbers = solver.of_rows(moved.reshape(texts, fits, -1, outputs))
    along = solver.to_rows(solver.pull_back(guesses.weights, counts, allowed, numbers))
    likely = solver.probabilities(guesses.weights)[:, :, -outputs:]
    made = np.zeros((len(corpus.images), numbers.shape[2]))
    for fit, split in enumerate(splits):
        text, group = design.row[split.train], corpus.group[split.train]
        error = np.eye(groups)[group][:, -outputs:] - likely[text, fit]
        much = guesser.strength * weight[group, fit]
        effect = np.einsum("i,io,ino->in", much, error, along[text, fit])
        for one in range(groups):  # where a group has more captions, each counts less
            effect[group == one] -= effect[group == one].mean(axis=0)
        made[split.train] += effect
    return made.reshape(len(made), len(slopes), groups)
