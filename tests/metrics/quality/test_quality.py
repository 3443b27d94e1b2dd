"""Quality: whole studies with known answers, and the programs in Java beside what they print themselves."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from portrayal.errors import PortrayalError
from portrayal.lab import FAITHFUL, Captioner, make_study
from portrayal.metrics import quality
from portrayal.metrics.quality import meteor, spice
from portrayal.metrics.quality.plain_words import plain_words
from portrayal.study import Study
from tests.metrics.quality.conftest import coco_caption, java  # noqa: F401


def study_of(rows, groups=None, labels=None, systems=("s",)):
    """Rows are an image's caption (or one per system) and its references."""
    images = [f"i{number:03}" for number in range(len(rows))]
    captions = [
        {"image_id": image, "system": system, "caption": text}
        for image, (said, _) in zip(images, rows, strict=True)
        for system, text in zip(systems, (said,) if isinstance(said, str) else said, strict=True)
    ]
    references = [
        {"image_id": i, "caption": one} for i, (_, some) in zip(images, rows, strict=True) for one in some
    ]
    tables = {"captions": pl.DataFrame(captions)}
    if references:
        tables["references"] = pl.DataFrame(references)
    if groups:
        tables["attributes"] = pl.DataFrame({"image_id": images, "gender": groups})
    if labels:
        shown = [
            {"image_id": i, "label": label} for i, some in zip(images, labels, strict=True) for label in some
        ]
        tables["objects"] = pl.DataFrame(shown)
    return Study.from_frames(**tables)


def row(results, term, system="s", group=None):
    found = [m for m in results.measurements if (m.term, m.system, m.group) == (term, system, group)]
    assert len(found) == 1, (term, found)
    return found[0]


def value(results, term, system="s", group=None):
    return row(results, term, system, group).value


def test_a_corpus_by_hand():
    # Three images; what people wrote, and a system that is right, half right, and wrong.
    study = study_of(
        [("a dog runs", ["a dog runs"]), ("a dog sits", ["a cat sits"]), ("x y z", ["the red bus"])]
    )
    found = quality(study, bootstrap=20)
    assert value(found, "bleu-1") == pytest.approx((3 + 2 + 0) / 9)
    assert value(found, "bleu-2") == pytest.approx(np.sqrt(5 / 9 * (2 + 0 + 0) / 6))
    assert value(found, "rouge-l") == pytest.approx((1 + 2 / 3 + 0) / 3)
    # Weights: a is in two of three images, log 1.5; dog, runs, cat, sits and all longer runs in one, log 3.
    a, rare = np.log(1.5), np.log(3)
    words = (a**2 + rare**2) / (
        a**2 + rare**2 + rare**2
    )  # "a dog sits" beside "a cat sits": a and sits are shared
    assert value(found, "cider") == pytest.approx(10 / 4 * (3 + words + 0) / 3)
    assert value(found, "length") == 3
    assert value(found, "vocabulary") == 7
    assert value(found, "repeated") == 0


def test_chair_by_hand():
    rows = [
        ("a dog and a cat on a bench", ["a dog on a bench"]),  # three mentions; the cat is made up
        ("a cat", ["a kitten"]),  # labelled
        (
            "a person with a dog and a dog",
            ["somebody"],
        ),  # both dogs are made up: two false mentions, one caption
        ("nothing here", ["a street"]),  # mentions nothing
    ]
    study = study_of(rows, labels=[["dog"], ["cat"], ["person"], ["bench"]])
    found = quality(study, bootstrap=20)
    assert value(found, "chair-i") == pytest.approx(3 / 7)
    assert value(found, "chair-s") == pytest.approx(2 / 4)
    by_labels = quality(study, bootstrap=20, truth="labels")
    assert value(by_labels, "chair-i") == pytest.approx(4 / 7)  # nobody labelled the bench
    by_captions = quality(study, bootstrap=20, truth="captions")
    assert value(by_captions, "chair-s") == pytest.approx(2 / 4)  # kitten is a cat; a person is somebody


@pytest.mark.parametrize(
    "who", ["person", "woman", "two people", "bride", "female skier", "lady and somebody"]
)
def test_whoever_is_named_is_a_person_for_chair(who):
    """A caption that says "person" makes up no more than one that says "woman": of a dog alone, both do."""
    rows = [(f"a {who} with a dog", ["a dog"]), (f"a {who} with a dog", ["a dog"])]
    study = study_of(rows, labels=[["person", "dog"], ["dog"]])
    found = quality(study, bootstrap=20, truth="labels")
    mentions = 3 if who == "lady and somebody" else 2  # of an image: the dog, and who is named
    assert value(found, "chair-i") == pytest.approx((mentions - 1) / (2 * mentions))
    assert value(found, "chair-s") == 0.5


