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


def in_another_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_the_same_seed_gives_the_same_study_in_every_process():
    code = "from portrayal.lab import make_study; print(make_study(scenes=50, seed=7).digest)"
    other = in_another_process(code)
    assert other == make_study(scenes=50, seed=7).digest
    assert other != make_study(scenes=50, seed=8).digest


def test_adding_a_captioner_changes_no_other():
    one = make_study(scenes=50, captioners=[Captioner("a")])
    two = make_study(scenes=50, captioners=[Captioner("b"), Captioner("a")])
    assert two.select_systems(["a"]).captions.equals(one.captions)
    assert two.references.equals(one.references)


def test_more_scenes_begin_with_the_same_ones():
    few, many = make_study(scenes=20), make_study(scenes=60)
    assert make_scenes(60)[:20] == make_scenes(20)
    assert many.references[:100].equals(few.references)
    assert many.select_systems(["cautious"]).captions[:20].equals(few.select_systems(["cautious"]).captions)


def test_the_tables_are_those_a_study_has():
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
    things = ObjectFinder(sorted(EXTRAS))

    def spoken(**dials):
        study = make_study(scenes=3000, captioners=[Captioner("c", **dials)])
        return study.captions.join(study.attributes, on="image_id")

    def check(told, test, planted=0.3):
        mine, others = (told.filter(pl.col("gender") == name) for name in (group, other))
        size = 4 * np.sqrt(0.25 / mine.height)
        assert np.mean(
            [test(*row) for row in mine.select("image_id", "caption").iter_rows()]
        ) == pytest.approx(planted, abs=size)
        assert not any(test(*row) for row in others.select("image_id", "caption").iter_rows())

    rates = {group: 0.3}
    told = spoken(wrong_group=rates, neutral=0)
    wrong = dict(told.select("image_id", "gender").iter_rows())
    check(told, lambda image, text: finder.groups(text) not in ((), (wrong[image],)))
    check(spoken(neutral=rates), lambda _, text: not finder.groups(text))
    check(spoken(hallucination=rates), lambda image, text: bool(set(things.labels(text)) - labels[image]))
    check(spoken(erasure=rates, neutral=0), lambda _, text: not finder.groups(text))
    words = set(demeaning_words())
    check(spoken(demeaning=rates), lambda _, text: bool(words & set(text.split())))


def test_a_faithful_captioner_says_nothing_that_is_not_there():
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
    shown = dict(study.attributes.select("image_id", "gender").iter_rows())
    objects = ObjectFinder(sorted(set(study.objects["label"])))
    naming = MentionFinder(load_lexicon("gender"))
    for image, caption in study.references.iter_rows():
        assert set(objects.labels(caption)) <= labels[image], caption
        assert naming.groups(caption) in ((), (shown[image],)), caption
    for image, caption in study.captions.select("image_id", "caption").iter_rows():
        assert set(objects.labels(caption)) <= labels[image], caption
        assert naming.groups(caption) == (shown[image],), caption


def test_every_label_can_be_found_in_what_is_said():
    study = make_study(scenes=3000, world=World(activities="all"), captioners=[])
    finder = ObjectFinder(sorted(set(study.objects["label"])))
    found = {label for caption in study.references["caption"] for label in finder.labels(caption)}
    assert found == set(study.objects["label"])


def test_full_amplification_says_the_stereotype_and_none_says_what_is_there():
    scenes = make_scenes(800)
    plain = Captioner("c", length=0, vocabulary=0).describe(scenes, 0)
    full = Captioner("c", length=0, vocabulary=0, amplification=1).describe(scenes, 0)
    for scene, before, after in zip(scenes, plain, full, strict=True):
        pair = ACTIVITIES[scene.activity]
        expected = pair.concepts[scene.person["gender"]] if pair.strength else scene.activity
        assert scene.activity in before.split()
        assert expected in after.split()


def test_a_dial_changes_only_the_captions_it_is_about():
    scenes = make_scenes(500)
    before = Captioner("c").describe(scenes, 0)
    after = Captioner("c", demeaning=0.2).describe(scenes, 0)
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    assert 60 <= len(changed) <= 140
    assert all(any(word in new for word in demeaning_words()) for _, new in changed)


