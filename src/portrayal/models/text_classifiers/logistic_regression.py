"""Many logistic regressions at once, on one design matrix with different labels and weights of its rows.

The seeds, folds and permutations of a study share rows, and differ in which rows count for which class.
Solving them together reads the matrix once, which makes permutations and intervals affordable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit, softmax

Array = NDArray[np.float64]

TOLERANCE = 2e-5  # largest error of a weight, estimated from the curvature
_LBFGS_MEMORY = 5  # steps that L-BFGS stores
_EXACT_FEATURES = 300  # features with a full curvature matrix; others only use its diagonal
_EXACT_FEATURES_MANY_FITS = 1000  # the same where a costly setup pays off
MANY_FITS = 200  # number of fits from which it does
_MAX_STEPS = 1000
_MAX_HALVINGS = 40


class LogisticRegressions:
    """Minimise |w|^2 / 2 + C * sum of weighted log losses, with a free intercept, for many weightings at
    once.

    Parameters
    ----------
    matrix
        One row per distinct case, one column per feature.
    C
        Inverse regularisation strength.
    typical
        Weight of each row in a typical fit. Affects the steps, not the solution.
    many
        Whether there will be MANY_FITS fits or more. Affects the steps, not the solution.
    rough
        Use single precision.

    Notes
    -----
    Two classes share one weight per feature; with more classes each has its own.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        C: float,
        typical: Array | None = None,
        many: bool = False,
        rough: bool = False,
    ):
        rows = matrix.shape[0]
        ones = sparse.csr_array(np.ones((rows, 1)))
        self.matrix = sparse.csr_array(sparse.hstack([matrix, ones], format="csr"))
        self.C = C
        self._transposed = self.matrix.T.tocsr()
        exact = _EXACT_FEATURES_MANY_FITS if many else _EXACT_FEATURES
        self._prepare_preconditioner(np.ones(rows) if typical is None else typical, exact)
        self._kind = np.dtype(np.float32 if rough else np.float64)
        for name in ("matrix", "_transposed", "_inverse", "_diagonal"):
            setattr(self, name, getattr(self, name).astype(self._kind))

    def fit(
        self, counts: Array, allowed: NDArray[np.bool_] | None = None, tolerance: float = TOLERANCE
    ) -> Array:
        """Return the weights of every fit: (features + 1, fits, outputs), the intercept last.

        Parameters
        ----------
        counts
            (classes, rows, fits): weight of each row for each class.
        allowed
            (features, fits): which features a fit may use.
        tolerance
            Largest error of a weight. A converged fit is not changed further, so fits do not depend on each
            other.
        """
        classes, _, fits = counts.shape
        outputs = 1 if classes == 2 else classes
        targets = counts[1:] if classes == 2 else counts
        solution = np.zeros((self.matrix.shape[1], fits, outputs), dtype=self._kind)
        problem = _Problem(
            self,
            (self.C * counts.sum(axis=0)).astype(self._kind),
            (self.C * np.moveaxis(targets, 0, 2)).astype(self._kind),
            None if allowed is None else np.vstack([allowed, np.ones((1, fits), dtype=bool)]),
        )
        problem.solve(solution, tolerance)
        return solution

    def transposed_product(self, values: Array) -> Array:
        """Multiply values of rows by the transposed matrix: (rows, ...) to (features + 1, ...)."""
        flat: Any = self._transposed @ values.reshape(len(values), -1)
        return np.asarray(flat).reshape(-1, *values.shape[1:])

    def product(self, values: Array) -> Array:
        """Multiply values of features by the matrix: (features + 1, ...) to (rows, ...)."""
        flat: Any = self.matrix @ values.reshape(len(values), -1)
        return np.asarray(flat).reshape(-1, *values.shape[1:])

    def probabilities(self, weights: Array) -> Array:
        """Return (rows, fits, classes)."""
        return _probabilities(self.product(weights))

    def implicit_gradient(
        self,
        weights: Array,
        counts: Array,
        allowed: NDArray[np.bool_],
        slopes: Array,
        tolerance: float = 1e-3,
    ) -> Array:
        """Differentiate functions of the weights with respect to the losses, by implicit differentiation.

        `slopes` (features + 1, fits, numbers, outputs) are the derivatives of each number with respect to the
        weights. Returns the slopes times the inverse Hessian of the losses (conjugate gradients), in the same
        shape. One more caption in the losses, with gradient g, moves a number by minus the sum of g times the
        result.
        """
        features, fits, numbers, outputs = slopes.shape
        proba = np.repeat(self.probabilities(weights)[:, :, -outputs:], numbers, axis=1)
        total = np.repeat(self.C * counts.sum(axis=0), numbers, axis=1)[:, :, None]
        mask = np.repeat(np.vstack([allowed, np.ones((1, fits), dtype=bool)]), numbers, axis=1)[:, :, None]

        def hessian_product(vector: Array) -> Array:
            moved = self.product(vector)
            if outputs == 1:
                change = total * proba * (1 - proba) * moved
            else:
                change = total * proba * (moved - np.sum(proba * moved, axis=2, keepdims=True))
            product = self.transposed_product(change)
            product[:-1] += vector[:-1]
            return np.asarray(product * mask)

        residual = slopes.reshape(features, fits * numbers, outputs) * mask
        solution = np.zeros_like(residual)
        preconditioned = self._precondition(residual) * mask
        direction, residual_norm = preconditioned.copy(), _dot_per_fit(residual, preconditioned)
        threshold = tolerance**2 * np.maximum(residual_norm, 1e-300)
        for _ in range(_MAX_STEPS):
            if (residual_norm <= threshold).all():
                return np.asarray(solution.reshape(slopes.shape))
            hessian_direction = hessian_product(direction)
            step = np.divide(
                residual_norm,
                _dot_per_fit(direction, hessian_direction),
                out=np.zeros_like(residual_norm),
                where=residual_norm > threshold,
            )
            solution += step[:, None] * direction
            residual -= step[:, None] * hessian_direction
            preconditioned = self._precondition(residual) * mask
            new = _dot_per_fit(residual, preconditioned)
            direction = (
                preconditioned
                + np.divide(new, residual_norm, out=np.zeros_like(new), where=residual_norm > threshold)[
                    :, None
                ]
                * direction
            )
            residual_norm = np.where(residual_norm > threshold, new, residual_norm)
        raise ArithmeticError("Conjugate gradients did not converge for a logistic regression.")

    def _prepare_preconditioner(self, typical: Array, exact: int) -> None:
        """Compute the curvature at equal probabilities: in full for the most frequent features, else its
        diagonal.
        """
        features = self.matrix.shape[1] - 1
        weight = self.C * typical / 4
        diagonal = np.asarray(self.matrix.multiply(self.matrix).T @ weight).reshape(-1)
        common = np.sort(np.argsort(-diagonal[:features], kind="stable")[:exact])
        self._frequent = np.append(common, features)
        dense = self._transposed[self._frequent].toarray().T
        curvature = (dense * weight[:, None]).T @ dense
        curvature[np.diag_indices_from(curvature)] += np.append(np.ones(len(common)), 1e-9)
        self._inverse = linalg.inv(curvature, check_finite=False)
        self._diagonal = 1 / (1 + diagonal)

    def _precondition(self, gradient: Array) -> Array:
        result = gradient * self._diagonal[:, None, None]
        frequent = gradient[self._frequent]
        result[self._frequent] = (self._inverse @ frequent.reshape(len(frequent), -1)).reshape(frequent.shape)
        return np.asarray(result)


