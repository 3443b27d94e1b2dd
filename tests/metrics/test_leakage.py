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
from portrayal.metrics.leakage.label_noise import add_label_noise, micro_f1
from portrayal.metrics.shared.classifier.linear_classifier import accuracy_scores
from portrayal.metrics.shared.classifier.splits import common_folds
from portrayal.results import Results
from portrayal.study import Study

LABELS = ("cup", "kite", "tie")
TERMS = ("on-outputs", "on-truth", "difference", "predictability", "on-labels", "f1")
CALL = {"attribute": "gender", "permutations": 0, "bootstrap": 60}


def row(results: Results, term: str, system: str = "s", group: str | None = None):
    (measurement,) = [m for m in results.measurements if (m.term, m.system, m.group) == (term, system, group)]
    return measurement


def value(results: Results, term: str, system: str = "s", group: str | None = None):
    return row(results, term, system, group).value


def caption(labels) -> str:
    return f"a person with {' and '.join(f'a {label}' for label in labels) or 'nothing'}"


def study_of(outputs, truth, groups, **more) -> Study:
    """A study with output labels and true labels of each image."""
    images = [f"i{number:05d}" for number in range(len(groups))]
    pairs = [
        (image, label) for image, labels in zip(images, truth, strict=True) for label in (*labels, "person")
    ]
    return Study.from_frames(
        captions=pl.DataFrame(
            {"image_id": images, "system": "s", "caption": [caption(labels) for labels in outputs]}
        ),
        attributes=pl.DataFrame({"image_id": images, "gender": groups}),
        objects=pl.DataFrame(pairs, schema=["image_id", "label"], orient="row").with_columns(
            source=pl.lit("human")
        ),
        **more,
    )


def random_labels(size: int, chances: dict[str, dict[str, float]], seed: int = 0):
    """Groups, and random labels of each image with the probabilities of its group."""
    rng = np.random.default_rng(seed)
    groups = ["female" if yes else "male" for yes in rng.random(size) < 0.4]
    labels = [tuple(label for label in LABELS if rng.random() < chances[group][label]) for group in groups]
    return labels, groups


ASSOCIATED = {
    "female": {"cup": 0.5, "kite": 0.6, "tie": 0.1},
    "male": {"cup": 0.5, "kite": 0.3, "tie": 0.5},
}


@pytest.fixture(scope="module")
def lab() -> Study:
    return make_study(400, 3)


@pytest.fixture(scope="module")
def results(lab: Study) -> Results:
    return leakage(lab, attribute="gender", permutations=20, bootstrap=100)


# By hand


def test_correct_labels_leak_as_much_as_true_labels():
    truth, groups = random_labels(400, ASSOCIATED)
    results = leakage(study_of(truth, truth, groups), **CALL)
    assert value(results, "f1") == 1
    assert value(results, "difference") == value(results, "predictability") == 0
    assert value(results, "on-outputs") == value(results, "on-truth") == value(results, "on-labels") > 0.6


def test_accuracy_is_the_mean_over_groups():
    # 60 of 80 men and 4 of 40 women wear a tie, the only object: a tie predicts a man, none a woman. Men: 60 /
    # 80, women: 36 / 40, their mean .825; chance is .5 although two in three are men.
    truth = [("tie",)] * 60 + [()] * 20 + [("tie",)] * 4 + [()] * 36
    groups = ["male"] * 80 + ["female"] * 40
    results = leakage(study_of(truth, truth, groups), **{**CALL, "permutations": 40})
    assert value(results, "on-outputs", group="male") == pytest.approx(60 / 80)
    assert value(results, "on-outputs", group="female") == pytest.approx(36 / 40)
    assert value(results, "on-outputs") == pytest.approx(0.825)
    assert row(results, "on-outputs").ideal == pytest.approx(0.5, abs=0.03)
    assert row(results, "on-outputs").p == pytest.approx(1 / 41)


