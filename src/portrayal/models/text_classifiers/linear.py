"""Logistic regression, many at once: one design matrix, and many sets of weighted labels of its rows.

Seeds, folds and permutations of a study share their rows and differ in which rows count, and for which class. Solved
together, the matrix is read once for all of them, which is what makes nulls and intervals affordable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse
from scipy.special import expit, softmax

Array = NDArray[np.float64]

TOLERANCE = 2e-5  # how far a weight may be from its solution, by what is known of the curvature
_MEMORY = 5  # steps that the quasi-Newton method remembers
_EXACT = 300  # features whose curvature is used whole; of the others only each one's own
_EXACT_FOR_MANY = 1000  # the same where a costly start pays
MANY = 200  # fits that are worth one
_MOST_STEPS = 1000
_MOST_HALVINGS = 40


class LogisticRegressions:
    """Minimises |w|^2 / 2 + strength * sum of weighted log losses, the intercept free, for many weightings at once.

    `matrix` has a row per distinct case and a column per feature. `usual` is how much a row weighs in a typical fit,
    and `many` whether there will be MANY fits or more; both shape the steps, not the solution. Two classes share one
    weight per feature; more have one each. With `rough`, numbers have half as many digits.
    """

    def __init__(
        self,
        matrix: sparse.csr_array,
        strength: float,
        usual: Array | None = None,
        many: bool = False,
        rough: bool = False,
    ):
        rows = matrix.shape[0]
        ones = sparse.csr_array(np.ones((rows, 1)))
        self.matrix = sparse.csr_array(sparse.hstack([matrix, ones], format="csr"))
        self.strength = strength
        self._transposed = self.matrix.T.tocsr()
        exact = _EXACT_FOR_MANY if many else _EXACT
        self._prepare(np.ones(rows) if usual is None else usual, exact)
        self._kind = np.dtype(np.float32 if rough else np.float64)
        for name in ("matrix", "_transposed", "_inverse", "_diagonal"):
            setattr(self, name, getattr(self, name).astype(self._kind))

    def fit(
        self, counts: Array, allowed: NDArray[np.bool_] | None = None, tolerance: float = TOLERANCE
    ) -> Array:
        """Weights of every fit: (features + 1, fits, outputs), the intercept last.

        `counts` (classes, rows, fits) says how much each row counts for each class. `allowed` (features, fits) says
        which features a fit may use. A fit that is done is left alone, so that none depends on its neighbours.
        """
        classes, _, fits = counts.shape
        outputs = 1 if classes == 2 else classes
        pull = counts[1:] if classes == 2 else counts
        made = np.zeros((self.matrix.shape[1], fits, outputs), dtype=self._kind)
        problem = _Problem(
            self,
            (self.strength * counts.sum(axis=0)).astype(self._kind),
            (self.strength * np.moveaxis(pull, 0, 2)).astype(self._kind),
            None if allowed is None else np.vstack([allowed, np.ones((1, fits), dtype=bool)]),
        )
        problem.solve(made, tolerance)
        return made

    def of_rows(self, values: Array) -> Array:
        """What numbers of rows come to for each feature: (rows, ...) to (features + 1, ...)."""
        flat: Any = self._transposed @ values.reshape(len(values), -1)
        return np.asarray(flat).reshape(-1, *values.shape[1:])

    def to_rows(self, values: Array) -> Array:
        """What numbers of features come to for each row: (features + 1, ...) to (rows, ...)."""
        flat: Any = self.matrix @ values.reshape(len(values), -1)
        return np.asarray(flat).reshape(-1, *values.shape[1:])

    def probabilities(self, weights: Array) -> Array:
        """(rows, fits, classes) of every row under every fit."""
        return _probabilities(self.to_rows(weights))

    def pull_back(
        self,
        weights: Array,
        counts: Array,
        allowed: NDArray[np.bool_],
        slopes: Array,
        tolerance: float = 1e-3,
    ) -> Array:
        """What moving a fit's losses does to numbers that are made of its weights, as a weight of each feature.

        `slopes` (features + 1, fits, numbers, outputs) says how each number moves with the weights. One more caption
        in the losses, with gradient g, moves it by minus the sum of g times what is returned, in the same shape: the
        slopes divided by the curvature of the losses, by conjugate gradients.
        """
        features, fits, several, outputs = slopes.shape
        likely = np.repeat(self.probabilities(weights)[:, :, -outputs:], several, axis=1)
        total = np.repeat(self.strength * counts.sum(axis=0), several, axis=1)[:, :, None]
        mask = np.repeat(np.vstack([allowed, np.ones((1, fits), dtype=bool)]), several, axis=1)[:, :, None]

        def curve(direction: Array) -> Array:
            moved = self.to_rows(direction)
            if outputs == 1:
                change = total * likely * (1 - likely) * moved
            else:
                change = total * likely * (moved - np.sum(likely * moved, axis=2, keepdims=True))
            made = self.of_rows(change)
            made[:-1] += direction[:-1]
            return np.asarray(made * mask)

        left = slopes.reshape(features, fits * several, outputs) * mask
        made = np.zeros_like(left)
        near = self._precondition(left) * mask
        way, fits_left = near.copy(), _dot(left, near)
        enough = tolerance**2 * np.maximum(fits_left, 1e-300)
        for _ in range(_MOST_STEPS):
            if (fits_left <= enough).all():
                return np.asarray(made.reshape(slopes.shape))
            curved = curve(way)
            length = np.divide(
                fits_left, _dot(way, curved), out=np.zeros_like(fits_left), where=fits_left > enough
            )
            made += length[:, None] * way
            left -= length[:, None] * curved
            near = self._precondition(left) * mask
            new = _dot(left, near)
            way = (
                near
                + np.divide(new, fits_left, out=np.zeros_like(new), where=fits_left > enough)[:, None] * way
            )
            fits_left = np.where(fits_left > enough, new, fits_left)
        raise ArithmeticError("The curvature of a logistic regression could not be divided by.")

    def _prepare(self, usual: Array, exact: int) -> None:
        """The curvature at equal probabilities: in full for the commonest features, else feature by feature."""
        features = self.matrix.shape[1] - 1
        weight = self.strength * usual / 4
        own = np.asarray(self.matrix.multiply(self.matrix).T @ weight).reshape(-1)
        common = np.sort(np.argsort(-own[:features], kind="stable")[:exact])
        self._common = np.append(common, features)
        part = self._transposed[self._common].toarray().T
        curvature = (part * weight[:, None]).T @ part
        curvature[np.diag_indices_from(curvature)] += np.append(np.ones(len(common)), 1e-9)
        self._inverse = linalg.inv(curvature, check_finite=False)
        self._diagonal = 1 / (1 + own)

    def _precondition(self, gradient: Array) -> Array:
        made = gradient * self._diagonal[:, None, None]
        part = gradient[self._common]
        made[self._common] = (self._inverse @ part.reshape(len(part), -1)).reshape(part.shape)
        return np.asarray(made)


class _Problem:
    """The fits that are not done yet, and L-BFGS for all of them side by side."""

    def __init__(
        self, design: LogisticRegressions, total: Array, pull: Array, allowed: NDArray[np.bool_] | None
    ):
        self._design, self._total, self._pull = (
            design,
            np.ascontiguousarray(total),
            np.ascontiguousarray(pull),
        )
        self._allowed = None if allowed is None else allowed[:, :, None]

    def solve(self, made: Array, tolerance: float) -> None:
        """Fill `made` with the solution of every fit."""
        waiting = np.arange(made.shape[1])
        here = made.copy()
        slope = self._gradient(here)
        past: list[tuple[Array, Array, Array]] = []
        for _ in range(_MOST_STEPS):
            way = self._direction(slope, past)
            done = np.abs(way).max(axis=(0, 2)) < tolerance
            if done.any():
                made[:, waiting[done]] = here[:, done]
                left = ~done
                waiting, here, slope, way = waiting[left], here[:, left], slope[:, left], way[:, left]
                past = [(step[:, left], turn[:, left], scale[left]) for step, turn, scale in past]
                self._keep(left)
            if not len(waiting):
                return
            there, new_slope = self._step(here, slope, way)
            step, turn = there - here, new_slope - slope
            curved = _dot(step, turn)
            scale = np.divide(1.0, curved, out=np.zeros_like(curved), where=curved > 1e-18)
            past = [*past[-_MEMORY + 1 :], (step, turn, scale)]
            here, slope = there, new_slope
        raise ArithmeticError(f"{len(waiting)} of {made.shape[1]} logistic regressions did not converge.")

    def _keep(self, left: NDArray[np.bool_]) -> None:
        self._total, self._pull = self._total[:, left], self._pull[:, left]
        if self._allowed is not None:
            self._allowed = self._allowed[:, left]

    def _gradient(self, weights: Array) -> Array:
        scores = self._design.to_rows(weights)
        likely = _sigmoid(scores) if scores.shape[2] == 1 else softmax(scores, axis=2)
        error = self._total[:, :, None] * likely - self._pull
        made = self._design.of_rows(error)
        made[:-1] += weights[:-1]
        return made if self._allowed is None else made * self._allowed

    def _direction(self, slope: Array, past: list[tuple[Array, Array, Array]]) -> Array:
        way = slope.copy()
        parts = []
        for step, turn, scale in reversed(past):
            part = scale * _dot(step, way)
            way -= part[:, None] * turn
            parts.append(part)
        way = self._design._precondition(way)
        for (step, turn, scale), part in zip(past, reversed(parts), strict=True):
            way += (part - scale * _dot(turn, way))[:, None] * step
        way = -way
        return way if self._allowed is None else way * self._allowed

    def _step(self, here: Array, slope: Array, way: Array) -> tuple[Array, Array]:
        """Along the way until its slope has fallen; the problem is convex, so a shorter step always does."""
        falls = np.abs(_dot(slope, way))
        length = np.ones(here.shape[1], dtype=here.dtype)
        for _ in range(_MOST_HALVINGS):
            there = here + length[:, None] * way
            found = self._gradient(there)
            far = np.abs(_dot(found, way)) > 0.9 * falls + 1e-15
            if not far.any():
                break
            length = np.where(far, length / 2, length)
        return there, found


def _dot(one: Array, other: Array) -> Array:
    """Fit by fit."""
    made: Array = np.einsum("fbo,fbo->b", one, other)
    return made


def _sigmoid(scores: Array) -> Array:
    if scores.dtype == np.float64:
        return np.asarray(expit(scores))
    return np.asarray(np.tanh(scores / 2) / 2 + np.float32(0.5))  # the same, and faster with few digits


def _probabilities(scores: Array) -> Array:
    if scores.shape[2] > 1:
        return np.asarray(softmax(scores, axis=2))
    second = expit(scores[:, :, 0])
    return np.stack([1 - second, second], axis=2)
