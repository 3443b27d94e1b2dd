"""The arithmetic of CounterBias, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.counterfactual.formulas import bias, placebo

# One instance, one template: rows are pictures (factual, counterfactual, placebo), columns texts (own, other).
TARGET = np.array([[[[0.84, 0.70], [0.57, 0.50], [0.80, 0.69]]]])


def test_figure_6():
    """(.57 - .84) / (.04 - .98) = .287"""
    result = bias(TARGET, np.array([[0.98, 0.04, 0.97]]))
    assert result.by_image[0, 0] == pytest.approx(0.2872, abs=5e-5)


def test_by_hand():
    """P(B | V) falls by .6; with the text P(B) falls from .9 to .1."""
    result = bias(TARGET, np.array([[0.8, 0.2, 0.8]]))
    assert result.by_image[0, 0] == pytest.approx((0.57 - 0.84) / -0.6)
    assert result.by_both[0, 0] == pytest.approx((0.50 - 0.84) / -0.8)
    assert result.by_text[0, 0] == pytest.approx((0.70 - 0.84) / -1)
    placebo_bias = placebo(TARGET, np.array([[0.8, 0.2, 0.8]]))
    assert placebo_bias.by_image[0, 0] == pytest.approx((0.80 - 0.84) / -0.6)
    assert placebo_bias.by_both[0, 0] == pytest.approx((0.69 - 0.70) / -0.8)  # both in the other's text
    assert placebo_bias.by_text[0, 0] == 0


def test_the_sign_turns_with_the_group():
    """A concept that becomes less likely leans to the group that was there: to the second, it is counted against."""
    both = bias(np.concatenate([TARGET, TARGET]), np.array([[0.9, 0.1, 0.9]] * 2)).signed(
        np.array([1.0, -1.0])
    )
    for values in (both.by_both, both.by_image, both.by_text):
        assert values[0, 0] > 0
        assert values[1, 0] == -values[0, 0]


@pytest.mark.parametrize(
    ("before", "after"), [(0.5, 0.5), (0.5, 0.45), (0.5, 0.401), (0.3, 0.9), (0.02, 0.0)]
)
def test_a_failed_attack_has_no_value(before, after):
    """Nor one that made the picture more of what it was: of the size of the denominator nothing could be seen."""
    result = bias(TARGET, np.array([[before, after, before]]))
    assert math.isnan(result.by_both[0, 0])
    assert math.isnan(result.by_image[0, 0])
    assert result.by_text[0, 0] == pytest.approx(0.14)
    placebo_bias = placebo(TARGET, np.array([[before, after, before]]))
    assert math.isnan(placebo_bias.by_both[0, 0])


def test_a_fall_of_a_tenth_is_enough():
    assert np.isfinite(bias(TARGET, np.array([[0.75, 0.65 - 1e-9, 0.75]])).by_both[0, 0])


shares = st.floats(0, 1)


@given(fact=shares, other=shares, before=st.floats(0.6, 1), after=st.floats(0, 0.4))
def test_picture_and_text_that_agree(fact, other, before, after):
    """Where P(B) falls from 1 to 0 the bias is by how much P(T) falls; a smaller fall of P(B) makes it larger."""
    target = np.array([[[[fact, other], [other, other]]]])
    whole = bias(target, np.array([[1.0, 0.0]])).by_both[0, 0]
    assert whole == pytest.approx(fact - other)
    less = bias(target, np.array([[before, after]]))
    assert abs(less.by_both[0, 0]) >= abs(whole) - 1e-12
    assert abs(less.by_image[0, 0]) >= abs(less.by_both[0, 0]) - 1e-12
