"""Penalised logistic regression (Firth 1993), which stays finite under complete separation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri, expit

from portrayal.stats.bootstrap import LEVEL, Array
from portrayal.stats.p_values import floored_p

_MAX_STEPS = 200
_MAX_HALVINGS = 40
_MAX_STEP = 5.0  # in units of standardised columns: further out the curvature is uninformative
_TOLERANCE = 1e-12  # relative: a smaller gain counts as none
_ARMIJO = 1e-4  # Armijo condition: the share of the expected gain that a step must bring
_MAX_DOUBLINGS = 60  # of the distance at which an end of the interval is searched
_MAX_RATIO = 1e6  # stands for a likelihood of 0, which a root finder cannot use


@dataclass(frozen=True)
class Coefficient:
    """A log odds ratio with its penalised profile interval and the p of the penalised likelihood-ratio test."""

    value: float
    low: float
    high: float
    p: float


def firth(
    design: Array, outcome: Array, column: int, weights: Array | None = None, level: float = LEVEL
) -> Coefficient | None:
    """The coefficient of one column in a logistic regression with Jeffreys' prior.

    Under complete separation the maximum-likelihood estimate is infinite; the prior keeps it finite and removes most of
    the small-sample bias. In a two-by-two table it is the log odds ratio after adding 1/2 to each cell. The interval
    holds every value that the likelihood-ratio test does not reject.

    Parameters
    ----------
    design
        (rows, columns), the intercept first.
    outcome
        Between 0 and 1; a share where a row stands for several observations. Rows are treated as independent, and a
        share as one observation.
    column
        The column whose coefficient is returned.
    weights
        The weight of each row. By default 1.
    level
        Confidence level.

    Returns
    -------
    Coefficient or None
        None where the design is rank-deficient, for example where a column is constant.

    Examples
    --------
    >>> design = np.array([[1.0, 0.0]] * 5 + [[1.0, 1.0]] * 5)
    >>> coefficient = firth(design, np.array([0.0] * 5 + [1.0] * 5), column=1)
    >>> [round(number, 2) for number in (coefficient.value, coefficient.low, coefficient.high, coefficient.p)]
    [4.8, 1.52, 10.61, 0.0]
    """
    weights = np.ones(len(outcome)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(design, outcome, column, weights)
    counted = weights > 0
    scales = _scales(design[counted])
    if scales is None:
        return None
    columns = design[counted] / scales
    if column > 0:  # centring changes the intercept only
        columns[:, 1:] -= columns[:, 1:].mean(axis=0)
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    likelihood = _PenalisedLikelihood(
        columns, np.asarray(outcome[counted], dtype=np.float64), weights[counted]
    )
    free = np.ones(columns.shape[1], dtype=np.bool_)
    best, top = likelihood.maximise(np.zeros(columns.shape[1]), free)
    free[column] = False
    profile = _Profile(likelihood, free, column, best, top)
    allowed = float(chdtri(1, 1 - level))
    ends = [profile.interval_end(direction * profile.error(), allowed) for direction in (-1.0, 1.0)]
    value, (low, high) = best[column] / scales[column], (end / scales[column] for end in ends)
    return Coefficient(
        float(value), float(low), float(high), floored_p(float(chdtrc(1, profile.likelihood_ratio(0.0))))
    )


def _check(design: Array, outcome: Array, column: int, weights: Array) -> None:
    if design.ndim != 2 or not len(design) == len(outcome) == len(weights):
        raise ValueError("There must be one outcome and one weight for each row of the design.")
    if not 0 <= column < design.shape[1]:
        raise ValueError("The design has no such column.")
    if np.any(design[:, 0] != 1):
        raise ValueError("The first column of the design must be the intercept: 1 in every row.")
    if not np.all(np.isfinite(design)) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("The design must be finite, and no weight below 0.")
    if not np.all((outcome >= 0) & (outcome <= 1)):
        raise ValueError("Outcomes must lie between 0 and 1.")


def _scales(design: Array) -> Array | None:
    """The standard deviation of each column; None where a column is constant."""
    if len(design) < design.shape[1]:
        return None
    scales: Array = design.std(axis=0)
    scales[0] = 1.0
    # Rounding can give a constant column a small spread.
    constant = scales <= 1e-12 * np.abs(design).max(axis=0)
    return None if constant.any() else scales


@dataclass(frozen=True)
class _PenalisedLikelihood:
    design: Array
    outcome: Array
    weights: Array

    def maximise(self, start: Array, free: NDArray[np.bool_]) -> tuple[Array, float]:
        """The maximum of the penalised likelihood over the free coefficients: where it is, and its value."""
        at, height = start.copy(), self.value_at(start)
        # Far out, where every probability is 0 or 1, the gradient vanishes.
        if not np.isfinite(height) or not free.any():
            return at, height
        for _ in range(_MAX_STEPS):
            slope, *curvatures = self._derivatives(at)
            step = np.zeros(len(at))
            step[free] = _newton_step(
                slope[free], [curvature[np.ix_(free, free)] for curvature in curvatures]
            )
            step *= min(1.0, _MAX_STEP / float(np.abs(step).max(initial=1e-300)))
            rise = float(slope @ step)
            if rise <= _TOLERANCE * max(1.0, abs(height)):  # the gain is below rounding error
                at += step
                break
            for _ in range(_MAX_HALVINGS):
                higher = self.value_at(at + step)
                if higher >= height + _ARMIJO * rise:
                    break
                step, rise = step / 2, rise / 2
            else:
                break
            at, height = at + step, higher
        return at, height

    def value_at(self, at: Array) -> float:
        """The log likelihood plus half of the log determinant of the information matrix (Jeffreys' prior)."""
        score = self.design @ at
        likelihood = float(self.weights @ (self.outcome * score - np.logaddexp(0.0, score)))
        chance = expit(score)
        sign, information = np.linalg.slogdet(self._products(chance * (1 - chance)))
        return likelihood + 0.5 * float(information) if sign > 0 else -np.inf

    def information(self, at: Array) -> Array:
        chance = expit(self.design @ at)
        return self._products(chance * (1 - chance))

    def _products(self, factor: Array) -> Array:
        return np.asarray((self.design * (self.weights * factor)[:, None]).T @ self.design)

    def _derivatives(self, at: Array) -> tuple[Array, Array, Array]:
        """The gradient, the negative Hessian, and the information matrix, which is positive semi-definite."""
        design, chance = self.design, expit(self.design @ at)
        variance = chance * (1 - chance)
        information = self._products(variance)
        # A pseudo-inverse: far out, rounding errors would dominate an inverse.
        inverse = np.linalg.pinv(information, hermitian=True)
        spread = np.sum(design @ inverse * design, axis=1)
        # Leverage of each row: the prior adds that many observations, half of them 1.
        leverage = self.weights * variance * spread
        slope = design.T @ (self.weights * (self.outcome - chance) + leverage * (0.5 - chance))
        changes = np.stack(
            [inverse @ self._products(variance * (1 - 2 * chance) * column) for column in design.T]
        )
        bend = self._products(variance * (1 - 6 * variance) * spread) - np.einsum(
            "jab,kba->jk", changes, changes
        )
        return slope, information - 0.5 * bend, information


def _newton_step(slope: Array, curvatures: list[Array]) -> Array:
    """Newton's step with the first positive definite matrix; else the gradient."""
    for curvature in curvatures:
        try:
            return np.asarray(cho_solve(cho_factor(curvature), slope))
        except np.linalg.LinAlgError:
            continue
    return slope


@dataclass(frozen=True)
class _Profile:
    """The profile likelihood of one coefficient: it is fixed, the others are maximised over."""

    likelihood: _PenalisedLikelihood
    free: NDArray[np.bool_]
    column: int
    best: Array
    maximum: float

    def error(self) -> float:
        """The standard error at the maximum: a starting point for the ends of the interval."""
        inverse = np.linalg.inv(self.likelihood.information(self.best))
        return float(np.sqrt(max(inverse[self.column, self.column], 1e-12)))

    def likelihood_ratio(self, value: float) -> float:
        """The likelihood-ratio statistic, chi-squared with one degree of freedom under the null."""
        # Always start from the maximum, so that the root finder sees one function.
        start = self.best.copy()
        start[self.column] = value
        _, height = self.likelihood.maximise(start, self.free)
        return min(max(2 * (self.maximum - height), 0.0), _MAX_RATIO)

    def interval_end(self, step: float, allowed: float) -> float:
        """Where the likelihood ratio reaches `allowed`, in the direction of the step."""
        middle = float(self.best[self.column])
        inside, outside = middle, middle + step
        for _ in range(_MAX_DOUBLINGS):
            if self.likelihood_ratio(outside) > allowed:
                break
            inside, outside = outside, middle + 2 * (outside - middle)
        return float(
            brentq(
                lambda value: self.likelihood_ratio(value) - allowed, inside, outside, xtol=1e-8, rtol=1e-8
            )
        )