class _Problem:
    """The fits that have not converged yet, solved together by L-BFGS."""

    def __init__(
        self, design: LogisticRegressions, total: Array, targets: Array, allowed: NDArray[np.bool_] | None
    ):
        self._design, self._total, self._pull = (
            design,
            np.ascontiguousarray(total),
            np.ascontiguousarray(targets),
        )
        self._allowed = None if allowed is None else allowed[:, :, None]

    def solve(self, solution: Array, tolerance: float) -> None:
        """Write the solution of every fit into `solution`."""
        pending = np.arange(solution.shape[1])
        weights = solution.copy()
        gradient = self._gradient(weights)
        history: list[tuple[Array, Array, Array]] = []
        for _ in range(_MAX_STEPS):
            direction = self._direction(gradient, history)
            done = np.abs(direction).max(axis=(0, 2)) < tolerance
            if done.any():
                solution[:, pending[done]] = weights[:, done]
                unfinished = ~done
                pending, weights, gradient, direction = (
                    pending[unfinished],
                    weights[:, unfinished],
                    gradient[:, unfinished],
                    direction[:, unfinished],
                )
                history = [
                    (step[:, unfinished], gradient_change[:, unfinished], scale[unfinished])
                    for step, gradient_change, scale in history
                ]
                self._keep(unfinished)
            if not len(pending):
                return
            new_weights, new_gradient = self._step(weights, gradient, direction)
            step, gradient_change = new_weights - weights, new_gradient - gradient
            curved = _dot_per_fit(step, gradient_change)
            scale = np.divide(1.0, curved, out=np.zeros_like(curved), where=curved > 1e-18)
            history = [*history[-_LBFGS_MEMORY + 1 :], (step, gradient_change, scale)]
            weights, gradient = new_weights, new_gradient
        raise ArithmeticError(f"{len(pending)} of {solution.shape[1]} logistic regressions did not converge.")

    def _keep(self, unfinished: NDArray[np.bool_]) -> None:
        self._total, self._pull = self._total[:, unfinished], self._pull[:, unfinished]
        if self._allowed is not None:
            self._allowed = self._allowed[:, unfinished]

    def _gradient(self, weights: Array) -> Array:
        scores = self._design.product(weights)
        proba = _sigmoid(scores) if scores.shape[2] == 1 else softmax(scores, axis=2)
        error = self._total[:, :, None] * proba - self._pull
        gradient = self._design.transposed_product(error)
        gradient[:-1] += weights[:-1]
        return gradient if self._allowed is None else gradient * self._allowed

    def _direction(self, gradient: Array, history: list[tuple[Array, Array, Array]]) -> Array:
        direction = gradient.copy()
        coefficients = []
        for step, gradient_change, scale in reversed(history):
            coefficient = scale * _dot_per_fit(step, direction)
            direction -= coefficient[:, None] * gradient_change
            coefficients.append(coefficient)
        direction = self._design._precondition(direction)
        for (step, gradient_change, scale), coefficient in zip(history, reversed(coefficients), strict=True):
            direction += (coefficient - scale * _dot_per_fit(gradient_change, direction))[:, None] * step
        direction = -direction
        return direction if self._allowed is None else direction * self._allowed

    def _step(self, weights: Array, gradient: Array, direction: Array) -> tuple[Array, Array]:
        """Halve the step until the slope along the direction has decreased; the problem is convex, so this
        ends.
        """
        descent = np.abs(_dot_per_fit(gradient, direction))
        length = np.ones(weights.shape[1], dtype=weights.dtype)
        for _ in range(_MAX_HALVINGS):
            new_weights = weights + length[:, None] * direction
            new_gradient = self._gradient(new_weights)
            too_far = np.abs(_dot_per_fit(new_gradient, direction)) > 0.9 * descent + 1e-15
            if not too_far.any():
                break
            length = np.where(too_far, length / 2, length)
        return new_weights, new_gradient


def _dot_per_fit(first: Array, second: Array) -> Array:
    """Dot product of each fit."""
    products: Array = np.einsum("fbo,fbo->b", first, second)
    return products


def _sigmoid(scores: Array) -> Array:
    if scores.dtype == np.float64:
        return np.asarray(expit(scores))
    return np.asarray(np.tanh(scores / 2) / 2 + np.float32(0.5))  # equal, and faster in single precision


def _probabilities(scores: Array) -> Array:
    if scores.shape[2] > 1:
        return np.asarray(softmax(scores, axis=2))
    second = expit(scores[:, :, 0])
    return np.stack([1 - second, second], axis=2)
