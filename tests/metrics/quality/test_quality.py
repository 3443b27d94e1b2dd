"""Quality: whole studies with known answers, and METEOR against its own Java program."""

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
        for image, (outputs, _) in zip(images, rows, strict=True)
        for system, text in zip(systems, (outputs,) if isinstance(outputs, str) else outputs, strict=True)
    ]
    references = [
        {"image_id": i, "caption": reference}
        for i, (_, image_references) in zip(images, rows, strict=True)
        for reference in image_references
    ]
    tables = {"captions": pl.DataFrame(captions)}
    if references:
        tables["references"] = pl.DataFrame(references)
    if groups:
        tables["attributes"] = pl.DataFrame({"image_id": images, "gender": groups})
    if labels:
        object_rows = [
            {"image_id": i, "label": label}
            for i, image_labels in zip(images, labels, strict=True)
            for label in image_labels
        ]
        tables["objects"] = pl.DataFrame(object_rows)
    return Study.from_frames(**tables)


def row(results, term, system="s", group=None):
    matches = [m for m in results.measurements if (m.term, m.system, m.group) == (term, system, group)]
    assert len(matches) == 1, (term, matches)
    return matches[0]


def value(results, term, system="s", group=None):
    return row(results, term, system, group).value


def test_a_corpus_by_hand():
    # Three images with references; the system is right, half right, and wrong.
    study = study_of(
        [("a dog runs", ["a dog runs"]), ("a dog sits", ["a cat sits"]), ("x y z", ["the red bus"])]
    )
    results = quality(study, bootstrap=20)
    assert value(results, "bleu-1") == pytest.approx((3 + 2 + 0) / 9)
    assert value(results, "bleu-2") == pytest.approx(np.sqrt(5 / 9 * (2 + 0 + 0) / 6))
    assert value(results, "rouge-l") == pytest.approx((1 + 2 / 3 + 0) / 3)
    # Weights: a is in two of three images, log 1.5; dog, runs, cat, sits and all longer runs in one, log 3.
    a, rare = np.log(1.5), np.log(3)
    words = (a**2 + rare**2) / (
        a**2 + rare**2 + rare**2
    )  # "a dog sits" and "a cat sits": a and sits are shared
    assert value(results, "cider") == pytest.approx(10 / 4 * (3 + words + 0) / 3)
    assert value(results, "length") == 3
    assert value(results, "vocabulary") == 7
    assert value(results, "repeated") == 0


def test_chair_by_hand():
    rows = [
        ("a dog and a cat on a bench", ["a dog on a bench"]),  # three mentions; the cat is hallucinated
        ("a cat", ["a kitten"]),  # labelled
        (
            "a person with a dog and a dog",
            ["somebody"],
        ),  # both dogs are hallucinated: two false mentions, one caption
        ("nothing here", ["a street"]),  # mentions nothing
    ]
    study = study_of(rows, labels=[["dog"], ["cat"], ["person"], ["bench"]])
    results = quality(study, bootstrap=20)
    assert value(results, "chair-i") == pytest.approx(3 / 7)
    assert value(results, "chair-s") == pytest.approx(2 / 4)
    by_labels = quality(study, bootstrap=20, truth="labels")
    assert value(by_labels, "chair-i") == pytest.approx(4 / 7)  # the bench is not labelled
    by_captions = quality(study, bootstrap=20, truth="captions")
    assert value(by_captions, "chair-s") == pytest.approx(2 / 4)  # a kitten is a cat; "somebody" is a person


@pytest.mark.parametrize(
    "person", ["person", "woman", "two people", "bride", "female skier", "lady and somebody"]
)
def test_every_word_for_a_person_is_a_person_for_chair(person):
    """A caption with "person" hallucinates no more than one with "woman": on an image of a dog alone, both do."""
    rows = [(f"a {person} with a dog", ["a dog"]), (f"a {person} with a dog", ["a dog"])]
    study = study_of(rows, labels=[["person", "dog"], ["dog"]])
    results = quality(study, bootstrap=20, truth="labels")
    mentions = 3 if person == "lady and somebody" else 2  # of an image: the dog, and who is named
    assert value(results, "chair-i") == pytest.approx((mentions - 1) / (2 * mentions))
    assert value(results, "chair-s") == 0.5


