"""Values by group and the gaps between groups, worked by hand and against loops over groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.stats import GroupedCounts, bootstrap, divide_columns, resampler


def grouped(successes, groups, min_size=1, n_resamples=50, trials=None):
    n_images = len(successes)
    trials = np.ones(n_images) if trials is None else np.array(trials, dtype=float)
    return GroupedCounts(
        counts=np.column_stack([np.array(successes, dtype=float), trials]),
        measured=trials[None, :] > 0,
        statistic=lambda sums: divide_columns(sums)[:, None],
        resampler=resampler(tuple(f"{index:03}" for index in range(n_images)), 0, n_resamples),
        group_by_cluster=groups,
        min_size=min_size,
    )


def test_values_of_four_images():
    counts = grouped([1, 0, 1, 1], ["a", "a", "b", "b"])
    assert [estimate.value for estimate in counts.estimates[0]] == [0.75, 0.5, 1.0]
    gap = counts.gap(0)
    assert gap.estimate.value == 0.5
    assert (gap.low_group, gap.high_group) == ("a", "b")
    assert [counts.size(0, group) for group in (None, "a", "b")] == [4, 2, 2]


def test_images_without_a_label_count_for_all_images_only():
    counts = grouped([1, 0, 1, 0], ["a", None, "b", None])
    assert [estimate.value for estimate in counts.estimates[0]] == [0.5, 1.0, 1.0]
    assert counts.groups == ("a", "b")


def test_a_group_with_too_few_images_has_no_gap():
    assert grouped([1, 0, 1], ["a", "a", "b"], min_size=2).gap(0) is None


def test_a_group_without_trials_is_undefined():
    counts = grouped([1, 1, 0], ["a", "a", "b"], trials=[1, 1, 0])
    assert [estimate.value for estimate in counts.estimates[0]] == [1.0, 1.0, None]
    assert counts.gap(0) is None


def test_each_group_has_the_estimate_that_it_has_alone():
    """A group's estimate shares the resamples of all images, so it equals a bootstrap in which others count nothing."""
    rng = np.random.default_rng(0)
    successes, groups = rng.integers(0, 2, 60), rng.choice(["a", "b", "c"], 60)
    counts = grouped(successes, list(groups), n_resamples=80)
    for index, group in enumerate(counts.groups):
        alone = counts.counts * (groups == group)[:, None]
        (expected,) = bootstrap(alone, divide_columns, counts.resampler)
        assert counts.estimates[0][index + 1].value == expected.value
        assert np.array_equal(counts.estimates[0][index + 1].replicates, expected.replicates, equal_nan=True)


def test_p_of_a_gap_is_small_where_groups_differ_and_large_where_they_do_not():
    rng = np.random.default_rng(1)
    groups = ["a", "b"] * 100
    different = [float(rng.random() < (0.8 if group == "a" else 0.2)) for group in groups]
    equal = [float(rng.random() < 0.5) for _ in groups]
    assert grouped(different, groups, n_resamples=200).gap(0).p < 0.01
    assert grouped(equal, groups, n_resamples=200).gap(0).p > 0.05


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("abc")), min_size=2, max_size=12)
)
def test_the_gap_is_the_largest_difference_of_two_groups(images):
    successes, failures, groups = map(list, zip(*images, strict=True))
    trials = [success + failure for success, failure in zip(successes, failures, strict=True)]
    counts = grouped(successes, groups, trials=trials, n_resamples=20)
    shares = [
        sum(s for s, g in zip(successes, groups, strict=True) if g == group)
        / sum(t for t, g in zip(trials, groups, strict=True) if g == group)
        for group in set(groups)
        if sum(t for t, g in zip(trials, groups, strict=True) if g == group)
    ]
    gap = counts.gap(0)
    if len(shares) < 2:
        assert gap is None
    else:
        assert gap.estimate.value == pytest.approx(max(shares) - min(shares))
