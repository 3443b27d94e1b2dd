"""Rates, corrections, p values, power, comparisons: against scipy and statsmodels, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_confint

from portrayal.stats import (
    Resampler,
    benjamini_hochberg,
    cluster_permutations,
    clustered_variance,
    clustered_wilson,
    holm,
    minimum_detectable_effect,
    multiway_variance,
    noise_floor,
    paired_difference,
    permutation_p,
    permutation_test,
    permutations,
    replicates_over_seeds,
    training_variance,
    unpaired_difference,
    wilson,
)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_is_that_of_statsmodels(case):
    successes, trials = case
    assert wilson(successes, trials) == pytest.approx(
        proportion_confint(successes, trials, method="wilson"), abs=1e-12
    )


@given(st.lists(st.booleans(), min_size=1, max_size=60))
def test_clusters_of_a_single_trial_give_plain_wilson(answers):
    successes = np.array(answers, dtype=float)
    interval = clustered_wilson(successes, np.ones(len(answers)))
    assert interval[0] <= successes.mean() <= interval[1]
    assert interval == pytest.approx(wilson(successes.sum(), len(answers)), abs=1e-9)


@given(st.lists(st.booleans(), min_size=2, max_size=40))
def test_copies_within_a_cluster_add_nothing(answers):
    successes = np.array(answers, dtype=float)
    interval = clustered_wilson(successes, np.ones(len(answers)))
    assert clustered_wilson(5 * successes, np.full(len(answers), 5.0)) == pytest.approx(interval, abs=1e-9)


def test_clustered_wilson_covers():
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(1500):
        successes = rng.binomial(5, rng.beta(0.6, 1.4, size=150)).astype(float)
        low, high = clustered_wilson(successes, np.full(150, 5.0))
        hits += low <= 0.3 <= high
    assert 0.93 <= hits / 1500 <= 0.97


P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


@given(P_VALUES)
def test_corrections_are_those_of_statsmodels(p_values):
    assert holm(p_values) == pytest.approx(multipletests(p_values, method="holm")[1], abs=1e-12)
    assert benjamini_hochberg(p_values) == pytest.approx(stats.false_discovery_control(p_values), abs=1e-12)


@given(P_VALUES)
def test_what_was_not_tested_does_not_count(p_values):
    gaps = [value for p in p_values for value in (p, None)]
    assert [q for q in holm(gaps) if q is not None] == holm(p_values)
    assert holm(gaps)[1::2] == [None] * len(p_values)
    assert benjamini_hochberg(gaps)[::2] == benjamini_hochberg(p_values)
    assert holm([]) == []


def test_p_values_outside_0_to_1_are_refused():
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.5])


def test_permutation_p_by_hand():
    null = np.array([[0.0], [1.0], [2.0], [3.0]])
    assert permutation_p(np.array([2.0]), null).tolist() == [3 / 5]  # 2 and 3 reach it: (1 + 2) / (1 + 4)
    assert permutation_p(np.array([9.0]), null).tolist() == [1 / 5]


def test_permutation_p_agrees_with_scipy():
    rng = np.random.default_rng(0)
    first, second = rng.normal(0, 1, 40), rng.normal(0.5, 1, 40)
    pooled = np.r_[first, second]
    observed = np.array([abs(first.mean() - second.mean())])

    def statistic(order):
        shuffled = pooled[order]
        return np.array([abs(shuffled[:40].mean() - shuffled[40:].mean())])

    ours = permutation_p(observed, permutations(statistic, 80, seed=1, n_permutations=4000))[0]
    theirs = stats.permutation_test(
        (first, second), lambda a, b, axis: np.abs(a.mean(axis) - b.mean(axis)), alternative="greater",
        n_resamples=4000, vectorized=True, rng=np.random.default_rng(2),
    ).pvalue  # fmt: skip
    assert ours == pytest.approx(theirs, abs=0.015)


def test_permutation_p_is_uniform_under_the_null():
    rng = np.random.default_rng(5)
    p_values = []
    for study in range(300):
        sample = rng.normal(size=30)

        def statistic(order, sample=sample):
            return np.array([abs(sample[order][:15].mean() - sample[order][15:].mean())])

        p_values.append(
            permutation_p(
                statistic(np.arange(30)), permutations(statistic, 30, seed=study, n_permutations=99)
            )[0]
        )
    assert stats.kstest(p_values, "uniform").pvalue > 0.01


@pytest.mark.parametrize("clustered", [False, True])
def test_permutations_go_on_where_p_is_close_to_the_threshold(clustered):
    """The largest of 20 numbers stands last: p is 1/20 exactly, so that no number of permutations is ever enough."""
    sample, orders = np.arange(20.0), []

    def statistic(order):
        orders.append(order)
        return np.array([sample[order][-1]])

    clusters = np.arange(20) if clustered else 20
    p = permutation_test(statistic, clusters, seed=3, n_permutations=100)[0]
    assert len(orders) == 1 + 1000
    null = (cluster_permutations if clustered else permutations)(statistic, clusters, 3, 1000)
    assert p == permutation_p(np.array([19.0]), null)[0]  # the same as with all permutations at once
    orders.clear()
    sample = sample[::-1]  # the smallest: every permutation reaches it
    assert permutation_test(statistic, clusters, seed=3, n_permutations=100)[0] == 1.0
    assert len(orders) == 1 + 100


def test_undefined_numbers_have_no_p():
    p = permutation_p(np.array([np.nan, 1.0]), np.array([[0.0, np.nan], [1.0, 0.0], [2.0, 0.5]]))
    assert np.isnan(p[0])
    assert p[1] == (1 + 1) / 4  # an undefined permutation counts as extreme


def test_equal_clusters_do_not_give_a_narrow_interval():
    low, high = clustered_wilson(np.full(7, 0.4), np.ones(7))
    assert high - low > 0.4
    assert (low, high) == pytest.approx(wilson(2.8, 7))
    assert clustered_wilson(np.full(7, 0.4), np.ones(7), max_effective=35) == pytest.approx(wilson(14, 35))


def test_means_of_several_captions_have_narrower_intervals_than_single_captions():
    rng = np.random.default_rng(6)
    widths, hits = [], 0
    for _ in range(800):
        shares = rng.binomial(5, rng.beta(6, 14, size=120)) / 5
        low, high = clustered_wilson(shares, np.ones(120), max_effective=600)
        widths.append(high - low)
        hits += low <= 0.3 <= high
    assert 0.93 <= hits / 800 <= 0.97
    assert np.mean(widths) < 0.7 * (wilson(36, 120)[1] - wilson(36, 120)[0])


@pytest.mark.parametrize("n", [1, 3, 7, 50, 999])
def test_a_rate_at_its_end_is_bounded_there(n):
    assert wilson(0, n)[0] == 0
    assert wilson(n, n)[1] == 1


def test_the_noise_floor_of_normal_values():
    """|mean of n standard normals| averages sqrt(2 / (pi n)); one value per item keeps its own size."""
    values = np.random.default_rng(0).normal(size=200 * 50)
    items = np.repeat(np.arange(200), 50)
    assert noise_floor(values, items, seed=1, n_permutations=200) == pytest.approx(
        np.sqrt(2 / (np.pi * 50)), rel=0.03
    )
    assert noise_floor(np.array([3.0, -1.0]), np.array([0, 1]), seed=1, n_permutations=10) == pytest.approx(
        2.0
    )


def test_minimum_detectable_effect_is_that_of_statsmodels():
    n = 250
    effect = NormalIndPower().solve_power(nobs1=n, alpha=0.05, power=0.8, ratio=1)
    assert minimum_detectable_effect(np.sqrt(2 / n)) == pytest.approx(effect, rel=1e-3)


def test_pairing_removes_what_two_systems_share():
    rng = np.random.default_rng(0)
    n = 400
    image = rng.normal(size=n)
    first, second = image + rng.normal(0, 0.1, n), image + 0.1 + rng.normal(0, 0.1, n)
    resampler = Resampler(tuple(f"{i:04}" for i in range(n)))
    resamples = resampler.totals(np.c_[first, second]) / n
    paired = paired_difference(first.mean(), second.mean(), resamples[:, 0], resamples[:, 1])
    unpaired = unpaired_difference(
        first.mean(), second.mean(), resamples[:, 0].std(ddof=1), resamples[:, 1].std(ddof=1)
    )
    assert paired.value == pytest.approx(unpaired.value)
    assert paired.se < unpaired.se / 5
    assert paired.p < 0.01 < unpaired.p
    assert paired.se == pytest.approx((second - first).std(ddof=1) / np.sqrt(n), rel=0.1)
    assert paired.low < 0.1 < paired.high


def test_a_paired_interval_covers_where_two_systems_share_most_of_their_images():
    """Each system misses some images of its own; what they share still cancels, and the interval is honest."""
    rng = np.random.default_rng(4)
    n, hits, p_values = 150, 0, []
    names = np.array([f"{i:04}" for i in range(n)])
    first, second = names[5:], names[:-5]
    resamplers = [
        Resampler(tuple(cluster_names.tolist()), n_resamples=300) for cluster_names in (first, second)
    ]
    for _ in range(400):
        image = rng.normal(size=n)
        a, b = (image + rng.normal(0, 0.5, n))[5:], (image + rng.normal(0, 0.5, n))[:-5]
        estimate = paired_difference(
            a.mean(),
            b.mean(),
            resamplers[0].totals(a[:, None])[:, 0] / len(a),
            resamplers[1].totals(b[:, None])[:, 0] / len(b),
        )
        hits += estimate.low <= 0 <= estimate.high
        p_values.append(estimate.p)
    assert 0.91 <= hits / 400 <= 0.98
    assert np.mean(np.array(p_values) < 0.05) <= 0.09
    assert estimate.se < 0.1  # unpaired it would be about 0.13


def test_equal_measurements_do_not_differ():
    resamples = np.random.default_rng(0).normal(size=100)
    same = paired_difference(1.0, 1.0, resamples, resamples)
    assert (same.value, same.low, same.high, same.p, same.mde) == (0.0, None, None, None, None)
    assert unpaired_difference(1.0, 2.0, None, 0.1).low is None


@pytest.mark.parametrize("second", [0.0, 1.0])
def test_resamples_that_are_all_alike_give_no_interval(second):
    """How far other images would differ is not known; that every resample differs is, as far as they are many."""
    paired = paired_difference(0.0, second, np.zeros(1000), np.full(1000, second))
    assert (paired.value, paired.low, paired.high, paired.mde) == (second, None, None, None)
    assert paired.p == (pytest.approx(2 / 1001) if second else None)
    unpaired = unpaired_difference(0.0, second, 0.0, 0.0)
    assert (unpaired.value, unpaired.low, unpaired.high, unpaired.p, unpaired.mde) == (second, *[None] * 4)


def test_replicates_over_seeds_add_both_variances_without_double_counting():
    rng = np.random.default_rng(0)
    points = np.array([-0.3, 0.0, 0.3, 0.1, -0.1])
    shared_noise, seed_noise = rng.normal(0, 0.2, 4000), rng.normal(0, 0.4, (5, 4000))
    resamples = points[:, None] + shared_noise + seed_noise
    replicates = replicates_over_seeds(resamples, points, 0)
    seed_mean = resamples.mean(axis=0)
    assert replicates.mean() == pytest.approx(0, abs=0.01)
    assert replicates.std() == pytest.approx(np.hypot(seed_mean.std(), points.std() / np.sqrt(5)), rel=0.05)
    np.testing.assert_allclose(replicates_over_seeds(resamples[:1], points[:1], 0), resamples[0])


def test_variance_of_rows_that_are_alike_for_several_reasons():
    effect = np.array([1.0, 2.0, -4.0, 1.0])
    first_clusters, second_clusters = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])
    assert clustered_variance(effect, first_clusters) == 9 + 16 + 1
    assert clustered_variance(effect, second_clusters) == 1 + 4 + 1
    # Every pair that shares a cluster of either kind, once: 1*1 + 2*2 + 4*4 + 1*1 + 2*(1*2) + 2*(2*-4)
    assert (
        multiway_variance(np.array([1.0, 2.0, 4.0, 1.0]), first_clusters, second_clusters)
        == 1 + 4 + 16 + 1 + 4 + 16
    )
    assert (
        multiway_variance(effect, first_clusters, second_clusters) == 26
    )  # by pairs it would be 10: never below one kind alone
    assert multiway_variance(effect, first_clusters) == 26
    rng = np.random.default_rng(0)
    effects, clusterings = rng.random(40), [rng.integers(0, 6, 40) for _ in range(3)]
    shared = np.any([clustering[:, None] == clustering[None, :] for clustering in clusterings], axis=0)
    assert multiway_variance(effects, *clusterings) == pytest.approx(effects @ shared @ effects)


@pytest.mark.parametrize("single_effect", [0.0, 5.0])
def test_what_a_pair_does_together_counts_once(single_effect):
    """T = e * sum of x_i + sum over i != j of a_ij x_i x_j, x random signs, e the single effect: variance
    e^2 n + 2 n (n - 1).

    An image adds e x_i + 2 x_i (a x)_i, as a training image and as a test image; by pairs, with signs z, x_i (a z x)_i.
    Here a a = (n - 1) I (Paley 1933), so that squares of (a x)_i add up to n (n - 1) whatever the signs: 4 n (n - 1) of
    whole effects, minus 2 n (n - 1). The random remainder is 4 e sum of (a x)_i.
    """
    prime = 37
    squares = {i * i % prime for i in range(1, prime)}
    n = prime + 1
    a = np.ones((n, n))
    a[1:, 1:] = [[1 if (i - j) % prime in squares else -1 for j in range(prime)] for i in range(prime)]
    np.fill_diagonal(a, 0)
    assert (a @ a == (n - 1) * np.eye(n)).all()
    rng = np.random.default_rng(0)
    x = rng.choice((-1.0, 1.0), size=(20_000, n))
    true_variance = single_effect**2 * n + 2 * n * (n - 1)
    totals = single_effect * x.sum(axis=1) + np.sum(x * (x @ a), axis=1)
    assert totals.var() == pytest.approx(true_variance, rel=0.05)  # its standard error is 1 %
    variances = []
    for signs_of_images in x[:2000]:
        signs = rng.choice((-1.0, 1.0), size=(n, 2))
        variances.append(
            training_variance(
                signs_of_images * (single_effect + 2 * (a @ signs_of_images)),
                signs_of_images[:, None] * (a @ (signs * signs_of_images[:, None])),
            )
        )
    # The mean has a standard error of 4 e sqrt(n (n - 1) / 2000), 0.4 %; pairs counted twice would be far off.
    assert np.mean(variances) == pytest.approx(true_variance, rel=0.02 if single_effect else 1e-9)
    if not single_effect:
        assert np.ptp(variances) < 1e-9


def test_where_every_pair_does_the_same_the_variance_errs_on_the_large_side():
    """T = sum over i != j of x_i x_j = S^2 - n: squares of effects are 4 (n - 2) S^2 + 4 n, and swing as S^2 does.

    Less 2 (n - 2) Z^2 + 2 n (Z the sum of z_i x_i, mean over two z) they are 2 n (n - 1) on average, but often below
    0, where 0 is given. S^2 / n is a chi-square c, and the mean of two of Z^2 / n exponential, m: for many images
    E max(4 c - 2 m, 0) = E (4 c - 2 + 2 exp(-2 c)) = 2 + 2 / sqrt(5) in place of 2; if pairs counted twice, 4.
    """
    n, studies = 40, 20_000
    rng = np.random.default_rng(0)
    variances = []
    for _ in range(studies):
        x, signs = rng.choice((-1.0, 1.0), size=n), rng.choice((-1.0, 1.0), size=(n, 2))
        signed = signs * x[:, None]
        by_pairs = x[:, None] * (signed.sum(axis=0) - signed)
        variances.append(training_variance(2 * x * (x.sum() - x), by_pairs))
    assert min(variances) == 0
    # 40 are not many: 0.02 less. Its standard error is 0.02 (one estimate varies by 2.6 times the truth).
    assert np.mean(variances) / (2 * n * (n - 1)) == pytest.approx(1 + 1 / np.sqrt(5), abs=0.1)


def test_larger_standard_errors_than_those_of_the_resamples_widen_the_interval():
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 1, 2000)
    first, second = 5 + shared + rng.normal(0, 0.5, 2000), 6 + shared + rng.normal(0, 0.5, 2000)
    errors = (first.std(ddof=1), second.std(ddof=1))
    from_resamples = paired_difference(5, 6, first, second)
    assert paired_difference(5, 6, first, second, errors) == from_resamples
    wide = paired_difference(5, 6, first, second, (2.0, 3.0))
    assert wide.value == from_resamples.value
    assert wide.se == pytest.approx(np.sqrt(4 + 9 - 2 * np.cov(first, second)[0, 1]), rel=0.01)
    assert wide.low < from_resamples.low < from_resamples.high < wide.high


def test_permutations_keep_clusters_together():
    clusters = np.array([3, 1, 1, 2, 2, 5, 3, 4])
    orders = cluster_permutations(lambda order: order.astype(float), clusters, 0, 200).astype(int)
    for order in orders:
        assert sorted(order) == list(range(8))
        for pair in ((1, 2), (3, 4), (0, 6)):  # what a pair gets comes from one pair
            assert len({clusters[order[index]] for index in pair}) == 1
        assert {clusters[order[5]], clusters[order[7]]} == {4, 5}
    assert len({tuple(order) for order in orders}) > 50  # 3! x 2^3 x 2 there are


def test_permutations_of_single_rows_are_reproducible():
    orders = cluster_permutations(lambda order: order.astype(float), np.arange(6), 3, 5)
    np.testing.assert_array_equal(
        orders, cluster_permutations(lambda order: order.astype(float), np.arange(6), 3, 5)
    )
    assert all(sorted(order) == list(range(6)) for order in orders)
