"""Firth's logistic regression: known answers, direct maximisation, separation, and how often it is right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit

from portrayal.stats import Coefficient, firth


def penalised_log_likelihood(
    coefficients: np.ndarray, design: np.ndarray, outcomes: np.ndarray, weights: np.ndarray
) -> float:
    """The penalised log likelihood as it is defined, row by row."""
    total, information = 0.0, np.zeros((len(coefficients), len(coefficients)))
    for row, outcome, weight in zip(design, outcomes, weights, strict=True):
        probability = expit(row @ coefficients)
        total += weight * (outcome * math.log(probability) + (1 - outcome) * math.log(1 - probability))
        information += weight * probability * (1 - probability) * np.outer(row, row)
    return total + 0.5 * math.log(np.linalg.det(information))


def simulated_design(seed: int, rows: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    size = rng.normal(size=rows)
    design = np.column_stack([np.ones(rows), group, size]).astype(float)
    outcomes = (rng.random(rows) < expit(-0.5 + 0.8 * group + 0.5 * size)).astype(float)
    return design, outcomes, rng.integers(1, 4, rows).astype(float)


def table(yes: int, no: int, other_yes: int, other_no: int) -> tuple[np.ndarray, np.ndarray]:
    group = np.repeat([1.0, 1.0, 0.0, 0.0], [yes, no, other_yes, other_no])
    outcomes = np.repeat([1.0, 0.0, 1.0, 0.0], [yes, no, other_yes, other_no])
    return np.column_stack([np.ones(len(group)), group]), outcomes


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_firth_maximises_the_penalised_likelihood(seed, weighted):
    design, outcomes, weights = simulated_design(seed)
    if weighted:
        outcomes = np.random.default_rng(seed).integers(0, 6, len(outcomes)) / 5  # shares of captions
    else:
        weights = np.ones(len(outcomes))
    best = minimize(
        lambda coefficients: -penalised_log_likelihood(coefficients, design, outcomes, weights),
        np.zeros(3),
        method="BFGS",
        options={"gtol": 1e-6},
    )
    for column in range(3):
        coefficient = firth(design, outcomes, column, weights if weighted else None)
        assert coefficient is not None
        assert coefficient.value == pytest.approx(best.x[column], abs=1e-4)


def test_the_ends_of_the_interval_are_where_the_profile_has_fallen_by_half_of_chi_squared():
    design, outcomes, weights = simulated_design(7)

    def profile(value: float) -> float:
        return minimize(
            lambda free: (
                -penalised_log_likelihood(np.array([free[0], value, free[1]]), design, outcomes, weights)
            ),
            np.zeros(2),
        ).fun

    coefficient = firth(design, outcomes, 1, weights)
    assert coefficient is not None
    top = minimize_scalar(
        profile, bracket=(coefficient.value - 1, coefficient.value, coefficient.value + 1)
    ).fun
    for end in (coefficient.low, coefficient.high):
        assert 2 * (profile(end) - top) == pytest.approx(3.841459, abs=1e-4)
    ratio = 2 * (profile(0.0) - top)
    assert coefficient.p == pytest.approx(math.erfc(math.sqrt(ratio / 2)), abs=1e-5)


@pytest.mark.parametrize("cells", [(3, 7, 5, 2), (10, 0, 4, 6), (0, 5, 5, 0), (1, 1, 1, 1), (0, 4, 0, 9)])
def test_a_table_of_two_groups_has_a_half_added_to_each_cell(cells):
    a, b, c, d = (cell + 0.5 for cell in cells)
    coefficient = firth(*table(*cells), column=1)
    assert coefficient is not None
    assert coefficient.value == pytest.approx(math.log(a * d / (b * c)), abs=1e-8)


def test_rows_may_be_counted_instead_of_repeated():
    design, outcomes = table(3, 7, 5, 2)
    counted = firth(
        np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([0.3, 5 / 7]), column=1, weights=np.array([10.0, 7.0])
    )
    repeated = firth(design, outcomes, column=1)
    assert counted is not None
    assert repeated is not None
    assert [counted.value, counted.low, counted.high, counted.p] == pytest.approx(
        [repeated.value, repeated.low, repeated.high, repeated.p], abs=1e-6
    )


def test_rows_of_no_weight_do_not_count():
    design, outcomes, weights = simulated_design(3)
    weights[:10] = 0
    without_rows = firth(design[10:], outcomes[10:], 1, weights[10:])
    assert firth(design, outcomes, 1, weights) == without_rows


@pytest.mark.parametrize("rows", [6, 40, 400])
def test_complete_separation_stays_finite(rows):
    group = np.arange(rows) % 2
    size = np.random.default_rng(rows).normal(size=rows)
    design = np.column_stack([np.ones(rows), group, size])
    coefficient = firth(design, group.astype(float), column=1)
    assert coefficient is not None
    assert np.isfinite([coefficient.value, coefficient.low, coefficient.high]).all()
    assert 0 < coefficient.low < coefficient.value < coefficient.high or rows == 6
    assert coefficient.p < 0.05 or rows == 6


def test_without_positive_outcomes_the_coefficient_is_0():
    design, _ = table(5, 5, 5, 5)
    coefficient = firth(design, np.zeros(20), column=1)
    assert coefficient is not None
    assert coefficient.value == pytest.approx(0, abs=1e-9)
    assert coefficient.low < -1 < 1 < coefficient.high
    assert coefficient.p == pytest.approx(1)


SINGULAR = {
    "a constant column": np.column_stack([np.ones(8), np.full(8, 0.1), np.arange(8)]),
    "two columns that say the same": np.column_stack([np.ones(8), np.arange(8), 3.0 * np.arange(8) + 1]),
    "fewer rows than columns": np.array([[1.0, 0.0, 2.0], [1.0, 1.0, 3.0]]),
    "no rows": np.empty((0, 2)),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_a_singular_design_has_no_coefficient(name):
    design = SINGULAR[name]
    assert firth(design, np.arange(len(design)) % 2 * 1.0, column=1) is None


def test_rows_without_weight_do_not_make_a_design_regular():
    design, outcomes = table(3, 3, 3, 3)
    assert firth(design, outcomes, 1, weights=design[:, 1]) is None


BAD = {
    "one outcome": (np.ones((2, 1)), np.ones(3), 0, None),
    "no such column": (np.ones((2, 1)), np.ones(2), 1, None),
    "intercept": (np.array([[0.0, 1.0], [1.0, 1.0]]), np.ones(2), 1, None),
    "finite": (np.array([[1.0, np.nan], [1.0, 1.0]]), np.ones(2), 1, None),
    "no weight below 0": (np.ones((2, 1)), np.ones(2), 0, np.array([1.0, -1.0])),
    "between 0 and 1": (np.ones((2, 1)), np.array([0.0, 1.5]), 0, None),
}


@pytest.mark.parametrize("sentence", BAD)
def test_bad_input_is_refused(sentence):
    design, outcomes, column, weights = BAD[sentence]
    with pytest.raises(ValueError, match=sentence):
        firth(design, outcomes, column, weights)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(lambda cells: cells[0] + cells[1] > 0))
def test_the_other_coding_of_the_group_turns_the_sign(cells):
    if cells[2] + cells[3] == 0:
        return
    design, outcomes = table(*cells)
    turned = design.copy()
    turned[:, 1] = 1 - turned[:, 1]
    coefficient, turned_coefficient = firth(design, outcomes, 1), firth(turned, outcomes, 1)
    assert coefficient is not None
    assert turned_coefficient is not None
    assert [coefficient.value, coefficient.low, coefficient.high, coefficient.p] == pytest.approx(
        [-turned_coefficient.value, -turned_coefficient.high, -turned_coefficient.low, turned_coefficient.p],
        abs=1e-6,
    )
    assert coefficient.low < coefficient.value < coefficient.high
    assert (coefficient.p < 0.05) == (not coefficient.low <= 0 <= coefficient.high)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([1e-6, 0.01, 100.0, 1e7]))
def test_units_do_not_matter(seed, unit):
    design, outcomes, _ = simulated_design(seed, rows=20)
    if np.ptp(design[:, 1]) == 0:
        return
    scaled = design * [1, 1, unit] + [0, 0, 5 * unit]
    coefficient, scaled_coefficient = firth(design, outcomes, 1), firth(scaled, outcomes, 1)
    assert coefficient is not None
    assert scaled_coefficient is not None
    assert [coefficient.value, coefficient.low, coefficient.high] == pytest.approx(
        [scaled_coefficient.value, scaled_coefficient.low, scaled_coefficient.high], abs=1e-5
    )


def simulated_coefficients(effect: float, studies: int, rows: int = 60) -> list[Coefficient]:
    """Small studies in which the rarer group has few rows, as an object beside people of one group has."""
    coefficients = []
    for study in range(studies):
        rng = np.random.default_rng([11, study])
        group = (np.arange(rows) < rows // 4).astype(float)
        size = rng.normal(size=rows)
        design = np.column_stack([np.ones(rows), group, size])
        outcomes = (rng.random(rows) < expit(-1.2 + effect * group + 0.7 * size)).astype(float)
        coefficient = firth(design, outcomes, 1)
        assert coefficient is not None
        coefficients.append(coefficient)
    return coefficients


def test_the_false_positive_rate_is_the_nominal_level():
    coefficients = simulated_coefficients(effect=0.0, studies=300)
    false_positive_rate = np.mean([coefficient.p < 0.05 for coefficient in coefficients])
    assert 0.02 < false_positive_rate < 0.08  # 0.05, give or take about two standard errors of 300 studies


def test_intervals_have_the_nominal_coverage():
    truth = 1.5
    coefficients = simulated_coefficients(effect=truth, studies=300)
    coverage = np.mean([coefficient.low <= truth <= coefficient.high for coefficient in coefficients])
    assert 0.92 < coverage < 0.98
    assert np.mean([coefficient.value for coefficient in coefficients]) == pytest.approx(
        truth, abs=0.12
    )  # and hardly any bias
