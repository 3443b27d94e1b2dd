"""Leakage: by hand, against a plain implementation, chance, what cannot be measured, and the lab."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from portrayal.errors import PortrayalError, Undefined
from portrayal.lab import make_study
from portrayal.lab.captioners import Captioner
from portrayal.lab.world import World
from portrayal.metrics import leakage
from portrayal.metrics.leakage.label_noise import degrade, micro_f1
from portrayal.metrics.shared.classifier.linear import hits
from portrayal.metrics.shared.classifier.splits import common_folds
from portrayal.results import Results
from portrayal.study import Study

LABELS = ("cup", "kite", "tie")
TERMS = ("on-outputs", "on-truth", "difference", "predictability", "on-labels", "f1")
CALL = {"attribute": "gender", "permutations": 0, "bootstrap": 60}


def row(results: Results, term: str, system: str = "s", group: str | None = None):
    (found,) = [m for m in results.measurements if (m.term, m.system, m.group) == (term, system, group)]
    return found


def value(results: Results, term: str, system: str = "s", group: str | None = None):
    return row(results, term, system, group).value


def caption(labels) -> str:
    return f"a person with {' and '.join(f'a {label}' for label in labels) or 'nothing'}"


def study_of(said, truth, groups, **more) -> Study:
    """Labels said and labels true of each image."""
    images = [f"i{number:05d}" for number in range(len(groups))]
    pairs = [(image, label) for image, some in zip(images, truth, strict=True) for label in (*some, "person")]
    return Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": images, "system": "s", "caption": [caption(some) for some in said]}
        ),
        attributes=pl.DataFrame({"image_id": images, "gender": groups}),
        objects=pl.DataFrame(pairs, schema=["image_id", "label"], orient="row").with_columns(
            source=pl.lit("human")
        ),
        **more,
    )


def drawn(size: int, chances: dict[str, dict[str, float]], seed: int = 0):
    """Groups, and labels of each image by chances of its group."""
    rng = np.random.default_rng(seed)
    groups = ["female" if yes else "male" for yes in rng.random(size) < 0.4]
    labels = [tuple(o for o in LABELS if rng.random() < chances[group][o]) for group in groups]
    return labels, groups


TIED = {
    "female": {"cup": 0.5, "kite": 0.6, "tie": 0.1},
    "male": {"cup": 0.5, "kite": 0.3, "tie": 0.5},
}


@pytest.fixture(scope="module")
def lab() -> Study:
    return make_study(400, 3)


@pytest.fixture(scope="module")
def found(lab: Study) -> Results:
    return leakage(lab, attribute="gender", permutations=20, bootstrap=100)


# By hand


def test_labels_that_are_right_leak_what_is_there_and_no_more():
    truth, groups = drawn(400, TIED)
    results = leakage(study_of(truth, truth, groups), **CALL)
    assert value(results, "f1") == 1
    assert value(results, "difference") == value(results, "predictability") == 0
    assert value(results, "on-outputs") == value(results, "on-truth") == value(results, "on-labels") > 0.6


def test_accuracy_is_the_mean_over_groups_of_images_guessed_right():
    # Ties of 60 of 80 men and 4 of 40 women, and nothing else: a tie is guessed a man, none a woman.
    # Men: 60 / 80, women: 36 / 40, their mean .825, and chance is .5 for all that two in three are men.
    truth = [("tie",)] * 60 + [()] * 20 + [("tie",)] * 4 + [()] * 36
    groups = ["male"] * 80 + ["female"] * 40
    results = leakage(study_of(truth, truth, groups), **{**CALL, "permutations": 40})
    assert value(results, "on-outputs", group="male") == pytest.approx(60 / 80)
    assert value(results, "on-outputs", group="female") == pytest.approx(36 / 40)
    assert value(results, "on-outputs") == pytest.approx(0.825)
    assert row(results, "on-outputs").ideal == pytest.approx(0.5, abs=0.03)
    assert row(results, "on-outputs").p == pytest.approx(1 / 41)


def test_predictability_is_the_relative_difference(found, lab):
    for system in lab.systems:
        ours, theirs = value(found, "on-outputs", system), value(found, "on-truth", system)
        assert value(found, "difference", system) == pytest.approx(ours - theirs)
        assert value(found, "predictability", system) == pytest.approx((ours - theirs) / (ours + theirs))


def test_labels_that_know_no_group_leak_nothing():
    truth, groups = drawn(1000, TIED)
    said, _ = drawn(1000, {group: {"cup": 0.5, "kite": 0.4, "tie": 0.3} for group in TIED}, seed=1)
    results = leakage(study_of(said, truth, groups), **{**CALL, "permutations": 40})
    assert value(results, "on-outputs") == pytest.approx(0.5, abs=0.04)
    assert row(results, "on-outputs").p > 0.05
    assert value(results, "difference") <= 0.03
    flipped = leakage(study_of(said, truth, groups), **CALL, mistakes="flip")
    assert value(flipped, "difference") <= 0.03


def test_a_tie_that_the_system_makes_up_is_its_own():
    truth, groups = drawn(600, dict.fromkeys(TIED, TIED["male"]))
    said = [
        (*(o for o in some if o != "tie"), *(("tie",) if g == "male" else ()))
        for some, g in zip(truth, groups, strict=True)
    ]
    results = leakage(study_of(said, truth, groups), **CALL)
    assert value(results, "on-labels") == pytest.approx(0.5, abs=0.06)
    assert value(results, "on-outputs") == 1
    assert value(results, "difference") > 0.4
    assert row(results, "difference").p < 0.001


def test_mistakes_without_regard_to_the_group_are_not_the_systems():
    truth, groups = drawn(1500, TIED)
    rng = np.random.default_rng(5)
    said = [tuple(o for o in some if rng.random() < 0.6) for some in truth]
    results = leakage(study_of(said, truth, groups), **CALL)
    assert value(results, "on-outputs") < value(results, "on-labels") - 0.03
    assert value(results, "difference") == pytest.approx(0, abs=0.02)


def test_several_captions_count_by_their_share():
    truth, groups = drawn(60, TIED)
    study = study_of(truth, truth, groups)
    silent = study.captions.with_columns(sample=pl.lit(1), caption=pl.lit("a person"))
    both = Study(
        captions=pl.concat([study.captions, silent.cast(study.captions.schema)]),
        attributes=study.attributes,
        objects=study.objects,
    )
    # Half of what is there is said: 2 x 1/2 / (1/2 + 1).
    results = leakage(both, **CALL)
    assert value(results, "f1") == pytest.approx(2 / 3)
    assert value(results, "difference") == 0
    detail = json.loads(results.evidence_of(row(results, "on-outputs"))["detail"][0])
    assert detail["said"] == [f"{label} 50%" for label in detail["true"]]


# Mistakes


matrices = st.tuples(st.integers(2, 30), st.integers(1, 6), st.integers(0, 10_000))


@settings(max_examples=60, deadline=None)
@given(matrices, st.sampled_from(["label", "overall"]))
def test_mistakes_keep_precision_and_recall(size, how):
    images, labels, seed = size
    rng = np.random.default_rng(seed)
    truth = (rng.random((images, labels)) < 0.4).astype(float)
    said = np.where(rng.random(truth.shape) < 0.6, truth, rng.integers(0, 3, truth.shape) / 2)
    made = degrade(truth, said, how, rng)
    along = 0 if how == "label" else None
    assert np.sum(made * truth, axis=along) == pytest.approx(np.sum(said * truth, axis=along))
    assert np.sum(made, axis=along) == pytest.approx(np.sum(said, axis=along))
    assert micro_f1(made, truth) == pytest.approx(micro_f1(said, truth))


def test_flipped_labels_reach_f1():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 20)) < 0.1).astype(float)
    said = np.where(rng.random(truth.shape) < 0.7, truth, 0.0)
    made = degrade(truth, said, "flip", rng)
    assert set(np.unique(made)) == {0.0, 1.0}
    assert f1_score(truth, made, average="micro") == pytest.approx(
        f1_score(truth, said, average="micro"), abs=2e-3
    )
    assert (degrade(truth, truth, "flip", rng) == truth).all()


def test_a_tie_of_groups_is_right_by_its_part():
    likely = np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
    assert hits(likely, np.array([1, 0, 0])).tolist() == [0.5, 1.0, 0.0]


# Against a plain implementation


def plain(images, features, groups, seed: int) -> float:
    """Accuracy by scikit-learn, an image a row, on the same folds."""
    fold = common_folds(images, 10, seed)
    right: dict[str, list[bool]] = {}
    for one in range(10):
        learnt, tested = fold != one, fold == one
        common = features[learnt].sum(axis=0) >= 2
        model = LogisticRegression(C=0.1, tol=1e-8, max_iter=10_000, class_weight="balanced")
        model.fit(features[learnt][:, common], groups[learnt])
        guessed = model.predict(features[tested][:, common])
        for group, guess in zip(groups[tested], guessed, strict=True):
            right.setdefault(group, []).append(group == guess)
    return float(np.mean([np.mean(some) for some in right.values()]))


def test_it_is_a_plain_implementations():
    rng = np.random.default_rng(2)
    truth, groups = drawn(500, TIED)
    said = [tuple(o for o in LABELS if (o in some) == (rng.random() < 0.8)) for some in truth]
    results = leakage(study_of(said, truth, groups), **CALL, seed=3, repeats=2)
    images = [f"i{number:05d}" for number in range(500)]
    there = {
        name: np.array([[float(o in some) for o in LABELS] for some in labels])
        for name, labels in (("said", said), ("true", truth))
    }
    names = np.array(groups)
    for term, name in (("on-outputs", "said"), ("on-labels", "true")):
        by_hand = [plain(images, there[name], names, seed) for seed in (6, 7)]
        assert value(results, term) == pytest.approx(np.mean(by_hand), abs=1e-9)
        assert row(results, term).std_seed == pytest.approx(np.std(by_hand, ddof=1), abs=1e-9)
    degraded = [
        plain(
            images,
            degrade(there["true"], there["said"], "label", np.random.default_rng([seed, 7])),
            names,
            seed,
        )
        for seed in (6, 7)
    ]
    assert value(results, "on-truth") == pytest.approx(np.mean(degraded), abs=1e-9)
    assert value(results, "f1") == pytest.approx(f1_score(there["true"], there["said"], average="micro"))


# Rows


def test_every_term_has_its_rows(found, lab):
    for system in (*lab.systems, "human"):
        for term in TERMS:
            for group in (None, *lab.groups("gender")):
                if term not in ("difference", "predictability") or group is None:
                    assert row(found, term, system, group).value is not None
    assert {m.unit for m in found.measurements} == {"share"}
    for m in found.measurements:
        assert m.low is not None
        assert (m.std_seed is None) == (m.term == "f1")
        tested = m.group is None and m.term in ("on-outputs", "difference", "predictability")
        assert (m.p is not None) == tested


def test_evidence_adds_up(found, lab):
    system = lab.systems[1]
    behind = found.evidence_of(row(found, "on-outputs", system))
    assert behind.height == row(found, "on-outputs", system).n
    right: dict[str, list[float]] = {}
    for caption, detail in behind.select("caption", "detail").iter_rows():
        told = json.loads(detail)
        assert caption
        assert set(told) == {"labelled", "said", "true", "guessed", "sure", "right"}
        right.setdefault(told["labelled"], []).append(told["right"])
    by_hand = np.mean([np.mean(some) for some in right.values()])
    assert by_hand == pytest.approx(value(found, "on-outputs", system), abs=1e-3)
    told = json.loads(found.evidence_of(row(found, "difference", system))["detail"][0])
    assert {"said", "true", "degraded", "guessed", "guessed (degraded)", "sure (degraded)"} <= set(told)


def test_the_same_seed_gives_the_same_numbers_and_another_others(lab):
    first, again, other = (
        leakage(lab, attribute="gender", permutations=5, bootstrap=20, systems=["faithful"], seed=seed)
        for seed in (4, 4, 5)
    )
    assert first.measurements == again.measurements
    assert value(first, "on-truth", "faithful") != value(other, "on-truth", "faithful")
    assert row(first, "on-truth", "faithful").id == row(other, "on-truth", "faithful").id


def test_no_null_means_no_ideal(lab):
    results = leakage(lab, **CALL, systems=["faithful"])
    assert row(results, "on-outputs", "faithful").ideal is None
    assert row(results, "on-outputs", "faithful").p is None


def test_three_groups_and_combinations(lab):
    results = leakage(
        lab, attribute="gender+age", permutations=5, bootstrap=20, systems=["faithful"], folds=5
    )
    headline = row(results, "on-outputs", "faithful")
    assert len(lab.groups("gender+age")) > 2
    assert headline.value is not None or "folds need" in headline.reason


def test_models_labels_are_systems_of_their_own(lab):
    results = leakage(lab, **CALL, outputs="labels", confidence=0)
    assert {m.system for m in results.measurements} == {"detector"}
    assert value(results, "f1", "detector") == 1  # the lab's detector misses nothing
    assert value(results, "difference", "detector") == 0
    surer = leakage(lab, **CALL, outputs="labels")
    assert row(surer, "f1", "detector").settings["confidence"] == 0.5
    assert value(surer, "f1", "detector") < 0.8
    without_captions = Study(attributes=lab.attributes, objects=lab.objects)
    assert leakage(without_captions, **CALL, outputs="labels").measurements == surer.measurements


# What cannot be measured


def test_people_must_have_labelled_objects(lab):
    models = lab.objects.filter(pl.col("source") != "human")
    with pytest.raises(Undefined, match="objects that people labelled"):
        leakage(Study(captions=lab.captions, attributes=lab.attributes, objects=models), **CALL)
    people = lab.objects.filter(pl.col("source") == "human")
    with pytest.raises(Undefined, match="nothing by a system"):
        leakage(Study(attributes=lab.attributes, objects=people), **CALL)


def test_one_group_cannot_be_guessed():
    truth, _ = drawn(50, TIED)
    with pytest.raises(Undefined, match="among several"):
        leakage(study_of(truth, truth, ["male"] * 50), **CALL)


def test_small_groups_have_a_reason():
    truth, groups = drawn(100, TIED)
    groups = ["female"] * 4 + ["male"] * 96
    results = leakage(study_of(truth, truth, groups), **CALL)
    for term in TERMS:
        assert value(results, term) is None
        assert (
            row(results, term).reason
            == "10 folds need as many images of each group, and there are 4 of female"
        )
    few = leakage(study_of(truth, truth, ["female"] * 12 + ["male"] * 88), **CALL)
    assert "too few" in row(few, "on-outputs").reason
    assert row(few, "difference").p is None


def test_captions_that_name_nothing_have_a_reason():
    truth, groups = drawn(60, TIED)
    results = leakage(study_of([()] * 60, truth, groups), **CALL)
    assert {row(results, term).reason for term in TERMS} == {"none of the labels is named"}


def test_nothing_there_has_a_reason():
    truth, groups = drawn(60, TIED)
    study = study_of(truth, [()] * 60, groups)
    elsewhere = pl.DataFrame({"image_id": ["elsewhere"], "label": ["tie"], "source": ["human"]})
    more = Study.from_frames(objects=elsewhere).objects
    study = Study(
        captions=study.captions, attributes=study.attributes, objects=pl.concat([study.objects, more])
    )
    said = leakage(Study(captions=study.captions, attributes=study.attributes, objects=study.objects), **CALL)
    assert row(said, "f1").reason == "people labelled no object in these images"


def test_labels_that_are_all_wrong_leak_but_compare_with_nothing():
    groups = ["female", "male"] * 40
    said = [("kite",) if group == "male" else ("cup",) for group in groups]
    results = leakage(study_of(said, [("tie",), ()] * 40, groups), **CALL)
    # "kite" and "cup" are no labels of people here, so nothing is named.
    assert row(results, "on-outputs").reason == "none of the labels is named"
    truth = [("kite",) if group == "female" else ("cup",) for group in groups]
    results = leakage(study_of(said, truth, groups), **CALL)
    assert value(results, "on-outputs") == 1
    assert value(results, "f1") == 0
    for term in ("on-truth", "difference", "predictability"):
        assert "F1 is 0" in row(results, term).reason


def test_options_that_are_wrong_are_told(lab, tmp_path):
    with pytest.raises(PortrayalError, match="'strength' must be 1000 or less"):
        leakage(lab, **CALL, C=1e4)
    with pytest.raises(PortrayalError, match="Did you mean 'label'"):
        leakage(lab, **CALL, mistakes="labels")
    with pytest.raises(PortrayalError, match="'synonyms' is for objects found in captions"):
        leakage(lab, **CALL, outputs="labels", synonyms=str(tmp_path / "words.csv"))


# The lab


def measured(term: str, studies: int = 4, world: World | None = None, **dials) -> float:
    made = [
        make_study(600, seed, world=world, captioners=[Captioner("s", **dials)]) for seed in range(studies)
    ]
    return float(np.mean([value(leakage(s, **CALL, sources=["s"]), term) for s in made]))


def test_it_follows_amplification():
    found = [measured("difference", amplification=level) for level in (0.0, 0.2, 0.5, 1.0)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(0, abs=0.015)
    assert found[-1] > 0.2


@pytest.mark.parametrize(
    "dials",
    [
        {"wrong_group": 1.0},
        {"neutral": 0.8},
        {"hallucination": 1.0},
        {"length": 1.0},
        {"length": 0.0},
        {"vocabulary": 1.0},
        {"repetition": 1.0},
        {"repetition": 0.0},
    ],
    ids=str,
)
def test_it_ignores_what_does_not_regard_the_group(dials):
    assert measured("difference", **dials) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_it_ignores_what_the_world_ties(bias):
    assert measured("difference", world=World(data_bias=bias)) == pytest.approx(0, abs=0.02)


def labelled_study(labels=("bench", "kite")):
    """Two detectors and no captions: one sees what is there, the other sees one label for each group."""
    rng = np.random.default_rng(0)
    images = [f"i{number:03}" for number in range(200)]
    groups = ["female", "male"] * 100
    rows = []
    for image, group in zip(images, groups, strict=True):
        there = labels[rng.random() < 0.5]
        rows += [(image, there, "human", None), (image, there, "true", 0.9)]
        rows.append((image, labels[group == "male"], "leaky", 0.9))
    objects = pl.DataFrame(rows, schema=["image_id", "label", "source", "confidence"], orient="row")
    return Study.from_frames(objects=objects, attributes=pl.DataFrame({"image_id": images, "gender": groups}))


def test_detectors_are_measured_where_they_are_asked_for():
    study = labelled_study()
    with pytest.raises(Undefined, match="nothing by a system"):
        leakage(study, attribute="gender", bootstrap=20, permutations=0)
    found = leakage(study, attribute="gender", outputs="labels", bootstrap=20, permutations=0)
    assert {m.system for m in found.measurements} == {"true", "leaky"}
    assert value(found, "on-outputs", "leaky") == 1
    assert value(found, "on-outputs", "true") < 0.65
    one = leakage(
        study, attribute="gender", outputs="labels", bootstrap=20, permutations=0, systems=["leaky"]
    )
    assert {m.system for m in one.measurements} == {"leaky"}


def test_workers_do_not_matter_for_detectors(tmp_path, command):
    from portrayal.study import write_study

    write_study(labelled_study(), tmp_path / "study")
    shown = [
        command("score", "leakage", tmp_path / "study", "--outputs", "labels", "--bootstrap", 20, "--permutations", 0, "--format",
                "csv", "--workers", workers)[1]
        for workers in (1, 2)
    ]  # fmt: skip
    assert shown[0] == shown[1]
    assert "leaky" in shown[0]


def test_a_label_that_is_the_group_is_no_object():
    with pytest.raises(Undefined, match="other than people"):
        leakage(
            labelled_study(("woman", "man")),
            attribute="gender",
            outputs="labels",
            bootstrap=20,
            permutations=0,
        )
