"""Logistic regression that stays finite where a group always, or never, answers yes (Firth 1993)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq
from scipy.special import chdtrc, chdtri, expit

from portrayal.stats.bootstrap import LEVEL, Array
from portrayal.stats.permutation import bounded_p

_STEPS = 200
_HALVINGS = 40
_LONGEST = 5.0  # the longest step, in units of columns with spread 1: further out the curvature says nothing
_FLAT = 1e-12  # a rise that counts as none, as a share of the height
_ENOUGH = 1e-4  # the share of the rise that the slope promises and a step must bring
_DOUBLINGS = 60  # how often an end of an interval is sought twice as far out
_FAR_BELOW = 1e6  # stands for a likelihood of 0, with which a root finder cannot count


@dataclass(frozen=True)
class Coefficient:
    """A log odds ratio, its profile interval and the p of a likelihood-ratio test against 0, both penalised."""

    value: float
    low: float
    high: float
    p: float


def firth(
    design: Array, answered: Array, column: int, weights: Array | None = None, level: float = LEVEL
) -> Coefficient | None:
    """The coefficient of one column in a logistic regression with Jeffreys' prior.

    `design` is (rows, columns) with the intercept first, `answered` between 0 and 1 (a share where a row stands for
    several answers), `weights` how much each row counts. Where a column tells the answers apart completely, the usual
    estimate runs off to infinity; the prior keeps it finite, and takes off most of what small samples add to it. In a
    table of two groups it is the log odds ratio after 1/2 is added to each cell. The interval holds every value that
    the likelihood ratio does not refuse. Rows are taken for independent, and a share for one answer. None where the
    columns cannot be told apart, as where one of them is constant.

    >>> design = np.array([[1.0, 0.0]] * 5 + [[1.0, 1.0]] * 5)
    >>> found = firth(design, np.array([0.0] * 5 + [1.0] * 5), column=1)
    >>> [round(number, 2) for number in (found.value, found.low, found.high, found.p)]
    [4.8, 1.52, 10.61, 0.0]
    """
    weights = np.ones(len(answered)) if weights is None else np.asarray(weights, dtype=np.float64)
    _check(design, answered, column, weights)
    counted = weights > 0
    spread = _spread(design[counted])
    if spread is None:
        return None
    columns = design[counted] / spread
    if column > 0:  # what a column is measured from touches no coefficient but the intercept's
        columns[:, 1:] -= columns[:, 1:].mean(axis=0)
    if np.linalg.matrix_rank(columns) < columns.shape[1]:
        return None
    question = _Question(columns, np.asarray(answered[counted], dtype=np.float64), weights[counted])
    free = np.ones(columns.shape[1], dtype=np.bool_)
    best, top = question.climb(np.zeros(columns.shape[1]), free)
    free[column] = False
    profile = _Profile(question, free, column, best, top)
    allowed = float(chdtri(1, 1 - level))
    ends = [profile.end(direction * profile.error(), allowed) for direction in (-1.0, 1.0)]
    value, (low, high) = best[column] / spread[column], (end / spread[column] for end in ends)
    return Coefficient(float(value), float(low), float(high), bounded_p(float(chdtrc(1, profile.drop(0.0)))))


def _check(design: Array, answered: Array, column: int, weights: Array) -> None:
    if design.ndim != 2 or not len(design) == len(answered) == len(weights):
        raise ValueError("There must be one answer and one weight for each row of the design.")
    if not 0 <= column < design.shape[1]:
        raise ValueError("The design has no such column.")
    if np.any(design[:, 0] != 1):
        raise ValueError("The first column of the design must be the intercept: 1 in every row.")
    if not np.all(np.isfinite(design)) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("The design must be finite, and no weight below 0.")
    if not np.all((answered >= 0) & (answered <= 1)):
        raise ValueError("Answers must lie between 0 and 1.")


def _spread(design: Array) -> Array | None:
    """By what each column is divided, so that all have spread 1; None where one of them does not vary."""
    if len(design) < design.shape[1]:
        return None
    spread: Array = design.std(axis=0)
    spread[0] = 1.0
    # A column of equal numbers may have a spread of rounding errors.
    constant = spread <= 1e-12 * np.abs(design).max(axis=0)
    return None if constant.any() else spread


@dataclass(frozen=True)
class _Question:
    columns: Array
    answered: Array
    weights: Array

    def climb(self, start: Array, free: NDArray[np.bool_]) -> tuple[Array, float]:
        """The coefficients at which the penalised likelihood is highest when only the free ones move, and how high."""
        at, height = start.copy(), self.height(start)
        # So far out that every answer is sure, nothing shows the way back.
        if not np.isfinite(height) or not free.any():
            return at, height
        for _ in range(_STEPS):
            slope, *curvatures = self._shape(at)
            step = np.zeros(len(at))
            step[free] = _uphill(slope[free], [curvature[np.ix_(free, free)] for curvature in curvatures])
            step *= min(1.0, _LONGEST / float(np.abs(step).max(initial=1e-300)))
            rise = float(slope @ step)
            if rise <= _FLAT * max(1.0, abs(height)):  # rounding hides what is left to gain
                at += step
                break
            for _ in range(_HALVINGS):
                higher = self.height(at + step)
                if higher >= height + _ENOUGH * rise:
                    break
                step, rise = step / 2, rise / 2
            else:
                break
            at, height = at + step, higher
        return at, height

    def height(self, at: Array) -> float:
        """The log likelihood, and half of how much the data say about the coefficients (Jeffreys' prior)."""
        score = self.columns @ at
        likelihood = float(self.weights @ (self.answered * score - np.logaddexp(0.0, score)))
        chance = expit(score)
        sign, information = np.linalg.slogdet(self._products(chance * (1 - chance)))
        return likelihood + 0.5 * float(information) if sign > 0 else -np.inf

    def information(self, at: Array) -> Array:
        chance = expit(self.columns @ at)
        return self._products(chance * (1 - chance))

    def _products(self, factor: Array) -> Array:
        return np.asarray((self.columns * (self.weights * factor)[:, None]).T @ self.columns)

    def _shape(self, at: Array) -> tuple[Array, Array, Array]:
        """The slope, the curvature, and the curvature that the prior has no part in, which never points downhill."""
        columns, chance = self.columns, expit(self.columns @ at)
        variance = chance * (1 - chance)
        information = self._products(variance)
        # A pseudo-inverse: so far out that most answers are sure, rounding would blow an inverse up.
        inverse = np.linalg.pinv(information, hermitian=True)
        spread = np.sum(columns @ inverse * columns, axis=1)
        # How much each row decides about its own fit: the prior adds that many answers, half of them yes.
        leverage = self.weights * variance * spread
        slope = columns.T @ (self.weights * (self.answered - chance) + leverage * (0.5 - chance))
        changes = np.stack([inverse @ self._products(variance * (1 - 2 * chance) * one) for one in columns.T])
        bend = self._products(variance * (1 - 6 * variance) * spread) - np.einsum(
            "jab,kba->jk", changes, changes
        )
        return slope, information - 0.5 * bend, information


def _uphill(slope: Array, curvatures: list[Array]) -> Array:
    """Newton's step by the first curvature that bends down in every direction; else along the slope."""
    for curvature in curvatures:
        try:
            return np.asarray(cho_solve(cho_factor(curvature), slope))
        except np.linalg.LinAlgError:
            continue
    return slope


@dataclass(frozen=True)
class _Profile:
    """How far the likelihood falls when one coefficient is held elsewhere and the others adapt."""

    question: _Question
    free: NDArray[np.bool_]
    column: int
    best: Array
    top: float

    def error(self) -> float:
        """A first guess of how far the ends of an interval lie: the standard error at the top."""
        inverse = np.linalg.inv(self.question.information(self.best))
        return float(np.sqrt(max(inverse[self.column, self.column], 1e-12)))

    def drop(self, value: float) -> float:
        """The likelihood ratio, which chance lets follow a chi-squared distribution with one degree of freedom."""
        # Always from the top: from elsewhere the climb could end elsewhere, and a root finder needs one answer.
        start = self.best.copy()
        start[self.column] = value
        _, height = self.question.climb(start, self.free)
        return min(max(2 * (self.top - height), 0.0), _FAR_BELOW)

    def end(self, step: float, allowed: float) -> float:
        """Where the likelihood ratio reaches what is allowed, in the direction of the step."""
        middle = float(self.best[self.column])
        inside, outside = middle, middle + step
        for _ in range(_DOUBLINGS):
            if self.drop(outside) > allowed:
                break
            inside, outside = outside, middle + 2 * (outside - middle)
        return float(brentq(lambda value: self.drop(value) - allowed, inside, outside, xtol=1e-8, rtol=1e-8))
