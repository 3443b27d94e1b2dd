"""Erasure: hand-made captions with known answers."""

from __future__ import annotations

import json

import pytest

from portrayal.stats import wilson
from tests.metrics.harms.helpers import counted, measured, row, shares, study_of

MISNAMED = "erasure.misnaming"
GROUP = "erasure.group-not-mentioned"
ENTITY = "erasure.entity-not-named"
VAGUE = "erasure.too-vague"
IGNORED = "erasure.ignoring"


def misnaming_results(n_tricks: int, n_images: int, **options):
    """Images of a skateboard whose captions leave it unnamed; some captions name a trick."""
    captions = ["a boy doing a trick"] * n_tricks + ["a boy"] * (n_images - n_tricks)
    return measured(study_of(captions, labels=[["skateboard", "person"]] * n_images), MISNAMED, **options)


@pytest.mark.parametrize(
    ("tricks", "images", "counts"),
    [(20, 20, 1), (17, 20, 1), (14, 20, 0), (10, 20, 0), (30, 40, 1), (28, 40, 1), (24, 40, 0), (71, 100, 1)],
)
def test_a_consistent_misnaming_has_an_interval_above_a_half(tricks, images, counts):
    results = misnaming_results(tricks, images)
    assert row(results, unit="count").value == counts
    low, high = wilson(tricks, images)
    misnaming = row(results, item="skateboard -> trick")
    assert (misnaming.value, misnaming.low, misnaming.high) == pytest.approx((tricks / images, low, high))
    assert (low > 0.5) == bool(counts)


def test_four_of_four_are_too_few():
    results = misnaming_results(4, 4)
    assert row(results).value is None
    assert "20 captions" in row(results).reason


def test_a_named_object_is_no_case():
    study = study_of(
        ["a skateboard and a trick"] * 20 + ["a boy doing a trick"] * 20,
        labels=[["skateboard", "person"]] * 40,
    )
    assert row(measured(study, MISNAMED), item="skateboard -> trick").n == 20


def test_words_for_what_is_there_are_no_other_name():
    study = study_of(["a boy at a table"] * 20, labels=[["skateboard", "person", "dining table"]] * 20)
    results = measured(study, MISNAMED)
    assert row(results, unit="count").value == 0
    assert not [m for m in results.measurements if m.item]


def test_human_captions_misname_too():
    study = study_of(
        ["a boy"] * 20, [["a trick", "a nice trick"]] * 20, labels=[["skateboard", "person"]] * 20
    )
    results = measured(study, MISNAMED, stage=("3",))
    assert {m.system for m in results.measurements} == {"human"}
    assert row(results, item="person -> trick").value == 1
    assert row(results, item="skateboard -> trick").value == 1
    assert (
        row(measured(study, MISNAMED, stage=("3",), reference="each"), item="skateboard -> trick").value == 1
    )


def test_without_labels_nothing_is_misnamed():
    measurement = row(measured(study_of(["a man"]), MISNAMED))
    assert measurement.value is None
    assert "objects" in measurement.reason


@pytest.mark.parametrize(
    ("caption", "human", "axes"),
    [
        ("a person on a bench", ["a man on a bench"], {"gender"}),
        ("a person", ["an old woman"], {"gender", "age"}),
        ("a man", ["an old man"], {"age"}),
        ("a woman", ["an asian woman"], {"ethnicity"}),
        ("a man", ["a french man"], {"norp", "nationality"}),
        ("a woman", ["a muslim woman"], {"norp", "religion"}),
        ("a dog", ["a man and a dog"], {"gender"}),
        ("a man", ["a woman"], set()),
        ("a man", ["a person"], set()),
        ("an old man", ["a man"], set()),
        ("a plate of food", ["a plate of french fries"], set()),
        ("a skier", ["a skier with ski poles"], set()),
        ("a person", ["a person", "a man"], {"gender"}),
    ],
)
def test_a_group_of_human_captions_is_left_out(caption, human, axes):
    items = counted(GROUP, caption, human)
    assert {item for item in items or () if ":" not in item} == axes


def test_each_reference_in_turn():
    study = study_of(["a person"], [["a man", "a person", "a woman", "somebody"]])
    assert row(measured(study, GROUP)).value == 1
    assert row(measured(study, GROUP, reference="each")).value == 0.5
    assert row(measured(study, GROUP, reference="each"), item="gender: man").value == 0.25


def test_it_measures_systems_and_needs_references():
    study = study_of(["a person"], [["a man"]])
    stage_3 = row(measured(study, GROUP, stage=("3",)))
    assert stage_3.value is None
    assert "not human captions" in stage_3.reason
    without_references = row(measured(study_of(["a person"]), GROUP))
    assert without_references.value is None
    assert "references" in without_references.reason