def test_predictability_is_the_relative_difference(results, lab):
    for system in lab.systems:
        on_outputs, on_truth = value(results, "on-outputs", system), value(results, "on-truth", system)
        assert value(results, "difference", system) == pytest.approx(on_outputs - on_truth)
        assert value(results, "predictability", system) == pytest.approx(
            (on_outputs - on_truth) / (on_outputs + on_truth)
        )


def test_labels_independent_of_the_group_leak_nothing():
    truth, groups = random_labels(1000, ASSOCIATED)
    outputs, _ = random_labels(
        1000, {group: {"cup": 0.5, "kite": 0.4, "tie": 0.3} for group in ASSOCIATED}, seed=1
    )
    results = leakage(study_of(outputs, truth, groups), **{**CALL, "permutations": 40})
    assert value(results, "on-outputs") == pytest.approx(0.5, abs=0.04)
    assert row(results, "on-outputs").p > 0.05
    assert value(results, "difference") <= 0.03
    flipped = leakage(study_of(outputs, truth, groups), **CALL, mistakes="flip")
    assert value(flipped, "difference") <= 0.03


def test_an_association_made_by_the_system_counts_as_leakage():
    truth, groups = random_labels(600, dict.fromkeys(ASSOCIATED, ASSOCIATED["male"]))
    outputs = [
        (*(o for o in labels if o != "tie"), *(("tie",) if g == "male" else ()))
        for labels, g in zip(truth, groups, strict=True)
    ]
    results = leakage(study_of(outputs, truth, groups), **CALL)
    assert value(results, "on-labels") == pytest.approx(0.5, abs=0.06)
    assert value(results, "on-outputs") == 1
    assert value(results, "difference") > 0.4
    assert row(results, "difference").p < 0.001


def test_random_errors_are_no_leakage():
    truth, groups = random_labels(1500, ASSOCIATED)
    rng = np.random.default_rng(5)
    outputs = [tuple(o for o in labels if rng.random() < 0.6) for labels in truth]
    results = leakage(study_of(outputs, truth, groups), **CALL)
    assert value(results, "on-outputs") < value(results, "on-labels") - 0.03
    assert value(results, "difference") == pytest.approx(0, abs=0.02)


def test_several_captions_count_by_their_share():
    truth, groups = random_labels(60, ASSOCIATED)
    study = study_of(truth, truth, groups)
    silent = study.captions.with_columns(sample=pl.lit(1), caption=pl.lit("a person"))
    both = Study(
        captions=pl.concat([study.captions, silent.cast(study.captions.schema)]),
        attributes=study.attributes,
        objects=study.objects,
    )
    # Half of the true labels are named: 2 x 1/2 / (1/2 + 1).
    results = leakage(both, **CALL)
    assert value(results, "f1") == pytest.approx(2 / 3)
    assert value(results, "difference") == 0
    detail = json.loads(results.evidence_of(row(results, "on-outputs"))["detail"][0])
    assert detail["outputs"] == [f"{label} 50%" for label in detail["true"]]


# Label noise


matrices = st.tuples(st.integers(2, 30), st.integers(1, 6), st.integers(0, 10_000))


@settings(max_examples=60, deadline=None)
@given(matrices, st.sampled_from(["label", "overall"]))
def test_label_noise_keeps_precision_and_recall(size, method):
    images, labels, seed = size
    rng = np.random.default_rng(seed)
    truth = (rng.random((images, labels)) < 0.4).astype(float)
    outputs = np.where(rng.random(truth.shape) < 0.6, truth, rng.integers(0, 3, truth.shape) / 2)
    noisy = add_label_noise(truth, outputs, method, rng)
    axis = 0 if method == "label" else None
    assert np.sum(noisy * truth, axis=axis) == pytest.approx(np.sum(outputs * truth, axis=axis))
    assert np.sum(noisy, axis=axis) == pytest.approx(np.sum(outputs, axis=axis))
    assert micro_f1(noisy, truth) == pytest.approx(micro_f1(outputs, truth))


