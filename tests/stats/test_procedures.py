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
def test_one_trial_per_cluster_is_plain_wilson(answers):
    successes = np.array(answers, dtype=float)
    found = clustered_wilson(successes, np.ones(len(answers)))
    assert found[0] <= successes.mean() <= found[1]
    assert found == pytest.approx(wilson(successes.sum(), len(answers)), abs=1e-9)


@given(st.lists(st.booleans(), min_size=2, max_size=40))
def test_copies_within_a_cluster_add_nothing(answers):
    successes = np.array(answers, dtype=float)
    once = clustered_wilson(successes, np.ones(len(answers)))
    assert clustered_wilson(5 * successes, np.full(len(answers), 5.0)) == pytest.approx(once, abs=1e-9)


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
    found = []
    for study in range(300):
        data = rng.normal(size=30)

        def statistic(order, data=data):
            return np.array([abs(data[order][:15].mean() - data[order][15:].mean())])

        found.append(
            permutation_p(
                statistic(np.arange(30)), permutations(statistic, 30, seed=study, n_permutations=99)
            )[0]
        )
    assert stats.kstest(found, "uniform").pvalue > 0.01


@pytest.mark.parametrize("clustered", [False, True])
def test_permutations_go_on_where_p_is_close_to_the_threshold(clustered):
    """The largest of 20 numbers stands last: p is 1/20 exactly, so that no number of permutations is ever enough."""
    data, asked = np.arange(20.0), []

    def statistic(order):
        asked.append(order)
        return np.array([data[order][-1]])

    entries = np.arange(20) if clustered else 20
    p = permutation_test(statistic, entries, seed=3, n_permutations=100)[0]
    assert len(asked) == 1 + 1000
    null = (cluster_permutations if clustered else permutations)(statistic, entries, 3, 1000)
    assert p == permutation_p(np.array([19.0]), null)[0]  # as if all had been asked for at once
    asked.clear()
    data = data[::-1]  # the smallest: every permutation reaches it
    assert permutation_test(statistic, entries, seed=3, n_permutations=100)[0] == 1.0
    assert len(asked) == 1 + 100


def test_undefined_numbers_have_no_p():
    p = permutation_p(np.array([np.nan, 1.0]), np.array([[0.0, np.nan], [1.0, 0.0], [2.0, 0.5]]))
    assert np.isnan(p[0])
    assert p[1] == (1 + 1) / 4  # an undefined draw counts against us


def test_equal_clusters_do_not_make_a_rate_certain():
    low, high = clustered_wilson(np.full(7, 0.4), np.ones(7))
    assert high - low > 0.4
    assert (low, high) == pytest.approx(wilson(2.8, 7))
    assert clustered_wilson(np.full(7, 0.4), np.ones(7), max_effective=35) == pytest.approx(wilson(14, 35))


def test_means_of_several_captions_are_surer_than_single_ones():
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
    n_resamples = resampler.totals(np.c_[first, second]) / n
    paired = paired_difference(first.mean(), second.mean(), n_resamples[:, 0], n_resamples[:, 1])
    apart = unpaired_difference(
        first.mean(), second.mean(), n_resamples[:, 0].std(ddof=1), n_resamples[:, 1].std(ddof=1)
    )
    assert paired.value == pytest.approx(apart.value)
    assert paired.se < apart.se / 5
    assert paired.p < 0.01 < apart.p
    assert paired.se == pytest.approx((second - first).std(ddof=1) / np.sqrt(n), rel=0.1)
    assert paired.low < 0.1 < paired.high


