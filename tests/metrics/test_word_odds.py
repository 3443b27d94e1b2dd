"""Log-odds of words: by hand, by property, and on the lab's planted words."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.errors import PortrayalError, Undefined
from portrayal.lab import Captioner, World, make_study
from portrayal.metrics.word_odds import log_odds, word_odds
from portrayal.study import Study


def z_by_hand(y1, n1, y2, n2, share, prior):
    a = prior * share
    delta = math.log((y1 + a) / (n1 + prior - y1 - a)) - math.log((y2 + a) / (n2 + prior - y2 - a))
    return delta / math.sqrt(1 / (y1 + a) + 1 / (y2 + a))


def test_by_hand():
    counts, totals = np.array([[8.0, 2.0], [40.0, 60.0]]), np.array([100.0, 150.0])
    share = counts.sum(axis=1) / totals.sum()
    z = log_odds(counts, totals, share, prior=50.0)
    assert z[0, 0] == pytest.approx(z_by_hand(8, 100, 2, 150, 10 / 250, 50))
    assert z[1, 1] == pytest.approx(z_by_hand(60, 150, 40, 100, 100 / 250, 50))
    assert z[:, 0] == pytest.approx(-z[:, 1])


def test_each_of_three_groups_is_compared_with_the_others():
    counts, totals = np.array([[8.0, 2.0, 1.0]]), np.array([100.0, 100.0, 100.0])
    z = log_odds(counts, totals, np.array([11 / 300]), prior=50.0)
    assert z[0, 0] == pytest.approx(z_by_hand(8, 100, 3, 200, 11 / 300, 50))


@given(st.integers(1, 50), st.integers(100, 500))
def test_equal_use_is_zero(count, total):
    z = log_odds(
        np.array([[count, count]]) * 1.0, np.array([total, total]) * 1.0, np.array([count / total]), 100.0
    )
    assert z == pytest.approx(0)


@given(st.integers(0, 30), st.integers(0, 30))
def test_more_use_is_more_z(first, second):
    share = np.array([(first + second + 1) / 400])
    z = log_odds(np.array([[first, second]]) * 1.0, np.array([200.0, 200.0]), share, 100.0)[0, 0]
    assert np.sign(round(z, 9)) == np.sign(first - second)


def study_by_hand() -> Study:
    rows = [(f"m{n}", "male", "a man with a red kite") for n in range(40)]
    rows += [
        (f"w{n}", "female", "a woman with a blue kite" if n < 39 else "a woman with a rare kite")
        for n in range(40)
    ]
    return Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": [r[0] for r in rows], "system": "s", "caption": [r[2] for r in rows]}
        ),
        attributes=pl.DataFrame({"image_id": [r[0] for r in rows], "gender": [r[1] for r in rows]}),
    )


def test_words_are_counted_masked_and_limited():
    rows = {
        (m.item, m.group): m
        for m in word_odds(study_by_hand(), attribute="gender", bootstrap=200).measurements
    }
    words = {item for item, _ in rows if item}
    assert words == {"a", "with", "red", "blue", "kite"}  # man and woman are hidden, rare is too rare
    assert rows["red", "male"].value > 3 > rows["kite", "male"].value
    assert rows["red", "male"].value == pytest.approx(-rows["red", "female"].value)
    assert rows["red", "male"].n == 40
    assert rows["red", "male"].q < 0.05 < rows["kite", "male"].q
    assert rows[None, None].value == pytest.approx(max(abs(m.value) for m in rows.values()))
    assert rows[None, None].p < 0.05


def test_group_words_can_be_kept():
    rows = word_odds(study_by_hand(), attribute="gender", mask=False, bootstrap=20).measurements
    assert {"man", "woman"} <= {m.item for m in rows}
    assert rows[0].settings["mask"] is None


def test_evidence_is_the_captions_of_that_group_with_the_word():
    results = word_odds(study_by_hand(), attribute="gender", bootstrap=20)
    red = next(m for m in results.measurements if m.item == "red" and m.group == "male")
    assert set(results.evidence_of(red)["caption"]) == {"a man with a red kite"}
    assert results.evidence_of(red).height == 40


def test_a_small_group_is_shown_but_not_tested():
    attributes = study_by_hand().attributes.with_columns(
        pl.when(pl.col("image_id").is_in(["m0", "m1", "m2"]))
        .then(pl.lit("third"))
        .otherwise("gender")
        .alias("gender")
    )
    rows = word_odds(
        Study.from_frames(captions=study_by_hand().captions, attributes=attributes),
        attribute="gender",
        bootstrap=20,
    ).measurements
    small = [m for m in rows if m.group == "third"]
    assert small
    assert all(m.p is None and m.q is None and m.reason == "too few: 3 images, fewer than 30" for m in small)
    assert all(m.p is not None for m in rows if m.group == "female")


def test_the_prior_must_be_above_zero():
    with pytest.raises(PortrayalError, match=r"The option 'prior' must be 0\.001 or more"):
        word_odds(study_by_hand(), attribute="gender", prior=0.0)


def test_a_single_group_cannot_be_compared():
    women = Study.from_frames(
        captions=study_by_hand().captions,
        attributes=study_by_hand().attributes.filter(pl.col("gender") == "female"),
    )
    with pytest.raises(Undefined, match="can only be compared between groups"):
        word_odds(women, attribute="gender")


def test_planted_words_are_significant_and_p_is_calibrated_without_them():
    biased = make_study(scenes=2000, seed=1, world=World(data_bias=1.0), captioners=[Captioner("c")])
    rows = {
        (m.item, m.group): m
        for m in word_odds(biased, attribute="gender", bootstrap=200).measurements
        if m.system == "c"
    }
    assert rows["car", "male"].q < 0.05
    assert rows["cooking", "female"].q < 0.05
    p_values = []
    for seed in range(40):
        unbiased = make_study(scenes=400, seed=seed, world=World(data_bias=0.0), captioners=[Captioner("c")])
        results = word_odds(unbiased, attribute="gender", bootstrap=99)
        p_values += [m.p for m in results.measurements if m.item is None and m.system == "c"]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.15
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.12)