def test_flipped_labels_reach_f1():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 20)) < 0.1).astype(float)
    outputs = np.where(rng.random(truth.shape) < 0.7, truth, 0.0)
    noisy = add_label_noise(truth, outputs, "flip", rng)
    assert set(np.unique(noisy)) == {0.0, 1.0}
    assert f1_score(truth, noisy, average="micro") == pytest.approx(
        f1_score(truth, outputs, average="micro"), abs=2e-3
    )
    assert (add_label_noise(truth, truth, "flip", rng) == truth).all()


def test_a_tied_prediction_counts_in_part():
    proba = np.array([[0.5, 0.5], [0.9, 0.1], [0.2, 0.8]])
    assert accuracy_scores(proba, np.array([1, 0, 0])).tolist() == [0.5, 1.0, 0.0]


# Against a plain implementation


def plain(images, features, groups, seed: int) -> float:
    """Accuracy by scikit-learn, one row per image, on the same folds."""
    fold = common_folds(images, 10, seed)
    hits_by_group: dict[str, list[bool]] = {}
    for k in range(10):
        train, test = fold != k, fold == k
        common = features[train].sum(axis=0) >= 2
        model = LogisticRegression(C=0.1, tol=1e-8, max_iter=10_000, class_weight="balanced")
        model.fit(features[train][:, common], groups[train])
        predicted = model.predict(features[test][:, common])
        for group, prediction in zip(groups[test], predicted, strict=True):
            hits_by_group.setdefault(group, []).append(group == prediction)
    return float(np.mean([np.mean(group_hits) for group_hits in hits_by_group.values()]))


def test_it_agrees_with_a_plain_implementation():
    rng = np.random.default_rng(2)
    truth, groups = random_labels(500, ASSOCIATED)
    outputs = [
        tuple(o for o in LABELS if (o in image_labels) == (rng.random() < 0.8)) for image_labels in truth
    ]
    results = leakage(study_of(outputs, truth, groups), **CALL, seed=3, repeats=2)
    images = [f"i{number:05d}" for number in range(500)]
    matrix_of = {
        name: np.array([[float(o in image_labels) for o in LABELS] for image_labels in labels])
        for name, labels in (("outputs", outputs), ("true", truth))
    }
    names = np.array(groups)
    for term, name in (("on-outputs", "outputs"), ("on-labels", "true")):
        by_hand = [plain(images, matrix_of[name], names, seed) for seed in (6, 7)]
        assert value(results, term) == pytest.approx(np.mean(by_hand), abs=1e-9)
        assert row(results, term).std_seed == pytest.approx(np.std(by_hand, ddof=1), abs=1e-9)
    noisy = [
        plain(
            images,
            add_label_noise(
                matrix_of["true"], matrix_of["outputs"], "label", np.random.default_rng([seed, 7])
            ),
            names,
            seed,
        )
        for seed in (6, 7)
    ]
    assert value(results, "on-truth") == pytest.approx(np.mean(noisy), abs=1e-9)
    assert value(results, "f1") == pytest.approx(
        f1_score(matrix_of["true"], matrix_of["outputs"], average="micro")
    )


# Rows


def test_every_term_has_its_rows(results, lab):
    for system in (*lab.systems, "human"):
        for term in TERMS:
            for group in (None, *lab.groups("gender")):
                if term not in ("difference", "predictability") or group is None:
                    assert row(results, term, system, group).value is not None
    assert {m.unit for m in results.measurements} == {"share"}
    for m in results.measurements:
        assert m.low is not None
        assert (m.std_seed is None) == (m.term == "f1")
        tested = m.group is None and m.term in ("on-outputs", "difference", "predictability")
        assert (m.p is not None) == tested