def test_length_vocabulary_and_repetition_do_what_they_say():
    scenes = make_scenes(1500)

    def told(**dials):
        return Captioner("c", repetition=dials.pop("repetition", 0), **dials).describe(scenes, 0)

    words = [np.mean([len(text.split()) for text in told(length=level)]) for level in (0, 0.5, 1)]
    assert words[0] < words[1] - 3 < words[2] - 6
    kinds = [len({w for text in told(vocabulary=level) for w in text.split()}) for level in (0, 0.5, 1)]
    assert kinds[0] < kinds[1] < kinds[2]
    distinct = [len(set(told(repetition=level))) for level in (0, 0.5, 1)]
    assert distinct[0] > distinct[1] > distinct[2]


def test_annotators_name_what_their_dials_say():
    study = make_study(
        scenes=2000, annotators=Annotators(names_gender=0.6, mistakes=0.1), captioners=[Captioner("c")]
    )
    results = portrayal.metrics.error(study, attribute="gender", bootstrap=20, sources=["human"])
    found = {m.term: m.value for m in results.measurements if m.group is None}
    assert found["neutral"] == pytest.approx(0.4, abs=0.02)
    assert found["error"] == pytest.approx(0.1, abs=0.02)
    colours = ("red", "blue", "green", "yellow", "purple", "white")
    named = share_of(study.references, lambda text: any(colour in text.split() for colour in colours))
    assert named == pytest.approx(0.5, abs=0.06)
    bare = make_study(scenes=200, annotators=Annotators(bare=1), captioners=[]).references["caption"]
    assert all(text.rstrip(".").split()[-1] in ("picture", "photo", "image") for text in bare)


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


def test_rates_speak_of_groups_there_are():
    with pytest.raises(PortrayalError, match="Did you mean 'female'"):
        Captioner("c", erasure={"femal": 0.1})
    with pytest.raises(PortrayalError, match="must add up to 1"):
        World(shares={"female": 0.2, "male": 0.2})
    study = make_study(scenes=4000, world=World(shares={"female": 0.2, "young": 0.5}), captioners=[])
    assert study.group_counts("gender")["female"] / 4000 == pytest.approx(0.2, abs=0.02)
    assert study.group_counts("age")["young"] / 4000 == pytest.approx(0.5, abs=0.03)
    assert study.group_counts("skin")["dark"] / 4000 == pytest.approx(0.4, abs=0.03)


def test_nothing_said_in_passing_is_an_object_that_people_label():
    """Details, sights, places and moods name none of COCO's objects nor the lab's own, which would look made up."""
    words = tomllib.loads(resources.files("portrayal.lab").joinpath("data/wording.toml").read_text())
    synonyms = tomllib.loads(
        resources.files("portrayal").joinpath("lexicon/words/synonyms/objects.toml").read_text()
    )
    more = [
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
    own = [activity["label"] for activity in words["activities"].values() if "label" in activity]
    finder = ObjectFinder(sorted({*synonyms["synonyms"], *more, *own, *EXTRAS} - {"person"}))
    said = [phrase for part in ("people", "places") for phrases in words[part].values() for phrase in phrases]
    said += [phrase for part, phrases in words["sentences"].items() if part != "beside" for phrase in phrases]
    said += [verb for activity in words["activities"].values() for verb in activity["verbs"]]
    assert [(phrase, finder.labels(phrase)) for phrase in said if finder.labels(phrase)] == []


def test_a_detector_sees_what_people_label_and_is_not_equally_sure():
    study = make_study(scenes=300, seed=4, captioners=[])
    people = study.objects.filter(pl.col("source") == "human")
    seen = study.objects.filter(pl.col("source") == "detector")
    assert seen.select("image_id", "label").equals(people.select("image_id", "label"))
    assert people["confidence"].null_count() == people.height
    assert seen["confidence"].is_between(0, 1, closed="none").all()
    assert seen["confidence"].std() > 0.1
    # Turning a dial of what captioners say leaves it as it is.
    same = make_study(scenes=300, seed=4, captioners=[Captioner("c", length=1)]).objects
    assert same.equals(study.objects)
