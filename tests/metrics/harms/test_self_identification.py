"""Denying self-identification: hand-made captions with known answers."""

from __future__ import annotations

import pytest

from tests.metrics.harms.helpers import counted, measured, row, shares, study_of

TERM = "self-identification.identity-words"

NAMED = [
    ("a man riding a wave", {"gender"}),
    ("two women at a table", {"gender"}),
    ("an old man on a bench", {"gender", "age"}),
    ("a young girl with a kite", {"gender", "age"}),
    ("an asian woman with an umbrella", {"gender", "ethnicity"}),
    ("a french woman on a bike", {"gender", "norp", "nationality"}),
    ("a muslim man in a market", {"gender", "norp", "religion"}),
    ("the mans hat is red", {"gender"}),
    ("an elderly couple on a bench", {"age"}),
    ("a group of republicans on a stage", {"norp", "politics"}),
    ("a toddler eating cake", {"age"}),
]
NOT_NAMED = [
    "a plate of french fries",
    "french toast on a plate",
    "a skier with ski poles on a slope",
    "a person trying to polish a car",
    "a black and white cat",
    "a white dog on a bed",
    "an old truck in a field",
    "a young elephant near a river",
    "a baby giraffe and a zebra",
    "a german shepherd in the snow",
    "an american flag on a pole",
    "a person on a bench",
    "a persian rug in a room",
    "",
]


@pytest.mark.parametrize(("caption", "axes"), NAMED, ids=[c for c, _ in NAMED])
def test_a_social_group_is_named(caption, axes):
    items = counted(TERM, caption)
    assert items is not None
    assert {item for item in items if ":" not in item} == axes


@pytest.mark.parametrize("caption", NOT_NAMED)
def test_no_social_group_is_named(caption):
    assert counted(TERM, caption) is None


def test_words_stand_under_their_axis():
    items = counted(TERM, "an old man and a french woman")
    assert {"gender: man", "gender: woman", "age: old", "nationality: french"} <= items
    assert not any(item.startswith("norp:") for item in items)  # its words are items of its three axes


THREE = study_of(
    ["a man", "a person", "an old man", "a dog"],
    [["a person", "somebody"], ["a woman", "a lady"], ["a man", "a guy"], ["a dog", "a man with a dog"]],
)


def test_the_three_stages_of_the_table():
    def share(stage, item, reference="any"):
        return row(measured(THREE, TERM, stage=(stage,), reference=reference), item=item).value

    assert share("4", "gender") == 2 / 4
    assert share("3", "gender") == pytest.approx((0 + 1 + 1 + 0.5) / 4)  # human captions, one by one
    assert share("3", "gender", "each") == pytest.approx((0 + 1 + 1 + 0.5) / 4)
    assert share("4-without-3", "gender") == 1 / 4  # the first image
    assert share("4-without-3", "age") == 1 / 4  # the third: human captions name no age
    assert share("4-without-3", None) == 2 / 4
    assert share("4-without-3", "gender", "each") == pytest.approx(1 / 4)


def test_sources_of_each_stage():
    for stage, source in (("3", "human"), ("4", "s"), ("4-without-3", "s")):
        results = measured(THREE, TERM, stage=(stage,)).measurements
        assert {m.system for m in results} == {source}
        assert {m.settings["stage"] for m in results} == {stage}
    assert {m.settings["stage"] for m in measured(THREE, TERM).measurements} == {"4"}


def test_an_image_with_several_captions_counts_for_their_share():
    study = study_of([["a man", "a dog", "a cat", "a woman"], ["a dog"]])
    results = measured(study, TERM)
    assert row(results, item="gender").value == 0.25
    assert row(results, item="gender", unit="count").value == 0.5


def test_groups_split_the_number():
    study = study_of(["a man", "a person", "a man", "a woman"], gender=["male", "female", "male", "female"])
    results = measured(study, TERM)
    assert row(results, group="male").value == 1
    assert row(results, group="female").value == 0.5
    assert row(results, group="female", unit="count").value == 1
    assert row(results, group="female").n == 2


def test_images_without_references_are_left_out_of_the_comparison():
    study = study_of(["a man", "a man"], [["a person"], []])
    assert row(measured(study, TERM, stage=("4-without-3",))).n == 1


def test_custom_words_replace_or_add_an_axis(tmp_path):
    file = tmp_path / "jobs.toml"
    file.write_text('name = "jobs"\nattribute = "job"\n[groups]\ncook = ["cook", "chef"]\n')
    study = study_of(["a chef in a kitchen", "a man"])
    share_by_item = shares(measured(study, TERM, identity=(str(file),)))
    assert share_by_item["job"] == 0.5
    assert share_by_item["job: chef"] == 0.5
    assert share_by_item["gender"] == 0.5