def test_evidence_adds_up(results, lab):
    system = lab.systems[1]
    evidence = results.evidence_of(row(results, "on-outputs", system))
    assert evidence.height == row(results, "on-outputs", system).n
    accuracy_by_group: dict[str, list[float]] = {}
    for caption, detail in evidence.select("caption", "detail").iter_rows():
        detail_of = json.loads(detail)
        assert caption
        assert set(detail_of) == {"labelled", "outputs", "true", "predicted", "confidence", "accuracy"}
        accuracy_by_group.setdefault(detail_of["labelled"], []).append(detail_of["accuracy"])
    by_hand = np.mean([np.mean(group_accuracy) for group_accuracy in accuracy_by_group.values()])
    assert by_hand == pytest.approx(value(results, "on-outputs", system), abs=1e-3)
    detail_of = json.loads(results.evidence_of(row(results, "difference", system))["detail"][0])
    assert {"outputs", "true", "noisy", "predicted", "predicted (noisy)", "confidence (noisy)"} <= set(
        detail_of
    )


def test_numbers_depend_on_the_seed(lab):
    first, repeated, other_seed = (
        leakage(lab, attribute="gender", permutations=5, bootstrap=20, systems=["faithful"], seed=seed)
        for seed in (4, 4, 5)
    )
    assert first.measurements == repeated.measurements
    assert value(first, "on-truth", "faithful") != value(other_seed, "on-truth", "faithful")
    assert row(first, "on-truth", "faithful").id == row(other_seed, "on-truth", "faithful").id


def test_without_permutations_there_is_no_ideal(lab):
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


def test_labels_of_models_are_separate_systems(lab):
    results = leakage(lab, **CALL, outputs="labels", confidence=0)
    assert {m.system for m in results.measurements} == {"detector"}
    assert value(results, "f1", "detector") == 1  # the lab's detector misses nothing
    assert value(results, "difference", "detector") == 0
    at_half = leakage(lab, **CALL, outputs="labels")
    assert row(at_half, "f1", "detector").settings["confidence"] == 0.5
    assert value(at_half, "f1", "detector") < 0.8
    without_captions = Study(attributes=lab.attributes, objects=lab.objects)
    assert leakage(without_captions, **CALL, outputs="labels").measurements == at_half.measurements


# What cannot be measured


def test_human_and_system_labels_are_required(lab):
    model_labels = lab.objects.filter(pl.col("source") != "human")
    with pytest.raises(Undefined, match="objects labelled by humans"):
        leakage(Study(captions=lab.captions, attributes=lab.attributes, objects=model_labels), **CALL)
    human_labels = lab.objects.filter(pl.col("source") == "human")
    with pytest.raises(Undefined, match="nothing by a system"):
        leakage(Study(attributes=lab.attributes, objects=human_labels), **CALL)


def test_one_group_is_refused():
    truth, _ = random_labels(50, ASSOCIATED)
    with pytest.raises(Undefined, match="among several"):
        leakage(study_of(truth, truth, ["male"] * 50), **CALL)


def test_small_groups_have_a_reason():
    truth, groups = random_labels(100, ASSOCIATED)
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
    truth, groups = random_labels(60, ASSOCIATED)
    results = leakage(study_of([()] * 60, truth, groups), **CALL)
    assert {row(results, term).reason for term in TERMS} == {"none of the labels is named"}


def test_images_without_labelled_objects_have_a_reason():
    truth, groups = random_labels(60, ASSOCIATED)
    study = study_of(truth, [()] * 60, groups)
    elsewhere = pl.DataFrame({"image_id": ["elsewhere"], "label": ["tie"], "source": ["human"]})
    other_objects = Study.from_frames(objects=elsewhere).objects
    study = Study(
        captions=study.captions,
        attributes=study.attributes,
        objects=pl.concat([study.objects, other_objects]),
    )
    results = leakage(
        Study(captions=study.captions, attributes=study.attributes, objects=study.objects), **CALL
    )
    assert row(results, "f1").reason == "humans labelled no object in these images"


