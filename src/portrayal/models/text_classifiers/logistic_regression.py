"""Many logistic regressions fitted together, on one design matrix with different labels and weights of its rows.

The seeds, folds and permutations of a study have the same rows with different classes and weights. Solving
them together reads the matrix once, which makes permutations and confidence intervals affordable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit, softmax

Array = NDArray[np.float64]

TOLERANCE = 2e-5  # maximum error of a weight, estimated from the curvature
_LBFGS_MEMORY = 5  # number of steps that L-BFGS stores
_EXACT_FEATURES = 300  # number of features with a full curvature matrix; for others only its diagonal is used
_EXACT_FEATURES_MANY_FITS = 1000  # the same for at least `MANY_FITS` fits, where a slower setup saves time
MANY_FITS = 200
_MAX_STEPS = 1000
_MAX_HALVINGS = 40


class LogisticRegressions:
    """Logistic regressions on one matrix, each with its own row weights.

    Each minimises |w|^2 / 2 + C * (sum of weighted log losses) with an intercept that is not regularised.

    Parameters
    ----------
    matrix
        Design matrix: one row per distinct caption, one column per feature.
    C
        Inverse regularisation strength.
    typical_weights
        Weight of each row in a typical fit. Affects speed, not the solution.
    many_fits
        Whether there will be many fits. Affects speed, not the solution.
    single_precision
        Use single precision.

    Notes
    -----
    Two classes share one weight per feature; with more classes each has its own.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        C: float,
        typical_weights: Array | None = None,
        many_fits: bool = False,
        single_precision: bool = False,
    ):
        rows = matrix.shape[0]
        ones = sparse.csr_array(np.ones((rows, 1)))
        self.matrix = sparse.csr_array(sparse.hstack([matrix, ones], format="csr"))
        self.C = C
        self._transposed = self.matrix.T.tocsr()
        n_exact = _EXACT_FEATURES_MANY_FITS if many_fits else _EXACT_FEATURES
        self._prepare_preconditioner(np.ones(rows) if typical_weights is None else typical_weights, n_exact)
        self._dtype = np.dtype(np.float32 if single_precision else np.float64)
        for name in ("matrix", "_transposed", "_inverse", "_diagonal"):
            setattr(self, name, getattr(self, name).astype(self._dtype))

    def fit(
        self, row_weights: Array, feature_mask: NDArray[np.bool_] | None = None, tolerance: float = TOLERANCE
    ) -> Array:
        """Return the coefficients of all fits: (features + 1, fits, outputs), the intercept last.

        Parameters
        ----------
        row_weights
            (classes, rows, fits): weight of each row for each class.
        feature_mask
            (features, fits): whether a fit uses a feature.
        tolerance
            Maximum error of a coefficient. A converged fit is not changed further, so fits do not depend on each
            other.
        """
        classes, _, fits = row_weights.shape
        outputs = 1 if classes == 2 else classes
        targets = row_weights[1:] if classes == 2 else row_weights
        solution = np.zeros((self.matrix.shape[1], fits, outputs), dtype=self._dtype)
        pending_fits = _PendingFits(
            self,
            (self.C * row_weights.sum(axis=0)).astype(self._dtype),
            (self.C * np.moveaxis(targets, 0, 2)).astype(self._dtype),
            None if feature_mask is None else np.vstack([feature_mask, np.ones((1, fits), dtype=bool)]),
        )
        pending_fits.solve(solution, tolerance)
        return solution

    def transposed_product(self, values: Array) -> Array:
        """Return the product of the transposed matrix with values of rows: (rows, ...) -> (features + 1, ...)."""
        flat: Any = self._transposed @ values.reshape(len(values), -1)
        return np.asarray(flat).reshape(-1, *values.shape[1:])

    def product(self, values: Array) -> Array:
        """Return the product of the matrix with values of features: (features + 1, ...) -> (rows, ...)."""
        flat: Any = self.matrix @ values.reshape(len(values), -1)
        return np.asarray(flat).reshape(-1, *values.shape[1:])

    def probabilities(self, weights: Array) -> Array:
        """Return the class probabilities (rows, fits, classes)."""
        return _probabilities(self.product(weights))

    def implicit_gradient(
        self,
        weights: Array,
        row_weights: Array,
        feature_mask: NDArray[np.bool_],
        jacobian: Array,
        tolerance: float = 1e-3,
    ) -> Array:
        """Return the derivatives of functions of the coefficients times the inverse Hessian of the losses.

        This is implicit differentiation, solved by conjugate gradients. Another caption in the losses, with
        gradient g, changes a function by minus the sum of g times the result.

        Parameters
        ----------
        weights
            The coefficients of the fits.
        row_weights, feature_mask
            As in `fit`.
        jacobian
            (features + 1, fits, functions, outputs): the derivatives of the functions by the coefficients.
        tolerance
            Maximum relative residual.

        Returns
        -------
        numpy.ndarray
            An array with the shape of `jacobian`.
        """
        features, fits, n_functions, outputs = jacobian.shape
        proba = np.repeat(self.probabilities(weights)[:, :, -outputs:], n_functions, axis=1)
        total_weights = np.repeat(self.C * row_weights.sum(axis=0), n_functions, axis=1)[:, :, None]
        mask = np.repeat(np.vstack([feature_mask, np.ones((1, fits), dtype=bool)]), n_functions, axis=1)[
            :, :, None
        ]

        def hessian_product(vector: Array) -> Array:
            product_change = self.product(vector)
            if outputs == 1:
                weighted_change = total_weights * proba * (1 - proba) * product_change
            else:
                weighted_change = (
                    total_weights
                    * proba
                    * (product_change - np.sum(proba * product_change, axis=2, keepdims=True))
                )
            product = self.transposed_product(weighted_change)
            product[:-1] += vector[:-1]
            return np.asarray(product * mask)

        residual = jacobian.reshape(features, fits * n_functions, outputs) * mask
        solution = np.zeros_like(residual)
        preconditioned = self._precondition(residual) * mask
        direction, residual_norm = preconditioned.copy(), _dot_per_fit(residual, preconditioned)
        threshold = tolerance**2 * np.maximum(residual_norm, 1e-300)
        for _ in range(_MAX_STEPS):
            if (residual_norm <= threshold).all():
                return np.asarray(solution.reshape(jacobian.shape))
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
            new_residual_norm = _dot_per_fit(residual, preconditioned)
            direction = (
                preconditioned
                + np.divide(
                    new_residual_norm,
                    residual_norm,
                    out=np.zeros_like(new_residual_norm),
                    where=residual_norm > threshold,
                )[:, None]
                * direction
            )
            residual_norm = np.where(residual_norm > threshold, new_residual_norm, residual_norm)
        raise ArithmeticError("Conjugate gradients did not converge for a logistic regression.")

    def _prepare_preconditioner(self, typical_weights: Array, n_exact: int) -> None:
        """Compute the inverse curvature at equal probabilities: a matrix for frequent features, else the diagonal."""
        features = self.matrix.shape[1] - 1
        curvature_weights = self.C * typical_weights / 4
        diagonal = np.asarray(self.matrix.multiply(self.matrix).T @ curvature_weights).reshape(-1)
        frequent = np.sort(np.argsort(-diagonal[:features], kind="stable")[:n_exact])
        self._frequent = np.append(frequent, features)
        dense = self._transposed[self._frequent].toarray().T
        curvature = (dense * curvature_weights[:, None]).T @ dense
        curvature[np.diag_indices_from(curvature)] += np.append(np.ones(len(frequent)), 1e-9)
        self._inverse = linalg.inv(curvature, check_finite=False)
        self._diagonal = 1 / (1 + diagonal)

    def _precondition(self, gradient: Array) -> Array:
        result = gradient * self._diagonal[:, None, None]
        frequent = gradient[self._frequent]
        result[self._frequent] = (self._inverse @ frequent.reshape(len(frequent), -1)).reshape(frequent.shape)
        return np.asarray(result)


