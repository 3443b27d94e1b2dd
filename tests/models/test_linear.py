"""Many logistic regressions fitted at once agree with scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from portrayal.models.text_classifiers.logistic_regression import LogisticRegressions


def rows(count: int = 300, features: int = 60, seed: int = 0) -> sparse.csr_array:
    rng = np.random.default_rng(seed)
    common = rng.random(features) ** 2  # some features in most rows, most in few
    return sparse.csr_array((rng.random((count, features)) < common).astype(float))


def simulated_labels(matrix: sparse.csr_array, classes: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng([seed, 1])
    scores = matrix @ rng.normal(size=(matrix.shape[1], classes)) + rng.gumbel(
        size=(matrix.shape[0], classes)
    )
    return np.argmax((scores - scores.mean(axis=0)) / scores.std(axis=0), axis=1)


def counts_of(labels: np.ndarray, classes: int, weights: np.ndarray) -> np.ndarray:
    """(classes, rows, fits) from labels and a weight of each row in each fit."""
    return np.stack([np.where((labels == c)[:, None], weights, 0.0) for c in range(classes)])


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("C", [0.01, 0.1, 2.0])
def test_folds_agree_with_scikit_learn(classes, C):
    matrix = rows()
    labels = simulated_labels(matrix, classes)
    fold = np.random.default_rng(3).integers(0, 5, len(labels))
    weights = np.stack([(fold != k).astype(float) * (1 + k / 3) for k in range(5)], axis=1)
    solver = LogisticRegressions(matrix, C)
    proba = solver.probabilities(solver.fit(counts_of(labels, classes, weights)))
    assert proba.shape == (300, 5, classes)
    np.testing.assert_allclose(proba.sum(axis=2), 1)
    for k in range(5):
        reference = LogisticRegression(C=C, tol=1e-8, max_iter=10_000)
        reference.fit(matrix, labels, sample_weight=weights[:, k])
        np.testing.assert_allclose(proba[:, k], reference.predict_proba(matrix), atol=1e-4)


def test_a_row_that_counts_twice_is_two_rows():
    matrix = rows(80, 20)
    labels = simulated_labels(matrix, 2)
    repeats = np.random.default_rng(0).integers(0, 4, 80)
    solver = LogisticRegressions(matrix, 0.5)
    repeated_solver = LogisticRegressions(sparse.csr_array(matrix[np.repeat(np.arange(80), repeats)]), 0.5)
    weighted = solver.fit(counts_of(labels, 2, repeats[:, None].astype(float)), tolerance=1e-8)
    repeated = repeated_solver.fit(
        counts_of(np.repeat(labels, repeats), 2, np.ones((repeats.sum(), 1))), tolerance=1e-8
    )
    np.testing.assert_allclose(weighted, repeated, atol=1e-6)


def test_a_row_may_count_for_both_classes():
    matrix = rows(60, 10)
    counts = np.random.default_rng(0).random((2, 60, 1))
    solver = LogisticRegressions(matrix, 1.0)
    proba = solver.probabilities(solver.fit(counts, tolerance=1e-8))[:, 0, 1]
    reference = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000)
    reference.fit(
        sparse.vstack([matrix, matrix]), np.repeat([0, 1], 60), sample_weight=counts[:, :, 0].reshape(-1)
    )
    np.testing.assert_allclose(proba, reference.predict_proba(matrix)[:, 1], atol=1e-5)


def test_a_fit_does_not_depend_on_its_neighbours():
    matrix = rows()
    rng = np.random.default_rng(5)
    shuffled = [rng.permutation(simulated_labels(matrix, 2)) for _ in range(6)]
    counts = np.concatenate([counts_of(labels, 2, np.ones((300, 1))) for labels in shuffled], axis=2)
    counts[:, :, 4] *= 50  # one that takes longer to converge
    solver = LogisticRegressions(matrix, 0.1)
    joint_weights = solver.fit(counts)
    for fit in range(6):
        np.testing.assert_allclose(solver.fit(counts[:, :, [fit]])[:, 0], joint_weights[:, fit], atol=1e-9)


def test_features_that_are_not_allowed_have_no_weight():
    matrix = rows(200, 30)
    labels = simulated_labels(matrix, 2)
    allowed = np.ones((30, 2), dtype=bool)
    allowed[:15, 1] = False
    solver = LogisticRegressions(matrix, 0.3)
    counts = counts_of(labels, 2, np.ones((200, 2)))
    weights = solver.fit(counts, allowed)
    assert (weights[:15, 1] == 0).all()
    allowed_features = matrix[:, 15:]
    reference = LogisticRegression(C=0.3, tol=1e-8, max_iter=10_000).fit(allowed_features, labels)
    np.testing.assert_allclose(
        solver.probabilities(weights)[:, 1, 1], reference.predict_proba(allowed_features)[:, 1], atol=1e-4
    )
    np.testing.assert_allclose(weights[:, 0], solver.fit(counts)[:, 0], atol=1e-9)


def test_without_features_the_intercept_is_the_share():
    matrix = sparse.csr_array(np.zeros((10, 3)))
    counts = np.stack([np.full((10, 1), 3.0), np.full((10, 1), 1.0)])
    solver = LogisticRegressions(matrix, 1.0)
    np.testing.assert_allclose(
        solver.probabilities(solver.fit(counts, tolerance=1e-9))[:, 0, 1], 0.25, atol=1e-8
    )
