"""The arithmetic of CounterBias, by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.counterfactual.formulas import counterfactual_bias, placebo_bias

# One instance, one template: rows are images (factual, counterfactual, placebo), columns texts (own, other).
TARGET = np.array([[[[0.84, 0.70], [0.57, 0.50], [0.80, 0.69]]]])


def test_figure_6():
    """(.57 - .84) / (.04 - .98) = .287"""
    result = counterfactual_bias(TARGET, np.array([[0.98, 0.04, 0.97]]))
    assert result.vision[0, 0] == pytest.approx(0.2872, abs=5e-5)


def test_by_hand():
    """P(B | V) falls by .6; with the text P(B) falls from .9 to .1."""
    result = counterfactual_bias(TARGET, np.array([[0.8, 0.2, 0.8]]))
    assert result.vision[0, 0] == pytest.approx((0.57 - 0.84) / -0.6)
    assert result.vision_language[0, 0] == pytest.approx((0.50 - 0.84) / -0.8)
    assert result.language[0, 0] == pytest.approx((0.70 - 0.84) / -1)
    placebo_result = placebo_bias(TARGET, np.array([[0.8, 0.2, 0.8]]))
    assert placebo_result.vision[0, 0] == pytest.approx((0.80 - 0.84) / -0.6)
    assert placebo_result.vision_language[0, 0] == pytest.approx(
        (0.69 - 0.70) / -0.8
    )  # both in the other's text
    assert placebo_result.language[0, 0] == 0


def test_the_sign_changes_with_the_group():
    """A concept that becomes less probable is biased towards the original group. The sign is that of the group."""
    signed_bias = counterfactual_bias(
        np.concatenate([TARGET, TARGET]), np.array([[0.9, 0.1, 0.9]] * 2)
    ).toward_first_group(np.array([1.0, -1.0]))
    for values in (signed_bias.vision_language, signed_bias.vision, signed_bias.language):
        assert values[0, 0] > 0
        assert values[1, 0] == -values[0, 0]


@pytest.mark.parametrize(
    ("before", "after"), [(0.5, 0.5), (0.5, 0.45), (0.5, 0.401), (0.3, 0.9), (0.02, 0.0)]
)
def test_a_failed_attack_has_no_value(before, after):
    """An attack that increases P(B) has no value either, although its denominator is large enough."""
    result = counterfactual_bias(TARGET, np.array([[before, after, before]]))
    assert math.isnan(result.vision_language[0, 0])
    assert math.isnan(result.vision[0, 0])
    assert result.language[0, 0] == pytest.approx(0.14)
    placebo_result = placebo_bias(TARGET, np.array([[before, after, before]]))
    assert math.isnan(placebo_result.vision_language[0, 0])


def test_a_fall_of_a_tenth_is_enough():
    assert np.isfinite(
        counterfactual_bias(TARGET, np.array([[0.75, 0.65 - 1e-9, 0.75]])).vision_language[0, 0]
    )


shares = st.floats(0, 1)


@given(fact=shares, other=shares, before=st.floats(0.6, 1), after=st.floats(0, 0.4))
def test_bias_of_image_and_text_that_agree(fact, other, before, after):
    """Where P(B) falls from 1 to 0 the bias is by how much P(T) falls; a smaller fall of P(B) makes it larger."""
    target = np.array([[[[fact, other], [other, other]]]])
    full_bias = counterfactual_bias(target, np.array([[1.0, 0.0]])).vision_language[0, 0]
    assert full_bias == pytest.approx(fact - other)
    partial_bias = counterfactual_bias(target, np.array([[before, after]]))
    assert abs(partial_bias.vision_language[0, 0]) >= abs(full_bias) - 1e-12
    assert abs(partial_bias.vision[0, 0]) >= abs(partial_bias.vision_language[0, 0]) - 1e-12
