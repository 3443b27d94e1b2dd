"""p values of bootstrap resamples and of paired comparisons: as small as the evidence, and uniform under the null."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from portrayal.stats import (
    MIN_P,
    Resampler,
    bootstrap_p,
    mcnemar_difference,
    normal_p,
    paired_difference,
    percentile_interval,
    unpaired_difference,
)

NORMAL = stats.norm.ppf(
    (np.arange(1000) + 0.5) / 1000
)  # what resamples of a mean look like, without their noise


def test_bootstrap_p_by_hand():
    # Quantiles at levels 1/5, 2/5, 3/5 and 4/5: 0 lies half way from the first to the second, so that p is twice 3/10.
    assert bootstrap_p(np.array([-1.0, 1.0, 2.0, 3.0])) == pytest.approx(3 / 5)
    assert bootstrap_p(np.array([-3.0, -2.0, -1.0, 1.0])) == pytest.approx(3 / 5)
    assert bootstrap_p(np.zeros(10)) == 1.0
    assert bootstrap_p(np.full(999, 0.3)) == 2 / 1000  # all alike: no spread to go on with
    assert bootstrap_p(np.array([np.nan, 1.0])) is None


@pytest.mark.parametrize("z", [0.5, 1.5, 2.5, 3.1, 3.77, 4.5])
def test_p_is_that_of_a_normal_tail_however_few_resamples_lie_beyond(z):
    """Counting gives .002, .004, .006 and so on; at z = 3.77 one resample beyond 0 would give .004 and not .00016."""
    assert bootstrap_p(NORMAL + z) == pytest.approx(2 * stats.norm.sf(z), rel=0.15)
    assert bootstrap_p(-NORMAL - z) == pytest.approx(2 * stats.norm.sf(z), rel=0.15)
    beyond = NORMAL + 3.77
    beyond[0] = -1.0
    assert bootstrap_p(beyond) == pytest.approx(normal_p(3.77), rel=0.2)


def test_p_has_a_minimum():
    assert bootstrap_p(NORMAL + 30) == MIN_P
    assert normal_p(-40) == MIN_P
    assert unpaired_difference(0.0, 9.0, 0.1, 0.1).p == MIN_P
    assert mcnemar_difference(0, 400, 1000).p == MIN_P


@given(
    st.lists(st.integers(-30, 30), min_size=40, max_size=120),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.floats(-10, 10),
)
def test_p_is_below_5_percent_only_where_the_interval_excludes_the_null(numbers, step, null):
    """Also where resamples repeat each other, as those of small counts do."""
    resamples = np.array(numbers) * step + 0.25
    (low,), (high,) = percentile_interval(resamples[:, None])
    if bootstrap_p(resamples, null) < 0.05:
        assert null < low or null > high


@pytest.mark.parametrize("end", [0, 1])
def test_p_is_5_percent_at_the_end_of_the_interval(end):
    bound = float(percentile_interval(NORMAL[:, None])[end][0])
    assert bootstrap_p(NORMAL, bound * 1.01) < 0.05 < bootstrap_p(NORMAL, bound)


@given(st.integers(1, 400), st.integers(0, 30), st.integers(0, 30))
def test_mcnemar_is_the_sign_test_and_its_interval_agrees(concordant, first, second):
    estimate = mcnemar_difference(first, second, first + second + concordant)
    assert estimate.low <= estimate.value <= estimate.high
    assert estimate.value == pytest.approx((second - first) / (first + second + concordant))
    if first + second:
        assert estimate.p == pytest.approx(max(stats.binomtest(first, first + second).pvalue, MIN_P))
        assert (estimate.p < 0.05) == (estimate.low > 0 or estimate.high < 0)
    else:
        assert estimate.p is None


@pytest.mark.parametrize("differ", [1, 3, 5, 6, 8, 12])
def test_bootstrap_p_agrees_with_the_sign_test_where_few_images_differ(differ):
    """Of 1,000 images `differ` are worse in the second: the sign test's p is 2 / 2^differ, and the bootstrap alone
    gave .013 where it is .031."""
    resampler = Resampler(tuple(f"{i:04}" for i in range(1000)), n_resamples=1000)
    first = np.zeros(1000)
    second = (np.arange(1000) < differ).astype(float)
    resamples = resampler.totals(np.column_stack([first, second])) / 1000
    estimate = paired_difference(0.0, differ / 1000, resamples[:, 0], resamples[:, 1])
    sign_test = stats.binomtest(0, differ).pvalue
    print(estimate.p, sign_test)
    assert (estimate.low > 0) == (estimate.p < 0.05) == (sign_test < 0.05)


def test_where_no_image_differs_the_interval_says_how_many_could():
    """1 - .025^(1/40) = .0881: were so many to differ on one side, 40 images would show none in 1 of 40 studies."""
    estimate = mcnemar_difference(0, 0, 40)
    assert (estimate.value, estimate.p, estimate.mde) == (0, None, None)
    assert (estimate.low, estimate.high) == (
        pytest.approx(-0.0881, abs=1e-4),
        pytest.approx(0.0881, abs=1e-4),
    )
    assert stats.binomtest(0, 40, estimate.high, "less").pvalue == pytest.approx(0.025)
    every = mcnemar_difference(0, 40, 40)
    assert (every.value, every.high, every.mde) == (1, 1, None)
    assert every.p < 1e-5


@pytest.mark.parametrize(("differ", "expected"), [(5, 0.0), (10, 0.0215), (20, 0.0414)])
def test_mcnemar_is_conservative(differ, expected):
    """How often it calls a difference of shuffled systems significant, summed over all ways they can fall."""
    false_positive_rate = sum(
        stats.binom.pmf(first, differ, 0.5)
        for first in range(differ + 1)
        if mcnemar_difference(first, differ - first, 100).p < 0.05
    )
    assert false_positive_rate == pytest.approx(expected, abs=1e-4)


def rejection_rate(p_values: list[float], level: float) -> float:
    return float(np.mean(np.array(p_values) < level))


@pytest.mark.parametrize(("images", "maximum"), [(30, 0.09), (100, 0.07)])
def test_p_of_bootstrap_is_uniform_under_the_null(images, maximum):
    """400 studies. Percentile intervals of few images are a little narrow (docs/statistics.md)."""
    rng = np.random.default_rng(11)
    resampler = Resampler(tuple(f"{i:03}" for i in range(images)), n_resamples=400)
    totals = resampler.totals(rng.normal(size=(images, 400)))
    p_values = [bootstrap_p(column) for column in totals.T]
    assert stats.kstest(p_values, "uniform").pvalue > 0.01
    assert 0.03 <= rejection_rate(p_values, 0.05) <= maximum
    assert rejection_rate(p_values, 0.001) <= 0.01


@pytest.mark.parametrize("binary", [True, False])
def test_p_of_a_comparison_is_uniform_under_shuffled_systems(binary):
    """Which of two captions an image has from which system is shuffled in every one of 400 studies."""
    rng = np.random.default_rng(7)
    images = 120
    image = rng.normal(size=images)
    scores = np.column_stack([image + rng.normal(size=images) for _ in range(2)])
    scores = (scores > 0).astype(float) if binary else scores
    resampler = Resampler(tuple(f"{i:03}" for i in range(images)), n_resamples=400)
    by_bootstrap, by_mcnemar = [], []
    for _ in range(400):
        swapped = rng.random(images) < 0.5
        first, second = (
            np.where(swapped, scores[:, 0], scores[:, 1]),
            np.where(swapped, scores[:, 1], scores[:, 0]),
        )
        resamples = resampler.totals(np.column_stack([first, second])) / images
        by_bootstrap.append(
            paired_difference(first.mean(), second.mean(), resamples[:, 0], resamples[:, 1]).p
        )
        differences = second - first
        by_mcnemar.append(
            mcnemar_difference(int((differences < 0).sum()), int((differences > 0).sum()), images).p
        )
    assert 0.02 <= rejection_rate(by_bootstrap, 0.05) <= 0.08
    assert 0.40 <= rejection_rate(by_bootstrap, 0.5) <= 0.60
    if binary:
        assert rejection_rate(by_mcnemar, 0.05) <= 0.06  # exact, so never more than it says but for chance
        assert rejection_rate(by_mcnemar, 0.5) <= 0.55
    else:
        assert stats.kstest(by_bootstrap, "uniform").pvalue > 0.01


def test_the_interval_of_mcnemar_covers_a_difference_far_from_0():
    """The images that differ are themselves a matter of chance: 5 % count in the first only, 30 % in the second."""
    rng = np.random.default_rng(2)
    estimates = [
        mcnemar_difference(first, second, 200)
        for first, second, _ in rng.multinomial(200, [0.05, 0.3, 0.65], 1000)
    ]
    assert 0.93 <= np.mean([estimate.low <= 0.25 <= estimate.high for estimate in estimates]) <= 0.98
