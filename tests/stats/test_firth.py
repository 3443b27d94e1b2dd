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


def penalised(at: np.ndarray, design: np.ndarray, answered: np.ndarray, weights: np.ndarray) -> float:
    """The penalised log likelihood as it is defined, row by row."""
    total, information = 0.0, np.zeros((len(at), len(at)))
    for row, answer, weight in zip(design, answered, weights, strict=True):
        chance = expit(row @ at)
        total += weight * (answer * math.log(chance) + (1 - answer) * math.log(1 - chance))
        information += weight * chance * (1 - chance) * np.outer(row, row)
    return total + 0.5 * math.log(np.linalg.det(information))


def some_data(seed: int, rows: int = 40) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, rows)
    size = rng.normal(size=rows)
    design = np.column_stack([np.ones(rows), group, size]).astype(float)
    answered = (rng.random(rows) < expit(-0.5 + 0.8 * group + 0.5 * size)).astype(float)
    return design, answered, rng.integers(1, 4, rows).astype(float)


def table(yes: int, no: int, other_yes: int, other_no: int) -> tuple[np.ndarray, np.ndarray]:
    group = np.repeat([1.0, 1.0, 0.0, 0.0], [yes, no, other_yes, other_no])
    answered = np.repeat([1.0, 0.0, 1.0, 0.0], [yes, no, other_yes, other_no])
    return np.column_stack([np.ones(len(group)), group]), answered


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_the_highest_point_of_the_penalised_likelihood(seed, weighted):
    design, answered, weights = some_data(seed)
    if weighted:
        answered = np.random.default_rng(seed).integers(0, 6, len(answered)) / 5  # shares of captions
    else:
        weights = np.ones(len(answered))
    best = minimize(
        lambda at: -penalised(at, design, answered, weights),
        np.zeros(3),
        method="BFGS",
        options={"gtol": 1e-6},
    )
    for column in range(3):
        found = firth(design, answered, column, weights if weighted else None)
        assert found is not None
        assert found.value == pytest.approx(best.x[column], abs=1e-4)


def test_the_ends_of_the_interval_are_where_the_profile_has_fallen_by_half_of_chi_squared():
    design, answered, weights = some_data(7)

    def profile(value: float) -> float:
        return minimize(
            lambda free: -penalised(np.array([free[0], value, free[1]]), design, answered, weights),
            np.zeros(2),
        ).fun

    found = firth(design, answered, 1, weights)
    assert found is not None
    top = minimize_scalar(profile, bracket=(found.value - 1, found.value, found.value + 1)).fun
    for end in (found.low, found.high):
        assert 2 * (profile(end) - top) == pytest.approx(3.841459, abs=1e-4)
    ratio = 2 * (profile(0.0) - top)
    assert found.p == pytest.approx(math.erfc(math.sqrt(ratio / 2)), abs=1e-5)


@pytest.mark.parametrize("cells", [(3, 7, 5, 2), (10, 0, 4, 6), (0, 5, 5, 0), (1, 1, 1, 1), (0, 4, 0, 9)])
def test_a_table_of_two_groups_has_a_half_added_to_each_cell(cells):
    a, b, c, d = (cell + 0.5 for cell in cells)
    found = firth(*table(*cells), column=1)
    assert found is not None
    assert found.value == pytest.approx(math.log(a * d / (b * c)), abs=1e-8)


def test_rows_may_be_counted_instead_of_repeated():
    design, answered = table(3, 7, 5, 2)
    counted = firth(
        np.array([[1.0, 1.0], [1.0, 0.0]]), np.array([0.3, 5 / 7]), column=1, weights=np.array([10.0, 7.0])
    )
    repeated = firth(design, answered, column=1)
    assert counted is not None
    assert repeated is not None
    assert [counted.value, counted.low, counted.high, counted.p] == pytest.approx(
        [repeated.value, repeated.low, repeated.high, repeated.p], abs=1e-6
    )


def test_rows_of_no_weight_do_not_count():
    design, answered, weights = some_data(3)
    weights[:10] = 0
    left = firth(design[10:], answered[10:], 1, weights[10:])
    assert firth(design, answered, 1, weights) == left


@pytest.mark.parametrize("rows", [6, 40, 400])
def test_complete_separation_stays_finite(rows):
    group = np.arange(rows) % 2
    size = np.random.default_rng(rows).normal(size=rows)
    design = np.column_stack([np.ones(rows), group, size])
    found = firth(design, group.astype(float), column=1)
    assert found is not None
    assert np.isfinite([found.value, found.low, found.high]).all()
    assert 0 < found.low < found.value < found.high or rows == 6
    assert found.p < 0.05 or rows == 6


