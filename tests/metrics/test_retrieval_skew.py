"""The metric `retrieval-skew`: by hand, by property, against slow implementations, and from file to table."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import portrayal
from portrayal.errors import PortrayalError, Undefined
from portrayal.metrics.retrieval.skew.formulas import ndkl
from portrayal.metrics.retrieval.skew.permutations import permute_lists
from portrayal.metrics.retrieval.skew.ranked_lists import read_lists
from portrayal.metrics.retrieval.skew.reference import Reference
from portrayal.results import Results
from portrayal.study import Study

LN2 = math.log(2)
Row = tuple[str, float, str | None]  # item, score, group


def study_of(system: str = "s", **lists: list[Row]) -> Study:
    """A study that has nothing but rankings: query = rows."""
    rows = [
        {"query": query, "system": system, "item": item, "score": score, "gender": group}
        for query, items in lists.items()
        for item, score, group in items
    ]
    return Study.from_frames(rankings=pl.DataFrame(rows, schema_overrides={"gender": pl.String}))


def ranked(groups: str, start: int = 0) -> list[Row]:
    """'ffm': items in this order, no two of one score."""
    names = {"f": "female", "m": "male", "n": "nonbinary", "?": None}
    return [
        (f"i{start + position}", float(-position), names[letter]) for position, letter in enumerate(groups)
    ]


def tied(*blocks: str) -> list[Row]:
    """'fm', 'f': the first two have one score, the third a lower one."""
    rows = ranked("".join(blocks))
    heights = [-number for number, block in enumerate(blocks) for _ in block]
    return [(item, float(height), group) for (item, _, group), height in zip(rows, heights, strict=True)]


def measure(study: Study, **options) -> dict[tuple[str, str | None, str | None], object]:
    results = portrayal.metrics.retrieval_skew(study, bootstrap=20, **options)
    return {(m.term, m.group, m.item): m for m in results.measurements}


def value(rows, term: str, group: str | None = None, item: str | None = None) -> float | None:
    return rows[term, group, item].value


# f f m f m m: three of six are women.
HAND = ranked("ffmfmm")


def test_by_hand_against_the_list_itself():
    rows = measure(study_of(q=HAND), k=3)
    # Top 3: f f m, so N_f = 2, N_m = 1: (2 - 1) / 3 = 1/3, and -1/3 for men. The list has 3 and 3: ideal 2/2 - 1 = 0.
    assert value(rows, "bias@k", "female") == pytest.approx(1 / 3)
    assert value(rows, "bias@k", "male") == pytest.approx(-1 / 3)
    assert rows["bias@k", "female", None].ideal == pytest.approx(0)
    # |2/3 - 1/2| + |1/3 - 1/2| = 1/3
    assert value(rows, "bias@k") == pytest.approx(1 / 3)
    # ln((2/3) / (1/2)) = ln(4/3); ln((1/3) / (1/2)) = ln(2/3)
    assert value(rows, "skew@k", "female") == pytest.approx(math.log(4 / 3))
    assert value(rows, "skew@k", "male") == pytest.approx(math.log(2 / 3))
    assert value(rows, "maxskew") == pytest.approx(math.log(4 / 3))
    # Shares of women at positions 1 to 6: 1, 1, 2/3, 3/4, 3/5, 1/2.
    divergences = [
        LN2,
        LN2,
        2 / 3 * math.log(4 / 3) + 1 / 3 * math.log(2 / 3),
        3 / 4 * math.log(3 / 2) + 1 / 4 * math.log(1 / 2),
        3 / 5 * math.log(6 / 5) + 2 / 5 * math.log(4 / 5),
        0,
    ]
    weights = [1 / math.log2(position + 1) for position in range(1, 7)]
    expected = sum(
        divergence * weight for divergence, weight in zip(divergences, weights, strict=True)
    ) / sum(weights)
    assert value(rows, "ndkl") == pytest.approx(expected)
    # One query: its own rows are the same numbers.
    for term, group in (
        ("bias@k", None),
        ("bias@k", "male"),
        ("skew@k", "male"),
        ("maxskew", None),
        ("ndkl", None),
    ):
        assert value(rows, term, group, "q") == pytest.approx(value(rows, term, group))


def test_other_references():
    study = study_of(q=HAND)
    rows = measure(study, k=3, reference="female=0.25, male=0.75")
    # Ideal: 2 * 0.25 - 1 = -0.5; |2/3 - 1/4| + |1/3 - 3/4| = 5/12 + 5/12
    assert rows["bias@k", "female", None].ideal == pytest.approx(-0.5)
    assert value(rows, "bias@k", "female") == pytest.approx(1 / 3)
    assert value(rows, "bias@k") == pytest.approx(10 / 12)
    assert value(rows, "maxskew") == pytest.approx(math.log((2 / 3) / 0.25))
    assert rows["bias@k", None, None].settings == {
        "k": 3,
        "reference": "female=0.25,male=0.75",
        "depth": "whole list",
    }
    assert value(measure(study, k=3, reference={"male": 0.75, "female": 0.25}), "bias@k") == pytest.approx(
        10 / 12
    )
    assert value(measure(study, k=3, reference="equal"), "bias@k") == pytest.approx(1 / 3)
    # The study's images: one woman, three men. |2/3 - 1/4| + |1/3 - 3/4|
    labels = pl.DataFrame({"image_id": ["a", "b", "c", "d"], "gender": ["female", "male", "male", "male"]})
    labelled = Study.from_frames(rankings=study.rankings, attributes=labels)
    assert value(measure(labelled, k=3, reference="study"), "bias@k") == pytest.approx(10 / 12)


def test_means_over_queries():
    rows = measure(study_of(q1=HAND, q2=ranked("mmmfff", 10)), k=3)
    # q1: female 1/3, distance 1/3, max skew ln(4/3); q2: -1, |0 - 1/2| + |1 - 1/2| = 1, ln 2
    assert value(rows, "bias@k", "female") == pytest.approx((1 / 3 - 1) / 2)
    assert value(rows, "bias@k") == pytest.approx((1 / 3 + 1) / 2)
    assert value(rows, "maxskew") == pytest.approx((math.log(4 / 3) + LN2) / 2)
    assert (rows["bias@k", None, None].n, rows["bias@k", None, None].n_unit) == (2, "query")
    # Women are absent from the top of q2: minus infinity. Over both, of mean shares: ln((2/3 + 0) / 2 / (1/2)).
    assert value(rows, "skew@k", "female", "q2") is None
    assert "minus infinity" in rows["skew@k", "female", "q2"].reason
    assert value(rows, "skew@k", "female") == pytest.approx(math.log(2 / 3))
    assert rows["bias@k", None, None].low is None  # two queries are too few for an interval


def test_intervals_are_over_queries_and_wide_for_few_queries():
    lists = {f"q{n}": ranked("ffmfmm" if n % 2 else "mmffmf", 10 * n) for n in range(12)}
    results = portrayal.metrics.retrieval_skew(study_of(**lists), k=3, bootstrap=2000)
    row = next(m for m in results.measurements if (m.term, m.group, m.item) == ("bias@k", "female", None))
    # Biases of 1/3 and -1/3, six of each: the mean is 0, its standard error 1/3 / sqrt(11), and t of 11 is 2.201.
    assert row.value == pytest.approx(0)
    assert row.high == pytest.approx(2.201 / 3 / math.sqrt(11), rel=0.15)
    assert row.low == pytest.approx(-2.201 / 3 / math.sqrt(11), rel=0.15)


def test_three_groups():
    rows = measure(study_of(q=ranked("nfmmfnfmm")), k=4, reference="equal")
    # Top 4: n f m m: shares 1/4, 1/2, 1/4 of female, male, nonbinary.
    assert value(rows, "bias@k", "female") == pytest.approx(-0.5)
    assert value(rows, "bias@k", "male") == pytest.approx(0.0)
    assert rows["bias@k", "male", None].ideal == pytest.approx(2 / 3 - 1)
    # |1/4 - 1/3| + |1/2 - 1/3| + |1/4 - 1/3| = 1/12 + 2/12 + 1/12
    assert value(rows, "bias@k") == pytest.approx(1 / 3)
    assert value(rows, "maxskew") == pytest.approx(math.log(3 / 2))
    assert value(rows, "skew@k", "nonbinary") == pytest.approx(math.log(3 / 4))


def test_tied_items_share_their_positions():
    # One of two positions is left for the block f m m: each has 1/3 of it. Expected: f 1 + 1/3, m 2/3, of 2.
    rows = measure(study_of(q=tied("f", "fmm", "m")), k=2)
    assert value(rows, "bias@k", "female") == pytest.approx(2 * (4 / 3) / 2 - 1)
    # The whole list tied: every top is like the list.
    rows = measure(study_of(q=tied("ffmfm")), k=2)
    assert value(rows, "bias@k") == pytest.approx(0)
    assert value(rows, "maxskew") == pytest.approx(0)
    assert value(rows, "ndkl") == pytest.approx(0, abs=1e-12)
    results = portrayal.metrics.retrieval_skew(study_of(q=tied("f", "fmm", "m")), k=2, bootstrap=20)
    headline = next(m for m in results.measurements if m.group is None and m.item is None)
    details = [json.loads(detail) for detail in results.evidence_of(headline)["detail"]]
    assert [detail["rank"] for detail in details] == [1, 2, 2, 2]


def test_items_of_unknown_group_keep_their_positions():
    # Top 4: f ? ? m; the known ones: f m. Against equal shares nothing is off.
    rows = measure(study_of(q=ranked("f??mmm")), k=4, reference="equal")
    assert value(rows, "bias@k") == pytest.approx(0)
    assert rows["bias@k", None, "q"].n == 2
    # NDKL of ? f m: the first position has no distribution and no weight. (ln 2 / log2(3)) / (1 / log2(3) + 1 / 2)
    rows = measure(study_of(q=ranked("?fm")), reference="equal")
    weight = 1 / math.log2(3)
    assert value(rows, "ndkl") == pytest.approx(LN2 * weight / (weight + 1 / 2))


def test_depth_cuts_ndkl_alone():
    rows = measure(study_of(q=HAND), k=3, depth=2)
    assert value(rows, "ndkl") == pytest.approx(LN2)  # f, f: ln 2 at both positions
    assert value(rows, "bias@k") == pytest.approx(1 / 3)


def test_a_query_that_shows_nobody_is_left_out():
    rows = measure(study_of(q1=HAND, q2=ranked("???fm", 10)), k=3)
    assert value(rows, "bias@k", None, "q2") is None
    assert rows["bias@k", None, "q2"].reason == "it shows nobody whose group is known"
    assert value(rows, "bias@k") == pytest.approx(1 / 3)  # Wang, Liu and Wang would halve it
    assert rows["bias@k", None, None].n == 1
    assert rows["ndkl", None, None].n == 2  # there are known groups further down
    rows = measure(study_of(q1=ranked("???fm")), k=3)
    assert value(rows, "bias@k") is None
    assert rows["bias@k", None, None].reason == "the lists show nobody whose group is known"
    assert value(rows, "skew@k", "female") is None


def test_the_number_of_left_out_queries_is_reported():
    lists = {f"q{n}": ranked("ffmfmm", 10 * n) for n in range(12)}
    rows = measure(study_of(**lists, q99=ranked("???fm", 500)), k=3)
    assert rows["bias@k", None, None].reason == (
        "over 12 of 13 queries; the others show nobody whose group is known"
    )


def test_a_group_without_a_share_in_the_reference():
    rows = measure(study_of(q=HAND), k=3, reference="female=1,male=0")
    assert value(rows, "maxskew") is None
    assert value(rows, "ndkl") is None
    assert "to which the reference gives no share" in rows["ndkl", None, None].reason
    assert value(rows, "skew@k", "male") is None
    assert rows["skew@k", "male", None].reason == "the reference gives the group no share"
    assert value(rows, "bias@k") == pytest.approx(2 / 3)  # |2/3 - 1| + |1/3 - 0|


def test_a_group_without_items_is_absent():
    rows = measure(study_of(q=ranked("mmmm")), k=2, reference="female=0.5,male=0.5")
    assert value(rows, "bias@k", "female") == pytest.approx(-1)
    assert value(rows, "skew@k", "female") is None
    assert value(rows, "maxskew") == pytest.approx(LN2)
    with pytest.raises(Undefined, match="has 1"):
        measure(study_of(q=ranked("mmmm")))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reference": "lits"}, r"Unknown reference 'lits'\. Did you mean 'list'\?"),
        ({"reference": "female=0.5,male=0.4"}, "must add up to 1. Got 0.9 instead"),
        ({"reference": "femle=0.5,male=0.5"}, "'female' has none; it names femle, male"),
        ({"reference": "female=a,male=1"}, "with shares of 0 to 1. Got 'female=a' in it"),
        ({"reference": "female=1.5,male=-0.5"}, "with shares of 0 to 1"),
        ({"reference": "male=0.5,male=0.5"}, "with shares of 0 to 1"),
        ({"reference": "study"}, "have no labels of 'gender' to be a reference"),
        ({"k": 0}, "must hold integers of 1 or more. Got 0 instead"),
        ({"k": (5, 2.5)}, "Got 2.5 instead"),
        ({"k": ()}, "at least one"),
        ({"depth": 0}, "'depth' must be 1 or more"),
        ({"attribute": "gendr"}, r"Unknown attribute 'gendr'\. Did you mean 'gender'\?"),
        ({"systems": ["x"]}, "Unknown system 'x'"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(PortrayalError, match=message):
        measure(study_of(q=HAND), **options)


def test_several_tops_have_rows_of_their_own():
    results = portrayal.metrics.retrieval_skew(study_of(q=HAND), k=(1, 3), bootstrap=20)
    bias_by_k = {
        m.settings["k"]: m.value for m in results.measurements if m.term == "bias@k" and m.group == "female"
    }
    assert bias_by_k == {1: 1.0, 3: pytest.approx(1 / 3)}
    assert len({m.id for m in results.measurements}) == len(results.measurements)


# Chance.


def test_the_ideal_is_what_chance_gives():
    study = study_of(q=ranked("ffmm"))
    # Two of f f m m: both women or both men once in 6 each (|1 - 1/2| * 2 = 1), else 0: 1/3.
    measurements = portrayal.metrics.retrieval_skew(study, k=2, bootstrap=3000).measurements
    ideal = next(m.ideal for m in measurements if m.term == "bias@k" and m.group is None and m.item is None)
    assert ideal == pytest.approx(1 / 3, abs=0.03)
    # Two sampled from equal shares: both are the same half of the time.
    measurements = portrayal.metrics.retrieval_skew(
        study, k=2, bootstrap=3000, reference="equal"
    ).measurements
    ideal = next(m.ideal for m in measurements if m.term == "bias@k" and m.group is None and m.item is None)
    assert ideal == pytest.approx(1 / 2, abs=0.03)


def test_permutations_keep_lists_and_shared_items():
    first, second = ranked("fffmmmmm"), ranked("fffmmmmm")
    study = study_of(q1=first, q2=second, q3=ranked("ffm", 100))
    lists = read_lists(study, "s", "gender", ("female", "male"))
    tops, divergences = permute_lists(lists, Reference("list", None), 2, (8, 2), None, 0, 130)
    assert np.allclose(tops[8][:, :2], [3 / 8, 5 / 8])  # the groups that the list has
    assert np.array_equal(tops[2][:, 0], tops[2][:, 1])  # same items in the same order
    assert len({tuple(row) for row in tops[2][:, 0]}) > 2
    assert np.isfinite(divergences).all()
    assert tops[2][:, 0].mean(axis=0) == pytest.approx([3 / 8, 5 / 8], abs=0.1)


def test_p_is_small_for_biased_lists_only():
    def p(lists, n_resamples):
        measurements = portrayal.metrics.retrieval_skew(study_of(**lists), bootstrap=n_resamples).measurements
        return {(m.term, m.group): m.p for m in measurements if m.item is None}

    biased = {f"q{n}": ranked("f" * 8 + "mf" * 6 + "m" * 8, 100 * n) for n in range(6)}
    assert max(p(biased, 200).values()) < 0.01
    rng = np.random.default_rng(0)
    false_positives: dict[tuple[str, str | None], int] = {}
    for _ in range(60):
        # Lists of one search share items; those of the second half are those of the first in another order.
        fair = {f"q{n}": ranked("".join(rng.permutation(list("fm" * 14))), 100 * n) for n in range(3)}
        fair |= {
            f"again{n}": [(item, float(rng.random()), group) for item, _, group in fair[f"q{n}"]]
            for n in range(3)
        }
        for key, p_value in p(fair, 60).items():
            false_positives[key] = false_positives.get(key, 0) + (p_value < 0.05)
    assert max(false_positives.values()) <= 8  # at a false-positive rate of 5 %, more occur once in 350 runs


# Properties.

GROUPS = st.sampled_from(["female", "male", "nonbinary", None])
LISTS = st.lists(
    st.lists(st.tuples(st.integers(0, 4), GROUPS), min_size=1, max_size=7), min_size=1, max_size=3
)


def study_from(lists) -> Study:
    rows = {
        f"q{number}": [(f"i{position}", float(score), group) for position, (score, group) in enumerate(items)]
        for number, items in enumerate(lists)
    }
    assume(len({group for items in lists for _, group in items if group}) > 1)
    return study_of(**rows)


@given(LISTS, st.integers(1, 8))
def test_the_order_of_rows_does_not_matter(lists, k):
    study = study_from(lists)
    backwards = Study.from_frames(rankings=study.rankings.reverse())
    forward, backward = (measure(variant, k=k, reference="equal") for variant in (study, backwards))
    assert forward == backward


@given(LISTS, st.integers(1, 8))
def test_swapped_names_swap_rows_and_signs(lists, k):
    study = study_from(
        [[(score, group) for score, group in items if group != "nonbinary"] or [(0, None)] for items in lists]
    )
    names = {"female": "male", "male": "female"}
    swapped = Study.from_frames(rankings=study.rankings.with_columns(pl.col("gender").replace(names)))
    before, after = measure(study, k=k), measure(swapped, k=k)
    for (term, group, item), m in before.items():
        n = after[term, names.get(group, group), item]
        assert m.value == pytest.approx(n.value, abs=1e-9)
        if term == "bias@k" and group and m.value is not None:
            assert after[term, group, item].value == pytest.approx(-m.value)


@given(LISTS, st.integers(1, 8))
def test_numbers_stay_in_their_range_and_fit_together(lists, k):
    rows = measure(study_from(lists), k=k, reference="equal")
    groups = {group for term, group, _ in rows if term == "bias@k" and group}
    for (term, group, item), m in rows.items():
        if m.value is None:
            assert m.reason
        elif term == "bias@k":
            assert (0 if group is None else -1) - 1e-9 <= m.value <= (2 if group is None else 1) + 1e-9
        elif term in ("maxskew", "ndkl"):
            assert m.value >= 0
        elif item is not None:  # skew = ln(share / reference), and bias = 2 share - 1
            share = (rows["bias@k", group, item].value + 1) / 2
            assert m.value == pytest.approx(math.log(share * len(groups)))
    for item in {item for _, _, item in rows if item}:
        skews = [rows["skew@k", group, item].value for group in groups]
        if value(rows, "maxskew", None, item) is not None:
            assert value(rows, "maxskew", None, item) == pytest.approx(
                max(skew for skew in skews if skew is not None)
            )


@given(st.lists(st.tuples(st.integers(0, 2), GROUPS), min_size=1, max_size=5), st.integers(1, 6))
def test_ties_against_every_order(items, k):
    """Expected counts of the top, by going through every order in which tied items could stand."""
    assume(len({group for _, group in items if group}) > 1)
    rows = measure(
        study_of(q=[(f"i{n}", float(s), g) for n, (s, g) in enumerate(items)]), k=k, reference="equal"
    )
    orders = [order for order in permutations(items) if all(a[0] >= b[0] for a, b in pairwise(order))]
    counts: dict[str, Fraction] = {}
    for order in orders:
        for _, group in order[:k]:
            if group is not None:
                counts[group] = counts.get(group, Fraction(0)) + Fraction(1, len(orders))
    total = sum(counts.values())
    for term, group, item in rows:
        if term == "bias@k" and group is not None and item == "q":
            expected = float(2 * counts.get(group, Fraction(0)) / total - 1) if total else None
            assert value(rows, term, group, item) == (None if expected is None else pytest.approx(expected))


@given(st.lists(st.sampled_from("fmn"), min_size=2, max_size=12), st.sampled_from(["list", "equal"]))
def test_ndkl_agrees_with_a_slow_implementation(letters, reference):
    assume(len(set(letters)) > 1)
    rows = measure(study_of(q=ranked("".join(letters))), reference=reference)
    groups = sorted(set(letters))
    ref = {
        group: letters.count(group) / len(letters) if reference == "list" else 1 / len(groups)
        for group in groups
    }
    total = norm = 0.0
    for position in range(1, len(letters) + 1):
        divergence = 0.0
        for group in groups:
            share = letters[:position].count(group) / position
            divergence += share * math.log(share / ref[group]) if share else 0.0
        total += divergence / math.log2(position + 1)
        norm += 1 / math.log2(position + 1)
    assert value(rows, "ndkl") == pytest.approx(total / norm, abs=1e-12)


def test_ndkl_is_zero_only_where_every_prefix_is_like_the_reference():
    half = np.array([0.5, 0.5])
    assert ndkl(np.array([[1.0, 1.0], [2.0, 2.0]]), half) == 0
    assert ndkl(np.array([[1.0, 0.0], [1.0, 1.0]]), half) > 0
    assert np.isnan(ndkl(np.zeros((3, 2)), half))


# Studies.


def test_evidence_has_query_rank_score_group_and_caption():
    study = Study.from_frames(
        rankings=study_of(q=HAND).rankings,
        captions=pl.DataFrame({"image_id": ["i0"], "system": ["s"], "caption": ["a woman sings"]}),
    )
    results = portrayal.metrics.retrieval_skew(study, k=3, bootstrap=20)
    rows = {(m.term, m.group, m.item): m for m in results.measurements}
    first, second = results.evidence_of(rows["bias@k", "female", "q"]).rows(named=True)
    assert (first["image_id"], first["caption"], first["system"]) == ("i0", "a woman sings", "s")
    assert json.loads(first["detail"]) == {"query": "q", "rank": 1, "score": 0.0, "group": "female"}
    assert second["caption"] == ""
    assert results.evidence_of(rows["bias@k", None, None])["image_id"].to_list() == ["i0", "i1", "i2"]
    absent = portrayal.metrics.retrieval_skew(study_of(q=ranked("mmmfff")), k=3, bootstrap=20)
    absent_rows = {(m.term, m.group, m.item): m for m in absent.measurements}
    assert absent.evidence_of(absent_rows["bias@k", "female", "q"]).height == 3  # the items shown instead


def test_groups_come_from_the_table_else_from_the_study():
    bare = study_of(q=HAND).rankings.drop("gender")
    labels = pl.DataFrame(
        {
            "image_id": [item for item, _, _ in HAND],
            "gender": [group for _, _, group in HAND],
            "age": ["old", "young"] * 3,
        }
    )
    study = Study.from_frames(rankings=bare, attributes=labels)
    assert study.ranked_attributes == ("gender", "age")
    assert value(measure(study, k=3, attribute="gender"), "bias@k") == pytest.approx(1 / 3)
    # f+old f+young m+old f+young m+old m+young; top 3: one each of three of the four.
    rows = measure(study, k=3, attribute="gender+age")
    assert value(rows, "bias@k", "female+old") == pytest.approx(2 / 3 - 1)
    own = Study.from_frames(
        rankings=bare.with_columns(gender=pl.lit("male")).with_row_index().with_columns(
            gender=pl.when(pl.col("index") < 1).then(pl.lit("female")).otherwise("gender")
        ).drop("index"),
        attributes=labels,
    )  # fmt: skip
    assert value(measure(own, k=1, attribute="gender"), "skew@k", "female") == pytest.approx(math.log(6))


def test_all_attributes_are_measured_and_a_column_called_group_is_an_attribute():
    lists = pl.DataFrame(
        {"query": ["q"] * 3, "item": [1, 2, 3], "score": [3, 2, 1], "group": ["a", "b", "c"]}
    )
    results = portrayal.metrics.retrieval_skew(Study.from_frames(rankings=lists), k=2, bootstrap=20)
    assert {m.attribute for m in results.measurements} == {"group"}
    assert {m.system for m in results.measurements} == {"system"}


def test_systems_that_only_rank_are_measured_and_chosen():
    both = pl.concat([study_of("writer", q=HAND).rankings, study_of("searcher", q=ranked("mmmfff")).rankings])
    study = Study.from_frames(
        rankings=both, captions=pl.DataFrame({"image_id": ["i0"], "system": ["writer"], "caption": ["a"]})
    )
    assert (study.systems, study.rankers) == (("writer",), ("writer", "searcher"))

    def systems(results: Results) -> set[str]:
        return {m.system for m in results.measurements}

    metric = portrayal.metrics.retrieval_skew
    assert systems(metric(study, bootstrap=20)) == {"writer", "searcher"}
    assert systems(metric(study, bootstrap=20, systems=["searcher"])) == {"searcher"}
    assert systems(metric(study, bootstrap=20, sources=["searcher", "human"])) == {"searcher"}
    alone = study.select_systems(["searcher"])
    assert (alone.systems, alone.rankers, alone.captions.height) == ((), ("searcher",), 0)
    audited = portrayal.audit(alone, metrics=["retrieval-skew", "error"], quick=True)
    assert systems(audited) == {"searcher"}
    assert [skip["metric"] for skip in audited.provenance["skipped"]] == ["error"]
    assert audited.provenance["study"]["systems"] == ["searcher"]
    assert systems(portrayal.audit(study, metrics=["retrieval-skew"], quick=True)) == {"writer", "searcher"}


def test_titles_are_no_groups():
    lists = pl.DataFrame(
        {
            "query": ["q"] * 60,
            "item": [str(n) for n in range(60)],
            "score": list(range(60)),
            "title": [f"picture {n}" for n in range(60)],
            "gender": ["f", "m"] * 30,
        }
    )
    assert Study.from_frames(rankings=lists).ranked_attributes == ("gender",)