def test_what_names_nobody_is_no_person_for_chair():
    rows = [("a dog in a cowboy hat and no man", ["a dog"]), ("she pets a dog", ["a dog"])]
    study = study_of(rows, labels=[["dog"], ["dog", "Woman"]])
    assert value(quality(study, bootstrap=20, truth="labels"), "chair-s") == 0
    people = study_of([("a man and a dog", ["x"]), ("a person", ["x"])], labels=[["Woman", "dog"], ["Girl"]])
    assert (
        value(quality(people, bootstrap=20, truth="labels"), "chair-s") == 0
    )  # whose gender is no question of CHAIR


def test_a_list_of_ones_own_says_which_words_are_for_people(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("person, woman\ndog\n")
    study = study_of([("a woman", ["x"]), ("a man", ["x"])], labels=[["dog"], ["dog", "person"]])
    found = quality(study, bootstrap=20, truth="labels", synonyms=str(words))
    assert value(found, "chair-s") == 0.5  # the woman; this list does not know the man


def test_people_are_not_caught_out_by_themselves():
    """An image that one person described, and nobody labelled, says nothing of what that person made up."""
    alone = study_of([("a dog", ["a dog"]), ("a cup", ["a cup"])], labels=[["person"], []])
    found = quality(alone, bootstrap=20, truth="captions", synonyms=None)
    assert row(found, "chair-s", "human").value is None
    assert value(found, "chair-s") == 0


def test_a_list_of_synonyms_adds_its_objects(tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("dog, puppy\ncup, mug\n")
    study = study_of([("a puppy with a mug", ["a dog"])] * 2, labels=[["dog"]] * 2)
    assert (
        value(quality(study, bootstrap=20), "chair-i") == 0
    )  # nobody labels cups here, so none is looked for
    assert value(quality(study, bootstrap=20, synonyms=str(words)), "chair-i") == 0.5


def test_labels_of_models_must_be_sure_and_are_named():
    tables = {
        "captions": pl.DataFrame({"image_id": ["1", "2"], "system": "s", "caption": ["a dog", "a cup"]}),
        "objects": pl.DataFrame(
            {
                "image_id": ["1", "2", "2"],
                "label": ["dog", "cup", "dog"],
                "source": "d",
                "confidence": [0.9, 0.1, 0.8],
            }
        ),
    }
    study = Study.from_frames(**tables)
    found = quality(study, bootstrap=20, confidence=0.05)
    assert value(found, "chair-s") == 0
    assert row(found, "chair-s").settings["objects"] == "d"
    assert value(quality(study, bootstrap=20), "chair-i") == 0  # with 0.5 no cup is labelled anywhere
    assert row(quality(study, bootstrap=20, truth="labels"), "chair-s").n == 2


def test_what_never_happened_may_happen():
    found = quality(study_of([("a dog", ["a dog"])] * 40, labels=[["dog"]] * 40), bootstrap=50)
    from portrayal.stats import wilson

    assert (row(found, "chair-s").low, row(found, "chair-s").high) == pytest.approx(wilson(0, 40))
    assert row(found, "repeated").high == 1


def test_objects_that_are_one_thing_are_not_two():
    study = study_of([("a hot dog on a toilet seat", ["food"])], labels=[["hot dog", "toilet"]])
    assert value(quality(study, bootstrap=20), "chair-i") == 0


def test_groups_and_the_gap_between_them():
    rows = [("a dog runs", ["a dog runs"])] * 40 + [("a cat", ["the red bus"])] * 40
    study = study_of(rows, ["male"] * 40 + ["female"] * 40)
    found = quality(study, bootstrap=100)
    assert value(found, "rouge-l", group="male") == 1
    assert value(found, "rouge-l", group="female") == 0
    gap = row(found, "rouge-l-gap")
    assert gap.value == 1
    assert gap.p == pytest.approx(1 / 101)
    assert (gap.better, gap.ideal) == ("lower", 0.0)


def test_groups_of_the_same_captions_are_not_apart():
    rows = [("a dog runs", ["a dog runs"]), ("a cat", ["the red bus"])] * 40
    found = quality(study_of(rows, ["male", "male", "female", "female"] * 20), bootstrap=100)
    gap = row(found, "rouge-l-gap")
    assert gap.value == 0
    assert gap.p == 1
    assert gap.low < 0 < gap.high


def test_three_groups_and_a_small_one():
    rows = [("a dog runs", ["a dog runs"])] * 40 + [("a dog", ["a cat"])] * 40 + [("x", ["a bus"])] * 40
    groups = ["a"] * 40 + ["b"] * 40 + ["c"] * 38 + ["d"] * 2
    found = quality(study_of(rows, groups), bootstrap=50)
    assert value(found, "rouge-l-gap") == 1  # a against c
    assert row(found, "rouge-l", group="d").reason.startswith("too few")
    assert row(found, "rouge-l-gap").n == 118


def test_undefined_is_undefined():
    nothing = quality(study_of([("a dog", []), ("a cat", [])]), bootstrap=20)
    for term in ("bleu-1", "rouge-l", "cider"):
        assert row(nothing, term).value is None
        assert "reference" in row(nothing, term).reason
    assert "objects" in row(nothing, "chair-i").reason
    assert value(nothing, "length") == 2
    single = quality(study_of([("a dog", ["a dog"])]), bootstrap=20)
    assert row(single, "cider").value is None
    assert "two images" in row(single, "cider").reason
    assert value(single, "bleu-1") == pytest.approx(1)
    silent = quality(study_of([("", ["a dog"]), ("", ["a cat"])], labels=[["dog"], ["cat"]]), bootstrap=20)
    assert value(silent, "rouge-l") == 0
    assert row(silent, "chair-i").value is None  # nothing is mentioned
    assert value(silent, "chair-s") == 0


def test_people_are_held_against_each_other():
    rows = [
        ("x", ["a dog runs", "a dog sits", "a dog"]),
        ("x", ["a red bus", "the red bus"]),
        ("x", ["alone"]),
    ]
    found = quality(study_of(rows), bootstrap=20)
    # Image 1: "a dog runs" shares 2 of 3 words with "a dog sits" (recall of "a dog" 2/2), and so on; image 3 has nobody
    # to be held against.
    assert row(found, "rouge-l", "human").n == 2
    precision, recall = 2 / 3, 1.0
    first = second = 2.44 * precision * recall / (recall + 1.44 * precision)
    third = 2.44 * 1 * (2 / 3) / (2 / 3 + 1.44 * 1)
    expected = ((first + second + third) / 3 + 2 / 3) / 2
    assert value(found, "rouge-l", "human") == pytest.approx(expected)
    assert row(found, "length", "human").n == 3


def test_several_captions_of_an_image_count_once():
    images = pl.DataFrame(
        {
            "image_id": ["1", "1", "2"],
            "system": ["s"] * 3,
            "sample": [0, 1, 0],
            "caption": ["a dog runs", "x y z", "a red bus"],
        }
    )
    written = pl.DataFrame({"image_id": ["1", "2"], "caption": ["a dog runs", "a red bus"]})
    found = quality(Study.from_frames(captions=images, references=written), bootstrap=20)
    assert value(found, "rouge-l") == pytest.approx((0.5 + 1) / 2)
    assert value(found, "bleu-1") == pytest.approx((1.5 + 3) / 6)
    # The image with one caption takes part in the second round too, so that words stay as rare as they are.
    full = quality(
        Study.from_frames(captions=images.filter(pl.col("sample") == 0), references=written), bootstrap=20
    )
    assert value(found, "cider") == pytest.approx((value(full, "cider") / 2 + value(full, "cider")) / 2)


def test_evidence_goes_from_the_worst_to_the_best(tmp_path):
    study = make_study(200, seed=1, captioners=[FAITHFUL])
    found = quality(study, attribute="gender", bootstrap=20, evidence=30)
    cider = row(found, "cider", "faithful")
    behind = found.evidence.filter(pl.col("id") == cider.id)
    scores = [json.loads(detail)["cider"] for detail in behind["detail"]]
    assert behind.height == 30
    assert scores == sorted(scores)
    everything = quality(study, attribute="gender", bootstrap=20, evidence=0)
    every = everything.evidence.filter(pl.col("id") == row(everything, "cider", "faithful").id)
    assert every.height == 200
    assert np.mean([json.loads(one)["cider"] for one in every["detail"]]) == pytest.approx(
        cider.value, abs=1e-3
    )


def test_the_lab_makes_up_what_chair_finds():
    captioners = [
        Captioner("truthful"),
        Captioner("inventing", hallucination=0.3),
        Captioner("uneven", hallucination={"female": 0.4}),
    ]
    found = quality(make_study(600, seed=2, captioners=captioners), attribute="gender", bootstrap=200)
    truthful, inventing = value(found, "chair-s", "truthful"), value(found, "chair-s", "inventing")
    assert inventing - truthful == pytest.approx(0.3, abs=0.06)
    assert row(found, "chair-s-gap", "uneven").p < 0.01
    assert value(found, "chair-s-gap", "uneven") == pytest.approx(0.4, abs=0.08)
    assert row(found, "chair-s-gap", "inventing").p > 0.01


def test_leaving_people_out_of_one_groups_captions_shows_in_the_gap():
    captioners = [Captioner("even"), Captioner("uneven", erasure={"female": 0.8})]
    found = quality(make_study(600, seed=2, captioners=captioners), attribute="gender", bootstrap=200)
    assert row(found, "rouge-l-gap", "uneven").p < 0.01
    assert value(found, "rouge-l", "uneven", "female") < value(found, "rouge-l", "uneven", "male")
    assert value(found, "rouge-l-gap", "uneven") > 1.5 * value(found, "rouge-l-gap", "even")


def test_meteor_is_what_its_program_prints(java, shared):  # noqa: F811
    from pycocoevalcap.meteor.meteor import Meteor

    lines = (shared / "coco/human_captions_val2014.jsonl").read_text(encoding="utf-8").splitlines()[:400]
    some = [row["captions"] for row in map(json.loads, lines) if len(row["captions"]) >= 4][:150]
    words = [[plain_words(one) for one in captions] for captions in some]
    words[0][1] = words[0][0]  # one is matched as a whole
    said, written = [one[0] for one in words], [one[1:] for one in words]
    parts = meteor.meteor_counts(said, written)
    program = Meteor()
    total, single = program.compute_score(
        {place: [" ".join(one) for one in some] for place, some in enumerate(written)},
        {place: [" ".join(one)] for place, one in enumerate(said)},
    )
    for pipe in (program.meteor_p.stdout, program.meteor_p.stderr):
        pipe.close()
    assert np.abs(meteor.meteor(parts) - single).max() < 1e-6
    assert meteor.meteor(parts.sum(axis=0)[None])[0] == pytest.approx(total, abs=1e-6)
    assert single[0] == 1


def test_meteor_joins_the_others_where_it_is_asked_for(java):  # noqa: F811
    study = study_of([("a dog runs", ["a dog runs"]), ("", ["a cat | sits ||| here"])])
    found = quality(study, bootstrap=20, java="yes")
    assert 0.1 < value(found, "meteor") < 1
    assert not [m for m in quality(study, bootstrap=20).measurements if m.term == "meteor"]


def test_programs_that_are_not_there_are_named(monkeypatch):
    study = study_of([("a dog", ["a dog"]), ("a cat", ["a cat"])])
    monkeypatch.setattr(meteor, "missing_requirement", lambda: "METEOR needs Java (the command 'java')")
    with pytest.raises(PortrayalError, match="needs Java"):
        quality(study, java="yes")
    assert (
        row(quality(study, bootstrap=20, java="auto"), "meteor").reason
        == "METEOR needs Java (the command 'java')"
    )


def test_spice_needs_its_files(java, monkeypatch):  # noqa: F811
    assert "models" in (spice.missing_requirement() or "")
    monkeypatch.setattr(meteor, "missing_requirement", lambda: None)
    monkeypatch.setattr(
        meteor, "meteor_counts", lambda captions, _: np.ones((len(captions), meteor.N_COUNTS))
    )
    found = quality(study_of([("a dog", ["a dog"]), ("a cat", ["a cat"])]), bootstrap=20, java="yes")
    assert "models" in row(found, "spice").reason


def test_the_command(command, tmp_path):
    from portrayal.study import write_study

    write_study(make_study(60, seed=1), tmp_path / "study")
    code, printed, _ = command(
        "score", "quality", tmp_path / "study", "--attribute", "gender", "--bootstrap", 20
    )
    assert code == 0
    assert "cider-gap" in printed
    assert "human" in printed