class _PendingFits:
    """The fits that have not converged, solved together by L-BFGS."""

    def __init__(
        self,
        regressions: LogisticRegressions,
        total_weights: Array,
        target_weights: Array,
        feature_mask: NDArray[np.bool_] | None,
    ):
        self._regressions, self._total_weights, self._target_weights = (
            regressions,
            np.ascontiguousarray(total_weights),
            np.ascontiguousarray(target_weights),
        )
        self._feature_mask = None if feature_mask is None else feature_mask[:, :, None]

    def solve(self, solution: Array, tolerance: float) -> None:
        """Write the solution of every fit into `solution`."""
        pending = np.arange(solution.shape[1])
        weights = solution.copy()
        gradient = self._gradient(weights)
        history: list[tuple[Array, Array, Array]] = []
        for _ in range(_MAX_STEPS):
            direction = self._direction(gradient, history)
            converged = np.abs(direction).max(axis=(0, 2)) < tolerance
            if converged.any():
                solution[:, pending[converged]] = weights[:, converged]
                unfinished = ~converged
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
        self._total_weights, self._target_weights = (
            self._total_weights[:, unfinished],
            self._target_weights[:, unfinished],
        )
        if self._feature_mask is not None:
            self._feature_mask = self._feature_mask[:, unfinished]

    def _gradient(self, weights: Array) -> Array:
        logits = self._regressions.product(weights)
        proba = _sigmoid(logits) if logits.shape[2] == 1 else softmax(logits, axis=2)
        error = self._total_weights[:, :, None] * proba - self._target_weights
        gradient = self._regressions.transposed_product(error)
        gradient[:-1] += weights[:-1]
        return gradient if self._feature_mask is None else gradient * self._feature_mask

    def _direction(self, gradient: Array, history: list[tuple[Array, Array, Array]]) -> Array:
        direction = gradient.copy()
        coefficients = []
        for step, gradient_change, scale in reversed(history):
            coefficient = scale * _dot_per_fit(step, direction)
            direction -= coefficient[:, None] * gradient_change
            coefficients.append(coefficient)
        direction = self._regressions._precondition(direction)
        for (step, gradient_change, scale), coefficient in zip(history, reversed(coefficients), strict=True):
            direction += (coefficient - scale * _dot_per_fit(gradient_change, direction))[:, None] * step
        direction = -direction
        return direction if self._feature_mask is None else direction * self._feature_mask

    def _step(self, weights: Array, gradient: Array, direction: Array) -> tuple[Array, Array]:
        """Return the weights and the gradient after a step, halved until the slope along the direction decreases.

        Halving ends, since the problem is convex.
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
    """Return the dot product for each fit."""
    products: Array = np.einsum("fbo,fbo->b", first, second)
    return products


def _sigmoid(logits: Array) -> Array:
    if logits.dtype == np.float64:
        return np.asarray(expit(logits))
    return np.asarray(
        np.tanh(logits / 2) / 2 + np.float32(0.5)
    )  # the same function, faster in single precision


def _probabilities(logits: Array) -> Array:
    if logits.shape[2] > 1:
        return np.asarray(softmax(logits, axis=2))
    second_proba = expit(logits[:, :, 0])
    return np.stack([1 - second_proba, second_proba], axis=2)