def test_labels_that_are_all_wrong_leak_but_compare_with_nothing():
    groups = ["female", "male"] * 40
    outputs = [("kite",) if group == "male" else ("cup",) for group in groups]
    results = leakage(study_of(outputs, [("tie",), ()] * 40, groups), **CALL)
    # "kite" and "cup" are no human labels here, so nothing is named.
    assert row(results, "on-outputs").reason == "none of the labels is named"
    truth = [("kite",) if group == "female" else ("cup",) for group in groups]
    results = leakage(study_of(outputs, truth, groups), **CALL)
    assert value(results, "on-outputs") == 1
    assert value(results, "f1") == 0
    for term in ("on-truth", "difference", "predictability"):
        assert "F1 is 0" in row(results, term).reason


def test_wrong_options_are_refused(lab, tmp_path):
    with pytest.raises(PortrayalError, match="'C' must be 1000 or less"):
        leakage(lab, **CALL, C=1e4)
    with pytest.raises(PortrayalError, match="Did you mean 'label'"):
        leakage(lab, **CALL, mistakes="labels")
    with pytest.raises(PortrayalError, match="'synonyms' is for objects found in captions"):
        leakage(lab, **CALL, outputs="labels", synonyms=str(tmp_path / "words.csv"))


# The lab


def measured(term: str, n_studies: int = 4, world: World | None = None, **dials) -> float:
    studies = [
        make_study(600, seed, world=world, captioners=[Captioner("s", **dials)]) for seed in range(n_studies)
    ]
    return float(np.mean([value(leakage(study, **CALL, sources=["s"]), term) for study in studies]))


def test_it_follows_amplification():
    values = [measured("difference", amplification=level) for level in (0.0, 0.2, 0.5, 1.0)]
    assert values == sorted(values)
    assert values[0] == pytest.approx(0, abs=0.015)
    assert values[-1] > 0.2


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
def test_it_ignores_dials_unrelated_to_the_group(dials):
    assert measured("difference", **dials) == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_it_ignores_associations_in_the_world(bias):
    assert measured("difference", world=World(data_bias=bias)) == pytest.approx(0, abs=0.02)


def labelled_study(labels=("bench", "kite")):
    """Two detectors and no captions: one gives the true labels, the other one label for each group."""
    rng = np.random.default_rng(0)
    images = [f"i{number:03}" for number in range(200)]
    groups = ["female", "male"] * 100
    rows = []
    for image, group in zip(images, groups, strict=True):
        true_label = labels[rng.random() < 0.5]
        rows += [(image, true_label, "human", None), (image, true_label, "true", 0.9)]
        rows.append((image, labels[group == "male"], "leaky", 0.9))
    objects = pl.DataFrame(rows, schema=["image_id", "label", "source", "confidence"], orient="row")
    return Study.from_frames(objects=objects, attributes=pl.DataFrame({"image_id": images, "gender": groups}))


def test_detectors_are_measured_on_request():
    study = labelled_study()
    with pytest.raises(Undefined, match="nothing by a system"):
        leakage(study, attribute="gender", bootstrap=20, permutations=0)
    results = leakage(study, attribute="gender", outputs="labels", bootstrap=20, permutations=0)
    assert {m.system for m in results.measurements} == {"true", "leaky"}
    assert value(results, "on-outputs", "leaky") == 1
    assert value(results, "on-outputs", "true") < 0.65
    leaky = leakage(
        study, attribute="gender", outputs="labels", bootstrap=20, permutations=0, systems=["leaky"]
    )
    assert {m.system for m in leaky.measurements} == {"leaky"}


def test_workers_do_not_matter_for_detectors(tmp_path, command):
    from portrayal.study import write_study

    write_study(labelled_study(), tmp_path / "study")
    outputs = [
        command("score", "leakage", tmp_path / "study", "--outputs", "labels", "--bootstrap", 20, "--permutations", 0,
                "--format", "csv", "--workers", workers)[1]
        for workers in (1, 2)
    ]  # fmt: skip
    assert outputs[0] == outputs[1]
    assert "leaky" in outputs[0]


def test_a_label_that_is_the_group_is_no_object():
    with pytest.raises(Undefined, match="other than people"):
        leakage(
            labelled_study(("woman", "man")),
            attribute="gender",
            outputs="labels",
            bootstrap=20,
            permutations=0,
        )
