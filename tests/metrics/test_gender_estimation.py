"""The group that models would put into a caption: cases worked by hand."""

from __future__ import annotations

import json

import polars as pl
import pytest

import portrayal
from portrayal.errors import PortrayalError
from portrayal.lexicon import Lexicon
from portrayal.study import Study
from tests.metrics.fakes import FakeEncoder, FakeLanguageModel, use_fake_models

PROBABILITIES = {
    "a man skis": 0.4, "a woman skis": 0.1,  # names a man: predicted male
    "a man cooks": 0.2, "a woman cooks": 0.3,  # names a man: predicted female
    "a woman sits": 0.5, "a man sits": 0.5,  # a tie
    "a woman and her dog": 0.1, "a man and his dog": 0.3,  # every word changes; names a woman, predicted male
}  # fmt: skip


@pytest.fixture
def study(monkeypatch) -> Study:
    use_fake_models(monkeypatch, FakeLanguageModel(PROBABILITIES), FakeEncoder({}))
    captions = [
        "a man skis",
        "a man cooks",
        "a woman sits",
        "a woman and her dog",
        "a man and a woman",
        "a dog",
        "a pregnant woman",
        "a man skis",
    ]
    return Study.from_frames(
        captions=pl.DataFrame({"image_id": range(8), "system": ["s"] * 8, "caption": captions}),
        attributes=pl.DataFrame({"image_id": [0, 1, 2, 3], "gender": ["female", "male", "female", "female"]}),
        objects=pl.DataFrame(
            {"image_id": range(7), "label": ["x"] * 7, "source": ["m"] * 7, "confidence": [0.5] * 7}
        ),
    )


def rows(results, term, item=None):
    return {m.group: m for m in results.measurements if m.term == term and m.item == item}


def test_a_case_worked_by_hand(study):
    results = portrayal.metrics.gender_estimation(study, attribute="gender", bootstrap=50)
    predicted = rows(results, "predicted")
    # Six captions name one group; of these "pregnant" has no counterpart and the last image no object.
    assert {group: m.value for group, m in predicted.items()} == {None: 3, "male": 2, "female": 1}
    assert predicted["male"].n == 6
    assert rows(results, "undecided")[None].value == 1
    assert rows(results, "unscored")[None].value == 2
    assert rows(results, "to-group")["male"].value == pytest.approx(2 / 3)
    assert rows(results, "to-group")["male"].ideal == pytest.approx(
        2 / 3
    )  # two of the three decided captions name a man
    # shares of man: 0.8, 0.4, 0.5, 0.75
    assert rows(results, "ratio")["male"].value == pytest.approx((0.8 + 0.4 + 0.5 + 0.75) / 4)
    # decided: a man predicted male, a man predicted female, a woman predicted male
    assert rows(results, "as-said")[None].value == pytest.approx(1 / 3)
    assert rows(results, "ratio")[None].value == rows(results, "ratio")["male"].value
    assert rows(results, "score")["female"].value == pytest.approx((0.1 + 0.3 + 0.5 + 0.1) / 4)


def test_predictions_by_caption_and_by_label(study):
    results = portrayal.metrics.gender_estimation(study, attribute="gender", bootstrap=50)

    def predicted(item):
        return {group: m.value for group, m in rows(results, "predicted", item).items()}

    assert predicted("caption: male") == {"male": 1, "female": 1}
    assert predicted("caption: female") == {"male": 1, "female": 0}
    assert predicted("label: female") == {"male": 2, "female": 0}
    assert predicted("label: male") == {"male": 0, "female": 1}
    assert rows(results, "undecided", "caption: female")[None].value == 1


def test_near_ties_are_undecided(study):
    results = portrayal.metrics.gender_estimation(study, attribute="gender", bootstrap=50, margin=0.15)
    assert rows(results, "undecided")[None].value == 2  # 0.2 and 0.3 are too near
    with pytest.raises(PortrayalError, match="'margin' must be 0 or more"):
        portrayal.metrics.gender_estimation(study, attribute="gender", margin=-1.0)


def test_evidence_shows_the_parts(study):
    results = portrayal.metrics.gender_estimation(study, attribute="gender", bootstrap=50)
    evidence = results.evidence_of(rows(results, "predicted")["female"])
    assert evidence["caption"].to_list() == ["a man cooks"]
    detail = json.loads(evidence["detail"][0])
    assert (detail["predicted"], detail["parts"]) == ("female", {"male": 0.4, "female": 0.6})


def test_groups_are_data(monkeypatch):
    use_fake_models(
        monkeypatch, FakeLanguageModel({"a cat": 0.1, "a dog": 0.3, "a hen": 0.6}), FakeEncoder({})
    )
    lexicon = Lexicon("pets", "pet", {"a": ("cat",), "b": ("dog",), "c": ("hen",)}, neutral=("pet",))
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": [1], "system": ["s"], "caption": ["a cat"]}),
        objects=pl.DataFrame({"image_id": [1], "label": ["x"], "source": ["m"], "confidence": [0.5]}),
    )
    results = portrayal.metrics.gender_estimation(study, attribute="pet", lexicon=lexicon, bootstrap=50)
    assert {group: m.value for group, m in rows(results, "predicted").items()} == {
        None: 1,
        "a": 0,
        "b": 0,
        "c": 1,
    }
    assert rows(results, "ratio")["c"].value == pytest.approx(0.6)


def test_predictions_that_follow_the_captions_are_not_chance(monkeypatch):
    captions = ["a man skis"] * 30 + ["a woman cooks"] * 30
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": range(60), "system": ["s"] * 60, "caption": captions}),
        objects=pl.DataFrame(
            {"image_id": range(60), "label": ["x"] * 60, "source": ["m"] * 60, "confidence": [0.5] * 60}
        ),
    )
    use_fake_models(
        monkeypatch, FakeLanguageModel({"a man skis": 0.6, "a woman cooks": 0.6}), FakeEncoder({})
    )
    row = rows(portrayal.metrics.gender_estimation(study, attribute="gender", bootstrap=99), "as-said")[None]
    assert (row.value, row.p) == (1.0, 0.01)
    use_fake_models(
        monkeypatch, FakeLanguageModel({"a man skis": 0.6, "a woman cooks": 0.4}), FakeEncoder({})
    )  # always men
    row = rows(portrayal.metrics.gender_estimation(study, attribute="gender", bootstrap=99), "as-said")[None]
    assert (row.value, row.p) == (0.5, 1.0)


def test_captions_whose_scores_are_all_0_have_no_parts(monkeypatch):
    use_fake_models(
        monkeypatch,
        FakeLanguageModel({"a man": 0.3, "a woman": 0.1, "a man sits": 1e-320, "a woman sits": 1e-320}),
        FakeEncoder({}),
    )
    study = Study.from_frames(
        captions=pl.DataFrame({"image_id": [1, 2], "system": ["s"] * 2, "caption": ["a man", "a man sits"]}),
        objects=pl.DataFrame(
            {"image_id": [1, 2], "label": ["x"] * 2, "source": ["m"] * 2, "confidence": [0.5] * 2}
        ),
    )
    results = portrayal.metrics.gender_estimation(
        study, attribute="gender", bootstrap=50, evidence="positive"
    )
    parts = rows(results, "ratio")
    assert parts["male"].value + parts["female"].value == pytest.approx(1)