def test_a_paired_interval_covers_where_two_systems_share_most_of_their_images():
    """Each system misses some images of its own; what they share still cancels, and the interval is honest."""
    rng = np.random.default_rng(4)
    n, hits, p_values = 150, 0, []
    names = np.array([f"{i:04}" for i in range(n)])
    first, second = names[5:], names[:-5]
    n_resamples = [Resampler(tuple(part.tolist()), n_resamples=300) for part in (first, second)]
    for _ in range(400):
        image = rng.normal(size=n)
        a, b = (image + rng.normal(0, 0.5, n))[5:], (image + rng.normal(0, 0.5, n))[:-5]
        found = paired_difference(
            a.mean(),
            b.mean(),
            n_resamples[0].totals(a[:, None])[:, 0] / len(a),
            n_resamples[1].totals(b[:, None])[:, 0] / len(b),
        )
        hits += found.low <= 0 <= found.high
        p_values.append(found.p)
    assert 0.91 <= hits / 400 <= 0.98
    assert np.mean(np.array(p_values) < 0.05) <= 0.09
    assert found.se < 0.1  # unpaired it would be about 0.13


def test_equal_measurements_do_not_differ():
    n_resamples = np.random.default_rng(0).normal(size=100)
    same = paired_difference(1.0, 1.0, n_resamples, n_resamples)
    assert (same.value, same.low, same.high, same.p, same.mde) == (0.0, None, None, None, None)
    assert unpaired_difference(1.0, 2.0, None, 0.1).low is None


@pytest.mark.parametrize("second", [0.0, 1.0])
def test_resamples_that_are_all_alike_give_no_interval(second):
    """How far other images would differ is not known; that every resample differs is, as far as they are many."""
    paired = paired_difference(0.0, second, np.zeros(1000), np.full(1000, second))
    assert (paired.value, paired.low, paired.high, paired.mde) == (second, None, None, None)
    assert paired.p == (pytest.approx(2 / 1001) if second else None)
    apart = unpaired_difference(0.0, second, 0.0, 0.0)
    assert (apart.value, apart.low, apart.high, apart.p, apart.mde) == (second, *[None] * 4)


def test_draws_over_seeds_vary_both_and_count_neither_twice():
    rng = np.random.default_rng(0)
    points = np.array([-0.3, 0.0, 0.3, 0.1, -0.1])
    shared, own = rng.normal(0, 0.2, 4000), rng.normal(0, 0.4, (5, 4000))
    n_resamples = points[:, None] + shared + own
    both = replicates_over_seeds(n_resamples, points, 0)
    data = n_resamples.mean(axis=0)
    assert both.mean() == pytest.approx(0, abs=0.01)
    assert both.std() == pytest.approx(np.hypot(data.std(), points.std() / np.sqrt(5)), rel=0.05)
    np.testing.assert_allclose(replicates_over_seeds(n_resamples[:1], points[:1], 0), n_resamples[0])


def test_variance_of_rows_that_are_alike_for_several_reasons():
    effect = np.array([1.0, 2.0, -4.0, 1.0])
    one, other = np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])
    assert clustered_variance(effect, one) == 9 + 16 + 1
    assert clustered_variance(effect, other) == 1 + 4 + 1
    # Every pair that shares a cluster of either kind, once: 1*1 + 2*2 + 4*4 + 1*1 + 2*(1*2) + 2*(2*-4)
    assert multiway_variance(np.array([1.0, 2.0, 4.0, 1.0]), one, other) == 1 + 4 + 16 + 1 + 4 + 16
    assert multiway_variance(effect, one, other) == 26  # by pairs it would be 10: never below one kind alone
    assert multiway_variance(effect, one) == 26
    rng = np.random.default_rng(0)
    many, ways = rng.random(40), [rng.integers(0, 6, 40) for _ in range(3)]
    alike = np.any([way[:, None] == way[None, :] for way in ways], axis=0)
    assert multiway_variance(many, *ways) == pytest.approx(many @ alike @ many)


