"""The cluster bootstrap: against scipy, and by simulation where the truth is known."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse, stats

from portrayal.stats import Resampler, bootstrap, percentile_interval, sorted_clusters
from portrayal.stats.bootstrap import bca_interval


def names(n: int) -> tuple[str, ...]:
    return tuple(f"{i:05}" for i in range(n))


def ratio(totals: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return totals[:, 0] / totals[:, 1]


def test_resamples_are_the_same_in_every_process():
    code = (
        "from portrayal.stats import Resampler; import numpy as np;"
        "print(Resampler(tuple('abcdefgh'), seed=3, n_resamples=5).totals(np.eye(8)).astype(int).tolist())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other.strip() == str(
        Resampler(tuple("abcdefgh"), seed=3, n_resamples=5).totals(np.eye(8)).astype(int).tolist()
    )


@given(st.integers(2, 60), st.integers(0, 5))
def test_every_resample_is_scaled_to_the_size_of_the_study(n, seed):
    totals = Resampler(names(n), seed=seed, n_resamples=20).totals(np.ones((n, 1)))
    assert np.nanmax(np.abs(totals - n)) < 1e-9


def test_weights_are_those_of_a_poisson_bootstrap():
    """Mean 1, variance 1, and independent between resamples and between clusters."""
    weights = Resampler(names(1000), n_resamples=500)._multiplicities.astype(float)
    observed = np.bincount(weights.astype(int).ravel(), minlength=9)[:7] / weights.size
    assert observed == pytest.approx(stats.poisson.pmf(np.arange(7), 1), abs=0.002)
    assert np.corrcoef(weights[:-1].ravel(), weights[1:].ravel())[0, 1] == pytest.approx(0, abs=0.01)
    assert np.corrcoef(weights[:, :-1].ravel(), weights[:, 1:].ravel())[0, 1] == pytest.approx(0, abs=0.01)
    assert np.corrcoef(
        weights.ravel(), Resampler(names(1000), seed=1, n_resamples=500)._multiplicities.ravel()
    )[0, 1] == pytest.approx(0, abs=0.01)


def test_the_weights_of_a_cluster_do_not_depend_on_other_clusters():
    few, many = Resampler(("b", "d"), n_resamples=50), Resampler(("a", "b", "c", "d"), n_resamples=50)
    assert (few._multiplicities == many._multiplicities[:, [1, 3]]).all()


def test_a_single_cluster_gives_no_interval():
    (estimate,) = bootstrap(np.ones((1, 2)), ratio, Resampler(("a",), n_resamples=50))
    assert (estimate.value, estimate.low, estimate.high, estimate.se) == (1.0, None, None, None)


def test_strata_keep_their_size():
    strata = (0,) * 30 + (1,) * 20 + (2,) * 10
    indicator = np.eye(3)[list(strata)]
    totals = Resampler(names(60), strata=strata, n_resamples=50).totals(indicator)
    assert totals == pytest.approx(np.tile([30, 20, 10], (50, 1)))


def test_fewer_resamples_are_the_first_of_more():
    counts = np.arange(10.0)[:, None]
    assert (
        Resampler(names(10), n_resamples=7).totals(counts)
        == Resampler(names(10), n_resamples=200).totals(counts)[:7]
    ).all()


def test_sparse_counts_give_the_same_totals():
    counts = np.random.default_rng(0).integers(0, 3, size=(40, 6)).astype(float)
    resampler = Resampler(names(40), n_resamples=30)
    np.testing.assert_allclose(resampler.totals(counts), resampler.totals(sparse.csr_array(counts)))


def test_percentile_agrees_with_scipy_within_its_noise():
    rng = np.random.default_rng(1)
    sample = rng.exponential(size=300)
    ours = bootstrap(np.c_[sample, np.ones(300)], ratio, Resampler(names(300), n_resamples=4000))[0]
    theirs = stats.bootstrap(
        (sample,), np.mean, n_resamples=4000, method="percentile", rng=np.random.default_rng(2)
    )
    assert ours.value == pytest.approx(sample.mean())
    assert ours.se == pytest.approx(theirs.standard_error, rel=0.05)
    assert ours.low == pytest.approx(theirs.confidence_interval.low, abs=0.2 * ours.se)
    assert ours.high == pytest.approx(theirs.confidence_interval.high, abs=0.2 * ours.se)


def test_bca_agrees_with_scipy_on_the_same_resamples():
    rng = np.random.default_rng(1)
    sample = rng.exponential(size=60) ** 2
    theirs = stats.bootstrap((sample,), np.mean, n_resamples=3000, method="BCa", rng=np.random.default_rng(2))
    left_out = np.array([np.delete(sample, i).mean() for i in range(60)])
    low, high = bca_interval(
        np.array([sample.mean()]), theirs.bootstrap_distribution[:, None], left_out[:, None]
    )
    assert low[0] == pytest.approx(theirs.confidence_interval.low, rel=1e-6)
    assert high[0] == pytest.approx(theirs.confidence_interval.high, rel=1e-6)
    ours = bootstrap(np.c_[sample, np.ones(60)], ratio, Resampler(names(60), n_resamples=3000), method="bca")[
        0
    ]
    assert ours.low == pytest.approx(low[0], rel=0.1)
    assert ours.high == pytest.approx(high[0], rel=0.1)


def test_undefined_stays_undefined():
    (estimate,) = bootstrap(np.zeros((20, 2)), ratio, Resampler(names(20), n_resamples=50))
    assert (estimate.value, estimate.low, estimate.high, estimate.se) == (None, None, None, None)


def test_mostly_undefined_resamples_give_no_interval():
    counts = np.zeros((20, 2))
    counts[0] = 1  # about a third of the resamples miss the only cluster that counts
    (estimate,) = bootstrap(counts, ratio, Resampler(names(20), n_resamples=500))
    assert estimate.value == 1
    assert estimate.low is None


def test_names_must_be_sorted_and_match():
    with pytest.raises(ValueError, match="sorted and unique"):
        Resampler(("b", "a"))
    with pytest.raises(ValueError, match="2 clusters but 3 rows"):
        Resampler(("a", "b")).totals(np.ones((3, 1)))


def test_sorted_clusters():
    distinct, indices = sorted_clusters(["b", "a", "b"])
    assert distinct == ("a", "b")
    assert indices.tolist() == [1, 0, 1]


@pytest.fixture(scope="module")
def clustered() -> np.ndarray:
    """2,000 simulated studies of 150 clusters with five correlated yes/no answers each: sums per cluster."""
    rng = np.random.default_rng(7)
    probabilities = rng.beta(0.6, 1.4, size=(150, 2000))  # mean .3; answers within a cluster go together
    return rng.binomial(5, probabilities).astype(float)


def test_a_95_percent_interval_covers_95_percent_of_the_time(clustered):
    resamples = Resampler(names(150), n_resamples=1000).totals(clustered) / (150 * 5)
    low, high = percentile_interval(resamples)
    assert 0.93 <= np.mean((low <= 0.3) & (high >= 0.3)) <= 0.97


def test_the_naive_interval_has_too_low_coverage(clustered):
    shares = clustered.sum(axis=0) / (150 * 5)
    half = 1.96 * np.sqrt(shares * (1 - shares) / (150 * 5))
    assert np.mean(np.abs(shares - 0.3) <= half) < 0.85


def test_stratified_intervals_have_the_right_coverage():
    """A difference between two groups whose sizes are fixed."""
    rng = np.random.default_rng(8)
    truth = 0.2
    first = rng.binomial(1, 0.3, size=(120, 1500)).astype(float)
    second = rng.binomial(1, 0.5, size=(60, 1500)).astype(float)
    resampler = Resampler(names(180), strata=(0,) * 120 + (1,) * 60)
    stacked = np.vstack([-first / 120, second / 60])
    low, high = percentile_interval(resampler.totals(stacked))
    assert 0.93 <= np.mean((low <= truth) & (high >= truth)) <= 0.97
