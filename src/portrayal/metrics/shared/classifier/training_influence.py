"""Influence of training captions on a mean, in addition to their influence as test captions.

A mean depends on captions twice: on the test captions, and on the training captions, which are mostly the
same. An interval that only resamples test captions is too narrow. The curvature of the loss tells how weights
move when a caption counts a little more (infinitesimal jackknife), so nothing is retrained.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear_classifier import Array, LinearClassifier, Predictions
from portrayal.metrics.shared.classifier.splits import Split


def score_slopes(proba: Array, group: NDArray[np.int64]) -> Array:
    """Derivative of each caption's score with respect to the log odds of each group: (tested, groups).

    The score jumps where a prediction turns from wrong to right. Over many captions this is a slope,
    proportional to the density of captions at the turning point.
    """
    true_proba, correct, density, runner_up = _margins(proba, group)
    slopes = -proba * (true_proba * correct)[:, None]
    rows = np.arange(len(group))
    slopes[rows, group] += true_proba * correct + true_proba * density
    slopes[rows, runner_up] -= true_proba * density
    return slopes


def accuracy_slopes(proba: Array, group: NDArray[np.int64]) -> Array:
    """Derivative of the accuracy with respect to the log odds."""
    _, _, density, runner_up = _margins(proba, group)
    slopes = np.zeros_like(proba)
    rows = np.arange(len(group))
    slopes[rows, group] += density
    slopes[rows, runner_up] -= density
    return slopes


def confidence_slopes(proba: Array) -> Array:
    """Derivative of the confidence in the predicted group with respect to the log odds."""
    best, top = proba.argmax(axis=1), proba.max(axis=1)
    slopes: Array = -proba * top[:, None]
    slopes[np.arange(len(best)), best] += top
    return slopes


def _margins(proba: Array, group: NDArray[np.int64]) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Probability of the true group, correctness, density at the decision boundary, and the strongest other
    group.
    """
    rows = np.arange(len(group))
    true_proba = proba[rows, group]
    others = proba.copy()
    others[rows, group] = -1.0
    runner_up = others.argmax(axis=1)
    margin = np.log(np.clip(true_proba, 1e-300, None)) - np.log(np.clip(proba[rows, runner_up], 1e-300, None))
    spread = float(margin.std()) if len(margin) else 0.0
    width = max(0.9 * spread * max(len(margin), 1) ** -0.2, 1e-3)  # Silverman's rule
    density = np.exp(-0.5 * (margin / width) ** 2) / (width * math.sqrt(2 * math.pi))
    correct = (proba.argmax(axis=1) == group).astype(np.float64)
    return true_proba, correct, density, runner_up


def training_influence(
    classifier: LinearClassifier, pred: Predictions, splits: Sequence[Split], slopes: Sequence[Array]
) -> Array:
    """Effect of each training caption on the groups' means of several columns.

    Returns (captions, columns, groups) for the fits of one repeat; `slopes` has (tested, groups) for each
    column.
    """
    assert pred.weights is not None
    corpus, design = pred.corpus, pred.corpus.design
    texts, fits, groups = len(design.texts), len(splits), classifier.groups
    outputs = pred.weights.shape[2]
    size = np.bincount(pred.group, minlength=groups)
    text_gradients = np.zeros((texts, fits, len(slopes), groups, outputs))
    row = design.row[pred.test]
    for column, slope_of_column in enumerate(slopes):
        share = slope_of_column[:, -outputs:] / size[pred.group][:, None]
        np.add.at(text_gradients[:, :, column], (row, pred.fit_index, pred.group), share)
    solver, counts, weight, allowed = classifier.fit_inputs(corpus, splits)
    feature_gradients = solver.transposed_product(text_gradients.reshape(texts, fits, -1, outputs))
    row_gradients = solver.product(solver.implicit_gradient(pred.weights, counts, allowed, feature_gradients))
    proba = solver.probabilities(pred.weights)[:, :, -outputs:]
    effects = np.zeros((len(corpus.images), feature_gradients.shape[2]))
    for fit, split in enumerate(splits):
        text, group = design.row[split.train], corpus.group[split.train]
        error = np.eye(groups)[group][:, -outputs:] - proba[text, fit]
        caption_weight = classifier.C * weight[group, fit]
        effect = np.einsum("i,io,ino->in", caption_weight, error, row_gradients[text, fit])
        for g in range(groups):  # class weights: with more captions of a group each counts less
            effect[group == g] -= effect[group == g].mean(axis=0)
        effects[split.train] += effect
    return effects.reshape(len(effects), len(slopes), groups)