def test_captions_that_name_nobody_mention_no_person_for_chair():
    rows = [("a dog in a cowboy hat and no man", ["a dog"]), ("she pets a dog", ["a dog"])]
    study = study_of(rows, labels=[["dog"], ["dog", "Woman"]])
    assert value(quality(study, bootstrap=20, truth="labels"), "chair-s") == 0
    person_study = study_of(
        [("a man and a dog", ["x"]), ("a person", ["x"])], labels=[["Woman", "dog"], ["Girl"]]
    )
    assert (
        value(quality(person_study, bootstrap=20, truth="labels"), "chair-s") == 0
    )  # CHAIR does not compare genders


def test_a_custom_word_list_defines_the_words_for_people(tmp_path):
    word_list = tmp_path / "words.txt"
    word_list.write_text("person, woman\ndog\n")
    study = study_of([("a woman", ["x"]), ("a man", ["x"])], labels=[["dog"], ["dog", "person"]])
    results = quality(study, bootstrap=20, truth="labels", synonyms=str(word_list))
    assert value(results, "chair-s") == 0.5  # the woman; this list does not know the man


def test_a_reference_is_not_its_own_truth():
    """A single reference of an image without labels cannot be checked for hallucinations."""
    single_references = study_of([("a dog", ["a dog"]), ("a cup", ["a cup"])], labels=[["person"], []])
    results = quality(single_references, bootstrap=20, truth="captions", synonyms=None)
    assert row(results, "chair-s", "human").value is None
    assert value(results, "chair-s") == 0


def test_a_list_of_synonyms_adds_its_objects(tmp_path):
    synonym_list = tmp_path / "words.txt"
    synonym_list.write_text("dog, puppy\ncup, mug\n")
    study = study_of([("a puppy with a mug", ["a dog"])] * 2, labels=[["dog"]] * 2)
    assert (
        value(quality(study, bootstrap=20), "chair-i") == 0
    )  # no image is labelled with a cup, so cups are not counted
    assert value(quality(study, bootstrap=20, synonyms=str(synonym_list)), "chair-i") == 0.5


def test_labels_of_models_need_confidence_and_are_named():
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
    results = quality(study, bootstrap=20, confidence=0.05)
    assert value(results, "chair-s") == 0
    assert row(results, "chair-s").settings["objects"] == "d"
    assert value(quality(study, bootstrap=20), "chair-i") == 0  # with 0.5 no cup is labelled anywhere
    assert row(quality(study, bootstrap=20, truth="labels"), "chair-s").n == 2


def test_zero_counts_have_wilson_intervals():
    results = quality(study_of([("a dog", ["a dog"])] * 40, labels=[["dog"]] * 40), bootstrap=50)
    from portrayal.stats import wilson

    assert (row(results, "chair-s").low, row(results, "chair-s").high) == pytest.approx(wilson(0, 40))
    assert row(results, "repeated").high == 1


def test_a_phrase_is_a_single_object():
    study = study_of([("a hot dog on a toilet seat", ["food"])], labels=[["hot dog", "toilet"]])
    assert value(quality(study, bootstrap=20), "chair-i") == 0


def test_groups_and_the_gap_between_them():
    rows = [("a dog runs", ["a dog runs"])] * 40 + [("a cat", ["the red bus"])] * 40
    study = study_of(rows, ["male"] * 40 + ["female"] * 40)
    results = quality(study, bootstrap=100)
    assert value(results, "rouge-l", group="male") == 1
    assert value(results, "rouge-l", group="female") == 0
    gap = row(results, "rouge-l-gap")
    assert gap.value == 1
    assert gap.p == pytest.approx(1 / 101)
    assert (gap.better, gap.ideal) == ("lower", 0.0)


