"""Differences of intervals: Newcombe's published cases, and what must hold of any two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.stats import Interval, difference, wilson


def share(successes, trials):
    low, high = wilson(successes, trials)
    return Interval(successes / trials, low, high)


# Newcombe, Statistics in Medicine 17 (1998), 873-890, Table II, method 10.
@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [((56, 70), (48, 80), 0.0524, 0.3339), ((9, 10), (3, 10), 0.1705, 0.8090), ((6, 7), (2, 7), 0.0582, 0.8062),
     ((5, 56), (0, 29), -0.0381, 0.1926), ((0, 10), (0, 20), -0.1611, 0.2775), ((10, 10), (0, 20), 0.6791, 1.0)],
)  # fmt: skip
def test_newcombes_cases(a, b, low, high):
    interval = difference(share(*a), share(*b))
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


numbers = st.floats(-100, 100)
widths = st.floats(0.01, 10)
intervals = st.builds(
    lambda value, down, up: Interval(value, value - down, value + up), numbers, widths, widths
)


@given(intervals, intervals)
def test_swapping_the_operands_mirrors_the_interval(a, b):
    interval, reversed_interval = difference(a, b), difference(b, a)
    assert (interval.value, interval.low, interval.high) == pytest.approx(
        (-reversed_interval.value, -reversed_interval.high, -reversed_interval.low)
    )
    assert interval.low <= interval.value <= interval.high
    assert interval.p() == pytest.approx(reversed_interval.p())


@given(intervals)
def test_p_is_below_a_twentieth_where_the_interval_excludes_the_null(a):
    bound = a.low if a.value > 0 else a.high
    if abs(bound) > 1e-6:
        assert (a.p() < 0.05) == (a.low > 0 or a.high < 0)
    assert 1e-6 <= a.p() <= 1


def test_an_interval_without_width_tests_nothing():
    """That nothing varied among the images at hand does not say that nothing would among others."""
    assert Interval(1.0, 1.0, 1.0).p() == 1.0
    assert Interval(1.0, 1.0, 3.0).p() == 1.0
    assert Interval(1.0, 0.5, 1.0).p() < 0.05
    assert Interval(0.0, 0.0, 0.0).p() == 1.0