@pytest.mark.parametrize(
    ("caption", "human", "names"),
    [
        ("a city street", ["a street in London"], {"london"}),
        ("a bridge", ["the Golden Gate Bridge in San Francisco"], None),
        ("a clock tower", ["a view of Big Ben"], {"big ben"}),
        ("a man giving a speech", ["Barack Obama giving a speech"], None),
        ("a street in london", ["a street in London"], set()),
        ("a bird on a table", ["a turkey on a table"], set()),
        ("a plate", ["a plate from china cabinet"], set()),
        ("a bus", ["a bus in new york"], {"new york"}),
        ("a dog", ["a dog"], set()),
        ("a tower", ["The Eiffel Tower in Paris"], None),
        ("a man", ["A man"], set()),
    ],
)
def test_a_name_of_human_captions_is_left_out(caption, human, names):
    items = counted(ENTITY, caption, human)
    missing = {item.removeprefix("name: ") for item in items or ()}
    assert bool(missing) if names is None else missing == names


@pytest.mark.parametrize(
    ("caption", "human", "pairs"),
    [
        ("a person on a bench", ["a man on a bench"], {"man -> person"}),
        ("a mammal in a field", ["a pony in a field"], {"pony -> mammal"}),
        ("a player with a bat", ["a batter with a bat"], {"batter -> player"}),
        ("an animal near a tree", ["a bear near a tree"], {"bear -> animal"}),
        ("a vehicle on a road", ["a truck on a road"], {"truck -> vehicle"}),
        ("people walking in a street", ["people marching in a street"], {"march -> walk"}),
        ("a man on a bench", ["a man on a bench"], set()),
        ("a man and a person", ["a man"], set()),
        ("a person", ["a man", "a person"], set()),
        ("a terrier on a bed", ["a dog on a bed"], set()),
        ("a man", ["a woman"], set()),
        ("a boy is standing", ["a boy is standing"], set()),
    ],
)
def test_a_more_general_word_is_used(caption, human, pairs):
    assert (counted(VAGUE, caption, human) or set()) == pairs


def test_captions_can_be_compared_with_labels():
    results = measured(study_of(["an animal"], [["an animal"]], labels=[["dog"]]), VAGUE, truth="1")
    assert shares(results)["dog -> animal"] == 1
    human_results = measured(study_of(["a dog"], [["an animal"]], labels=[["dog"]]), VAGUE, stage=("3",))
    assert shares(human_results)["dog -> animal"] == 1
    assert {m.system for m in human_results.measurements} == {"human"}


def ignored(caption: str, human: str) -> set[str]:
    """Ignored words of an image among 300 others with ordinary captions, so that its words are rare."""
    n_others = 300
    study = study_of([caption] + ["a thing"] * n_others, [[human]] + [["a thing"]] * n_others)
    results = measured(study, IGNORED)
    evidence = results.evidence_of(row(results))
    return set(json.loads(evidence["detail"][0])["ignored"]) if evidence.height else set()


@pytest.mark.parametrize(
    ("caption", "human", "words"),
    [
        ("a dog", "a dog with a menorah", {"menorah"}),
        ("a dog", "a dog with a frisbee and a kite", {"frisbee", "kite"}),
        ("a dog with a frisbee", "a dog with a frisbee", set()),
        ("a terrier", "a dog", set()),  # a terrier is a dog
        ("an animal", "a dog", set()),  # too vague, which is counted elsewhere
        ("a person", "a man", set()),  # a group
        ("a building", "a view of London", set()),  # a name
        ("a dog", "a picture of a dog", set()),  # about the image
        ("a couch", "a sofa", set()),  # the same sense
        ("a dog", "a dog jumping over a fence", {"jump", "fence"}),
    ],
)
def test_rare_words_that_a_caption_leaves_out_are_ignored(caption, human, words):
    assert ignored(caption, human) == words


def test_words_in_more_than_1_image_of_100_are_not_rare():
    references = [["a dog with a menorah"]] * 4 + [["a dog"]] * 96
    results = measured(study_of(["a dog"] * 100, references), IGNORED)
    assert row(results).value == 0
    rare_references = [["a dog with a menorah"]] + [["a dog"]] * 99
    assert row(measured(study_of(["a dog"] * 100, rare_references), IGNORED)).value == 0.01


def test_words_are_ranked_by_how_often_they_are_left_out():
    n_images = 10_000
    references = [["a menorah"]] * 40 + [["a lantern"]] * 40 + [["a dog"]] * (n_images - 80)
    captions = ["a dog"] * 40 + ["a lantern"] * 30 + ["a dog"] * (n_images - 70)
    results = measured(study_of(captions, references), IGNORED)
    assert [(m.item, m.value, m.n) for m in results.measurements if m.item] == [
        ("menorah", 1.0, 40),
        ("lantern", 0.25, 40),
    ]