def test_where_nobody_ever_says_it_there_is_no_difference_to_see():
    design, _ = table(5, 5, 5, 5)
    found = firth(design, np.zeros(20), column=1)
    assert found is not None
    assert found.value == pytest.approx(0, abs=1e-9)
    assert found.low < -1 < 1 < found.high
    assert found.p == pytest.approx(1)


SINGULAR = {
    "a constant column": np.column_stack([np.ones(8), np.full(8, 0.1), np.arange(8)]),
    "two columns that say the same": np.column_stack([np.ones(8), np.arange(8), 3.0 * np.arange(8) + 1]),
    "fewer rows than columns": np.array([[1.0, 0.0, 2.0], [1.0, 1.0, 3.0]]),
    "no rows": np.empty((0, 2)),
}


@pytest.mark.parametrize("name", SINGULAR)
def test_columns_that_cannot_be_told_apart(name):
    design = SINGULAR[name]
    assert firth(design, np.arange(len(design)) % 2 * 1.0, column=1) is None


def test_rows_without_weight_cannot_tell_columns_apart():
    design, answered = table(3, 3, 3, 3)
    assert firth(design, answered, 1, weights=design[:, 1]) is None


BAD = {
    "one outcome": (np.ones((2, 1)), np.ones(3), 0, None),
    "no such column": (np.ones((2, 1)), np.ones(2), 1, None),
    "intercept": (np.array([[0.0, 1.0], [1.0, 1.0]]), np.ones(2), 1, None),
    "finite": (np.array([[1.0, np.nan], [1.0, 1.0]]), np.ones(2), 1, None),
    "no weight below 0": (np.ones((2, 1)), np.ones(2), 0, np.array([1.0, -1.0])),
    "between 0 and 1": (np.ones((2, 1)), np.array([0.0, 1.5]), 0, None),
}


@pytest.mark.parametrize("sentence", BAD)
def test_what_makes_no_sense_is_refused(sentence):
    design, answered, column, weights = BAD[sentence]
    with pytest.raises(ValueError, match=sentence):
        firth(design, answered, column, weights)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 6), min_size=4, max_size=4).filter(lambda cells: cells[0] + cells[1] > 0))
def test_the_other_coding_of_the_group_turns_the_sign(cells):
    if cells[2] + cells[3] == 0:
        return
    design, answered = table(*cells)
    turned = design.copy()
    turned[:, 1] = 1 - turned[:, 1]
    one, other = firth(design, answered, 1), firth(turned, answered, 1)
    assert one is not None
    assert other is not None
    assert [one.value, one.low, one.high, one.p] == pytest.approx(
        [-other.value, -other.high, -other.low, other.p], abs=1e-6
    )
    assert one.low < one.value < one.high
    assert (one.p < 0.05) == (not one.low <= 0 <= one.high)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.sampled_from([1e-6, 0.01, 100.0, 1e7]))
def test_units_do_not_matter(seed, unit):
    design, answered, _ = some_data(seed, rows=20)
    if np.ptp(design[:, 1]) == 0:
        return
    scaled = design * [1, 1, unit] + [0, 0, 5 * unit]
    one, other = firth(design, answered, 1), firth(scaled, answered, 1)
    assert one is not None
    assert other is not None
    assert [one.value, one.low, one.high] == pytest.approx([other.value, other.low, other.high], abs=1e-5)


def simulated(effect: float, studies: int, rows: int = 60) -> list[Coefficient]:
    """Small studies in which the rarer group has few rows, as an object beside people of one group has."""
    found = []
    for study in range(studies):
        rng = np.random.default_rng([11, study])
        group = (np.arange(rows) < rows // 4).astype(float)
        size = rng.normal(size=rows)
        design = np.column_stack([np.ones(rows), group, size])
        answered = (rng.random(rows) < expit(-1.2 + effect * group + 0.7 * size)).astype(float)
        one = firth(design, answered, 1)
        assert one is not None
        found.append(one)
    return found


def test_false_positives_are_as_rare_as_promised():
    found = simulated(effect=0.0, studies=300)
    wrong = np.mean([one.p < 0.05 for one in found])
    assert 0.02 < wrong < 0.08  # 0.05, give or take about two standard errors of 300 studies


def test_intervals_hold_the_truth_as_often_as_promised():
    truth = 1.5
    found = simulated(effect=truth, studies=300)
    held = np.mean([one.low <= truth <= one.high for one in found])
    assert 0.92 < held < 0.98
    assert np.mean([one.value for one in found]) == pytest.approx(truth, abs=0.12)  # and hardly any bias