def test_groups_with_the_same_captions_have_no_gap():
    rows = [("a dog runs", ["a dog runs"]), ("a cat", ["the red bus"])] * 40
    results = quality(study_of(rows, ["male", "male", "female", "female"] * 20), bootstrap=100)
    gap = row(results, "rouge-l-gap")
    assert gap.value == 0
    assert gap.p == 1
    assert gap.low < 0 < gap.high


def test_three_groups_and_a_small_group():
    rows = [("a dog runs", ["a dog runs"])] * 40 + [("a dog", ["a cat"])] * 40 + [("x", ["a bus"])] * 40
    groups = ["a"] * 40 + ["b"] * 40 + ["c"] * 38 + ["d"] * 2
    results = quality(study_of(rows, groups), bootstrap=50)
    assert value(results, "rouge-l-gap") == 1  # a against c
    assert row(results, "rouge-l", group="d").reason.startswith("too few")
    assert row(results, "rouge-l-gap").n == 118


def test_undefined_scores_have_a_reason():
    without_references = quality(study_of([("a dog", []), ("a cat", [])]), bootstrap=20)
    for term in ("bleu-1", "rouge-l", "cider"):
        assert row(without_references, term).value is None
        assert "reference" in row(without_references, term).reason
    assert "objects" in row(without_references, "chair-i").reason
    assert value(without_references, "length") == 2
    single = quality(study_of([("a dog", ["a dog"])]), bootstrap=20)
    assert row(single, "cider").value is None
    assert "two images" in row(single, "cider").reason
    assert value(single, "bleu-1") == pytest.approx(1)
    silent = quality(study_of([("", ["a dog"]), ("", ["a cat"])], labels=[["dog"], ["cat"]]), bootstrap=20)
    assert value(silent, "rouge-l") == 0
    assert row(silent, "chair-i").value is None  # nothing is mentioned
    assert value(silent, "chair-s") == 0


def test_references_are_compared_with_each_other():
    rows = [
        ("x", ["a dog runs", "a dog sits", "a dog"]),
        ("x", ["a red bus", "the red bus"]),
        ("x", ["alone"]),
    ]
    results = quality(study_of(rows), bootstrap=20)
    # Image 1: "a dog runs" shares 2 of 3 words with "a dog sits" (recall of "a dog" 2/2), and so on; image 3 has no
    # other reference.
    assert row(results, "rouge-l", "human").n == 2
    precision, recall = 2 / 3, 1.0
    first = second = 2.44 * precision * recall / (recall + 1.44 * precision)
    third = 2.44 * 1 * (2 / 3) / (2 / 3 + 1.44 * 1)
    expected = ((first + second + third) / 3 + 2 / 3) / 2
    assert value(results, "rouge-l", "human") == pytest.approx(expected)
    assert row(results, "length", "human").n == 3


def test_several_captions_of_an_image_count_once():
    captions = pl.DataFrame(
        {
            "image_id": ["1", "1", "2"],
            "system": ["s"] * 3,
            "sample": [0, 1, 0],
            "caption": ["a dog runs", "x y z", "a red bus"],
        }
    )
    references = pl.DataFrame({"image_id": ["1", "2"], "caption": ["a dog runs", "a red bus"]})
    results = quality(Study.from_frames(captions=captions, references=references), bootstrap=20)
    assert value(results, "rouge-l") == pytest.approx((0.5 + 1) / 2)
    assert value(results, "bleu-1") == pytest.approx((1.5 + 3) / 6)
    # The image with one caption takes part in the second round too, so that words stay as rare as they are.
    first_samples = quality(
        Study.from_frames(captions=captions.filter(pl.col("sample") == 0), references=references),
        bootstrap=20,
    )
    assert value(results, "cider") == pytest.approx(
        (value(first_samples, "cider") / 2 + value(first_samples, "cider")) / 2
    )