@pytest.mark.parametrize("alone", [0.0, 5.0])
def test_what_a_pair_does_together_counts_once(alone):
    """T = alone * sum of x_i + sum over i != j of a_ij x_i x_j, x random signs: variance alone^2 n + 2 n (n - 1).

    An image adds alone x_i + 2 x_i (a x)_i, as the one that is learnt and as the one that is tested; by pairs, with
    signs z, x_i (a z x)_i. Here a a = (n - 1) I (Paley 1933), so that squares of (a x)_i add up to n (n - 1) whatever
    the signs: 4 n (n - 1) of whole effects, of which 2 n (n - 1) go. What is left to chance is 4 alone sum of (a x)_i.
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
    true = alone**2 * n + 2 * n * (n - 1)
    totals = alone * x.sum(axis=1) + np.sum(x * (x @ a), axis=1)
    assert totals.var() == pytest.approx(true, rel=0.05)  # its standard error is 1 %
    found = []
    for one in x[:2000]:
        signs = rng.choice((-1.0, 1.0), size=(n, 2))
        found.append(
            training_variance(one * (alone + 2 * (a @ one)), one[:, None] * (a @ (signs * one[:, None])))
        )
    # The mean has a standard error of 4 alone sqrt(n (n - 1) / 2000), 0.4 %; pairs counted twice would be far off.
    assert np.mean(found) == pytest.approx(true, rel=0.02 if alone else 1e-9)
    if not alone:
        assert np.ptp(found) < 1e-9


def test_where_every_pair_does_the_same_the_variance_errs_on_the_large_side():
    """T = sum over i != j of x_i x_j = S^2 - n: squares of effects are 4 (n - 2) S^2 + 4 n, and swing as S^2 does.

    Less 2 (n - 2) Z^2 + 2 n (Z the sum of z_i x_i, mean over two z) they are 2 n (n - 1) on average, but often below
    0, where 0 is given. S^2 / n is a chi-square c, and the mean of two of Z^2 / n exponential, m: for many images
    E max(4 c - 2 m, 0) = E (4 c - 2 + 2 exp(-2 c)) = 2 + 2 / sqrt(5) in place of 2; if pairs counted twice, 4.
    """
    n, studies = 40, 20_000
    rng = np.random.default_rng(0)
    found = []
    for _ in range(studies):
        x, signs = rng.choice((-1.0, 1.0), size=n), rng.choice((-1.0, 1.0), size=(n, 2))
        signed = signs * x[:, None]
        by_pairs = x[:, None] * (signed.sum(axis=0) - signed)
        found.append(training_variance(2 * x * (x.sum() - x), by_pairs))
    assert min(found) == 0
    # 40 are not many: 0.02 less. Its standard error is 0.02 (one estimate varies by 2.6 times the truth).
    assert np.mean(found) / (2 * n * (n - 1)) == pytest.approx(1 + 1 / np.sqrt(5), abs=0.1)


def test_a_number_that_is_less_sure_than_its_draws_widens_the_difference():
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 1, 2000)
    first, second = 5 + shared + rng.normal(0, 0.5, 2000), 6 + shared + rng.normal(0, 0.5, 2000)
    errors = (first.std(ddof=1), second.std(ddof=1))
    plain = paired_difference(5, 6, first, second)
    assert paired_difference(5, 6, first, second, errors) == plain
    wide = paired_difference(5, 6, first, second, (2.0, 3.0))
    assert wide.value == plain.value
    assert wide.se == pytest.approx(np.sqrt(4 + 9 - 2 * np.cov(first, second)[0, 1]), rel=0.01)
    assert wide.low < plain.low < plain.high < wide.high


def test_dealings_keep_clusters_together():
    clusters = np.array([3, 1, 1, 2, 2, 5, 3, 4])
    seen = cluster_permutations(lambda order: order.astype(float), clusters, 0, 200).astype(int)
    for order in seen:
        assert sorted(order) == list(range(8))
        for pair in ((1, 2), (3, 4), (0, 6)):  # what a pair gets comes from one pair
            assert len({clusters[order[place]] for place in pair}) == 1
        assert {clusters[order[5]], clusters[order[7]]} == {4, 5}
    assert len({tuple(order) for order in seen}) > 50  # 3! x 2^3 x 2 there are


def test_dealings_of_single_entries_are_permutations():
    one = cluster_permutations(lambda order: order.astype(float), np.arange(6), 3, 5)
    np.testing.assert_array_equal(
        one, cluster_permutations(lambda order: order.astype(float), np.arange(6), 3, 5)
    )
    assert all(sorted(order) == list(range(6)) for order in one)
