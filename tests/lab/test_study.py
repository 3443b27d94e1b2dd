"""The lab: the same seed gives the same study, and planted faults occur at their rates."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import resources

import numpy as np
import polars as pl
import pytest

import portrayal
from portrayal.errors import PortrayalError
from portrayal.lab import Annotators, Captioner, World, make_scenes, make_study
from portrayal.lab.dials import dials_of
from portrayal.lab.language import demeaning_words
from portrayal.lab.study import labels_of
from portrayal.lab.world import ACTIVITIES, EXTRAS
from portrayal.lexicon import MentionFinder, ObjectFinder, load_lexicon
from portrayal.study import tables

GROUPS = ("female", "male")


def run_in_another_process(code: str) -> str:
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return process.stdout.strip()


def test_the_same_seed_gives_the_same_study_in_every_process():
    code = "from portrayal.lab import make_study; print(make_study(scenes=50, seed=7).digest)"
    other = run_in_another_process(code)
    assert other == make_study(scenes=50, seed=7).digest
    assert other != make_study(scenes=50, seed=8).digest


def test_adding_a_captioner_changes_no_other():
    alone = make_study(scenes=50, captioners=[Captioner("a")])
    together = make_study(scenes=50, captioners=[Captioner("b"), Captioner("a")])
    assert together.select_systems(["a"]).captions.equals(alone.captions)
    assert together.references.equals(alone.references)


def test_a_larger_study_begins_with_the_same_scenes():
    few, many = make_study(scenes=20), make_study(scenes=60)
    assert make_scenes(60)[:20] == make_scenes(20)
    assert many.references[:100].equals(few.references)
    assert many.select_systems(["cautious"]).captions[:20].equals(few.select_systems(["cautious"]).captions)


def test_the_tables_have_the_columns_of_a_study():
    study = make_study(scenes=20)
    assert dict(study.captions.schema) == tables.CAPTIONS
    assert dict(study.references.schema) == tables.REFERENCES
    assert dict(study.objects.schema) == tables.OBJECTS
    assert study.attributes.columns == ["image_id", "gender", "age", "skin"]
    assert set(study.references.group_by("image_id").len()["len"]) == {5}


def share_of(captions: pl.DataFrame, test) -> float:
    return float(np.mean([test(caption) for caption in captions["caption"]]))


@pytest.mark.parametrize("group", GROUPS)
def test_rates_per_group_are_the_rates_planted(group):
    """Each dial at .3 for one group: that group's captions show it at that rate, the other group's not at all."""
    other = next(name for name in GROUPS if name != group)
    finder = MentionFinder(load_lexicon("gender"))
    labels = {scene.identifier: set(labels_of(scene)) for scene in make_scenes(3000)}
    extras_finder = ObjectFinder(sorted(EXTRAS))

    def captions_with(**dials):
        study = make_study(scenes=3000, captioners=[Captioner("c", **dials)])
        return study.captions.join(study.attributes, on="image_id")

    def check(captions, test, planted=0.3):
        of_group, of_others = (captions.filter(pl.col("gender") == name) for name in (group, other))
        size = 4 * np.sqrt(0.25 / of_group.height)
        assert np.mean(
            [test(*row) for row in of_group.select("image_id", "caption").iter_rows()]
        ) == pytest.approx(planted, abs=size)
        assert not any(test(*row) for row in of_others.select("image_id", "caption").iter_rows())

    rates = {group: 0.3}
    captions = captions_with(wrong_group=rates, neutral=0)
    true_groups = dict(captions.select("image_id", "gender").iter_rows())
    check(captions, lambda image, text: finder.groups(text) not in ((), (true_groups[image],)))
    check(captions_with(neutral=rates), lambda _, text: not finder.groups(text))
    check(
        captions_with(hallucination=rates),
        lambda image, text: bool(set(extras_finder.labels(text)) - labels[image]),
    )
    check(captions_with(erasure=rates, neutral=0), lambda _, text: not finder.groups(text))
    demeaning = set(demeaning_words())
    check(captions_with(demeaning=rates), lambda _, text: bool(demeaning & set(text.split())))


def test_a_faithful_captioner_names_only_what_is_in_the_scene():
    """Neither people nor a captioner with its dials at 0 name an object that is not labelled, or another group."""
    study = make_study(
        scenes=1500,
        world=World(activities="all"),
        annotators=Annotators(mistakes=0),
        captioners=[Captioner("c", neutral=0, vocabulary=1, length=1, repetition=0)],
    )
    labels = {image: set() for image in study.attributes["image_id"]}
    for image, label in study.objects.select("image_id", "label").iter_rows():
        labels[image].add(label)
    true_groups = dict(study.attributes.select("image_id", "gender").iter_rows())
    object_finder = ObjectFinder(sorted(set(study.objects["label"])))
    mention_finder = MentionFinder(load_lexicon("gender"))
    for image, caption in study.references.iter_rows():
        assert set(object_finder.labels(caption)) <= labels[image], caption
        assert mention_finder.groups(caption) in ((), (true_groups[image],)), caption
    for image, caption in study.captions.select("image_id", "caption").iter_rows():
        assert set(object_finder.labels(caption)) <= labels[image], caption
        assert mention_finder.groups(caption) == (true_groups[image],), caption


def test_every_label_is_mentioned_in_the_captions():
    study = make_study(scenes=3000, world=World(activities="all"), captioners=[])
    finder = ObjectFinder(sorted(set(study.objects["label"])))
    mentioned = {label for caption in study.references["caption"] for label in finder.labels(caption)}
    assert mentioned == set(study.objects["label"])


def test_full_amplification_names_the_stereotypical_activity():
    scenes = make_scenes(800)
    faithful = Captioner("c", length=0, vocabulary=0).describe(scenes, 0)
    amplified = Captioner("c", length=0, vocabulary=0, amplification=1).describe(scenes, 0)
    for scene, faithful_caption, amplified_caption in zip(scenes, faithful, amplified, strict=True):
        pair = ACTIVITIES[scene.activity]
        expected = pair.concepts[scene.person["gender"]] if pair.strength else scene.activity
        assert scene.activity in faithful_caption.split()
        assert expected in amplified_caption.split()


def test_a_dial_changes_only_the_captions_it_is_about():
    scenes = make_scenes(500)
    before = Captioner("c").describe(scenes, 0)
    after = Captioner("c", demeaning=0.2).describe(scenes, 0)
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert 60 <= len(changed) <= 140
    assert all(any(word in new for word in demeaning_words()) for _, new in changed)


def test_length_vocabulary_and_repetition_change_the_captions():
    scenes = make_scenes(1500)

    def describe(**dials):
        return Captioner("c", repetition=dials.pop("repetition", 0), **dials).describe(scenes, 0)

    mean_lengths = [np.mean([len(text.split()) for text in describe(length=level)]) for level in (0, 0.5, 1)]
    assert mean_lengths[0] < mean_lengths[1] - 3 < mean_lengths[2] - 6
    vocabulary_sizes = [
        len({w for text in describe(vocabulary=level) for w in text.split()}) for level in (0, 0.5, 1)
    ]
    assert vocabulary_sizes[0] < vocabulary_sizes[1] < vocabulary_sizes[2]
    distinct_captions = [len(set(describe(repetition=level))) for level in (0, 0.5, 1)]
    assert distinct_captions[0] > distinct_captions[1] > distinct_captions[2]


def test_annotators_follow_their_dials():
    study = make_study(
        scenes=2000, annotators=Annotators(names_gender=0.6, mistakes=0.1), captioners=[Captioner("c")]
    )
    results = portrayal.metrics.error(study, attribute="gender", bootstrap=20, sources=["human"])
    values = {m.term: m.value for m in results.measurements if m.group is None}
    assert values["neutral"] == pytest.approx(0.4, abs=0.02)
    assert values["error"] == pytest.approx(0.1, abs=0.02)
    colours = ("red", "blue", "green", "yellow", "purple", "white")
    named = share_of(study.references, lambda text: any(colour in text.split() for colour in colours))
    assert named == pytest.approx(0.5, abs=0.06)
    bare_captions = make_study(scenes=200, annotators=Annotators(bare=1), captioners=[]).references["caption"]
    assert all(text.rstrip(".").split()[-1] in ("picture", "photo", "image") for text in bare_captions)


@pytest.mark.parametrize("kind", [World, Annotators, Captioner])
def test_every_dial_is_documented_and_kept_in_its_range(kind):
    make = (lambda **dials: kind("c", **dials)) if kind is Captioner else kind
    for name, dial in dials_of(kind).items():
        assert dial.meaning
        assert dial.zero
        if name == "shares":
            continue
        make(**{name: dial.low})
        make(**{name: dial.high})
        for bad in (-0.1, 1.1, float("nan")):
            with pytest.raises(PortrayalError, match="goes from 0 to 1"):
                make(**{name: bad})


def test_rates_of_unknown_groups_are_refused():
    with pytest.raises(PortrayalError, match="Did you mean 'female'"):
        Captioner("c", erasure={"femal": 0.1})
    with pytest.raises(PortrayalError, match="must add up to 1"):
        World(shares={"female": 0.2, "male": 0.2})
    study = make_study(scenes=4000, world=World(shares={"female": 0.2, "young": 0.5}), captioners=[])
    assert study.group_counts("gender")["female"] / 4000 == pytest.approx(0.2, abs=0.02)
    assert study.group_counts("age")["young"] / 4000 == pytest.approx(0.5, abs=0.03)
    assert study.group_counts("skin")["dark"] / 4000 == pytest.approx(0.4, abs=0.03)


def test_detail_phrases_name_no_object_that_annotators_label():
    """Details, sights, places and moods name none of COCO's objects nor the lab's own labels."""
    wording = tomllib.loads(resources.files("portrayal.lab").joinpath("data/wording.toml").read_text())
    synonyms = tomllib.loads(
        resources.files("portrayal").joinpath("lexicon/words/synonyms/objects.toml").read_text()
    )
    coco_labels = [
        "bench",
        "bear",
        "bowl",
        "bus",
        "car",
        "clock",
        "fork",
        "kite",
        "microwave",
        "spoon",
        "stop sign",
        "toaster",
        "vase",
    ]
    lab_labels = [activity["label"] for activity in wording["activities"].values() if "label" in activity]
    finder = ObjectFinder(sorted({*synonyms["synonyms"], *coco_labels, *lab_labels, *EXTRAS} - {"person"}))
    phrases_without_objects = [
        phrase
        for section in ("people", "places")
        for phrases in wording[section].values()
        for phrase in phrases
    ]
    phrases_without_objects += [
        phrase
        for section, phrases in wording["sentences"].items()
        if section != "beside"
        for phrase in phrases
    ]
    phrases_without_objects += [
        verb for activity in wording["activities"].values() for verb in activity["verbs"]
    ]
    assert [
        (phrase, finder.labels(phrase)) for phrase in phrases_without_objects if finder.labels(phrase)
    ] == []


def test_a_detector_finds_the_labelled_objects_with_varying_confidence():
    study = make_study(scenes=300, seed=4, captioners=[])
    human_labels = study.objects.filter(pl.col("source") == "human")
    detections = study.objects.filter(pl.col("source") == "detector")
    assert detections.select("image_id", "label").equals(human_labels.select("image_id", "label"))
    assert human_labels["confidence"].null_count() == human_labels.height
    assert detections["confidence"].is_between(0, 1, closed="none").all()
    assert detections["confidence"].std() > 0.1
    # A captioner's dial does not change the detections.
    objects = make_study(scenes=300, seed=4, captioners=[Captioner("c", length=1)]).objects
    assert objects.equals(study.objects)