def test_evidence_goes_from_the_worst_to_the_best(tmp_path):
    study = make_study(200, seed=1, captioners=[FAITHFUL])
    results = quality(study, attribute="gender", bootstrap=20, evidence=30)
    cider = row(results, "cider", "faithful")
    kept = results.evidence.filter(pl.col("id") == cider.id)
    scores = [json.loads(detail)["cider"] for detail in kept["detail"]]
    assert kept.height == 30
    assert scores == sorted(scores)
    all_results = quality(study, attribute="gender", bootstrap=20, evidence=0)
    all_evidence = all_results.evidence.filter(pl.col("id") == row(all_results, "cider", "faithful").id)
    assert all_evidence.height == 200
    assert np.mean([json.loads(detail)["cider"] for detail in all_evidence["detail"]]) == pytest.approx(
        cider.value, abs=1e-3
    )


def test_chair_detects_planted_hallucinations():
    captioners = [
        Captioner("truthful"),
        Captioner("inventing", hallucination=0.3),
        Captioner("uneven", hallucination={"female": 0.4}),
    ]
    results = quality(make_study(600, seed=2, captioners=captioners), attribute="gender", bootstrap=200)
    truthful, inventing = value(results, "chair-s", "truthful"), value(results, "chair-s", "inventing")
    assert inventing - truthful == pytest.approx(0.3, abs=0.06)
    assert row(results, "chair-s-gap", "uneven").p < 0.01
    assert value(results, "chair-s-gap", "uneven") == pytest.approx(0.4, abs=0.08)
    assert row(results, "chair-s-gap", "inventing").p > 0.01


def test_erasure_of_a_group_raises_the_gap():
    captioners = [Captioner("even"), Captioner("uneven", erasure={"female": 0.8})]
    results = quality(make_study(600, seed=2, captioners=captioners), attribute="gender", bootstrap=200)
    assert row(results, "rouge-l-gap", "uneven").p < 0.01
    assert value(results, "rouge-l", "uneven", "female") < value(results, "rouge-l", "uneven", "male")
    assert value(results, "rouge-l-gap", "uneven") > 1.5 * value(results, "rouge-l-gap", "even")


def test_meteor_agrees_with_its_program(java, shared):  # noqa: F811
    from pycocoevalcap.meteor.meteor import Meteor

    lines = (shared / "coco/human_captions_val2014.jsonl").read_text(encoding="utf-8").splitlines()[:400]
    caption_lists = [row["captions"] for row in map(json.loads, lines) if len(row["captions"]) >= 4][:150]
    token_lists = [[plain_words(caption) for caption in captions] for captions in caption_lists]
    token_lists[0][1] = token_lists[0][0]  # the first candidate equals its reference
    candidates, references = [tokens[0] for tokens in token_lists], [tokens[1:] for tokens in token_lists]
    counts = meteor.meteor_counts(candidates, references)
    program = Meteor()
    corpus_score, image_scores = program.compute_score(
        {
            index: [" ".join(tokens) for tokens in image_references]
            for index, image_references in enumerate(references)
        },
        {index: [" ".join(tokens)] for index, tokens in enumerate(candidates)},
    )
    for pipe in (program.meteor_p.stdout, program.meteor_p.stderr):
        pipe.close()
    assert np.abs(meteor.meteor(counts) - image_scores).max() < 1e-6
    assert meteor.meteor(counts.sum(axis=0)[None])[0] == pytest.approx(corpus_score, abs=1e-6)
    assert image_scores[0] == 1


def test_meteor_is_measured_on_request(java):  # noqa: F811
    study = study_of([("a dog runs", ["a dog runs"]), ("", ["a cat | sits ||| here"])])
    results = quality(study, bootstrap=20, java="yes")
    assert 0.1 < value(results, "meteor") < 1
    assert not [m for m in quality(study, bootstrap=20).measurements if m.term == "meteor"]


def test_missing_programs_are_named(monkeypatch):
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
    results = quality(study_of([("a dog", ["a dog"]), ("a cat", ["a cat"])]), bootstrap=20, java="yes")
    assert "models" in row(results, "spice").reason


def test_the_command(command, tmp_path):
    from portrayal.study import write_study

    write_study(make_study(60, seed=1), tmp_path / "study")
    code, stdout, _ = command(
        "score", "quality", tmp_path / "study", "--attribute", "gender", "--bootstrap", 20
    )
    assert code == 0
    assert "cider-gap" in stdout
    assert "human" in stdout
