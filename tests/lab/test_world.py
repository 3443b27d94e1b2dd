"""The world: activities follow the stated probabilities, and the closed-form truth agrees with simulation."""

from __future__ import annotations

import csv
from collections import Counter

import numpy as np
import pytest

from portrayal.errors import PortrayalError
from portrayal.lab import World, make_scenes
from portrayal.lab.truth import bayes_optimal_bias, optimal_bias
from portrayal.lab.world import (
    ACTIVITIES,
    ACTIVITY_PAIRS,
    ATTRIBUTES,
    DRAWN_ACTIVITIES,
    OCCUPATIONS,
    ActivityPair,
    concept_probabilities,
)

VL_BIAS = (
    "baking biking cleaning cooking crying driving exercising fishing hugging jumping kneeling lifting picking praying "
    "riding running sewing shouting skating smiling spying staring studying talking walking waving begging calling "
    "climbing coughing drinking eating falling hitting jogging kicking laughing painting pitching reading rowing "
    "serving shopping sitting sleeping speaking standing stretching sweeping throwing washing working"
).split()
JOBS = (
    "athlete chef doctor engineer farmer footballer judge mechanic nurse pilot police runner soldier".split()
)


def test_all_activities_and_occupations_of_vl_bias_are_there_once():
    assert len(VL_BIAS) == 52
    assert sorted(ACTIVITIES) == sorted(VL_BIAS)
    assert sum(len(pair.concepts) for pair in ACTIVITY_PAIRS) == 52
    assert sorted(OCCUPATIONS) == sorted(JOBS)
    assert len(DRAWN_ACTIVITIES) >= 16


def test_stereotypes_have_the_sign_that_raters_gave_them(shared):
    with (shared.parent / "golden" / "counterbias_stereotypes.csv").open() as file:
        rated = {row["activity"]: row["stereotype"] for row in csv.DictReader(file)}
    assert len(rated) == 19
    for activity, group in rated.items():
        assert ACTIVITIES[activity].concepts[group] == activity
        assert ACTIVITIES[activity].strength > 0


def test_the_activities_of_a_pair_balance_each_other():
    for bias in (0.0, 0.5, 1.0):
        table = concept_probabilities(ACTIVITY_PAIRS, bias)
        for group in ATTRIBUTES["gender"]:
            assert sum(table[group].values()) == pytest.approx(1)
            for pair in ACTIVITY_PAIRS:
                assert sum(table[group][concept] for concept in pair.concepts.values()) == pytest.approx(
                    1 / 26
                )


@pytest.mark.parametrize("bias", [0.0, 0.5, 1.0])
def test_activities_follow_the_stated_probabilities(bias):
    world = World(data_bias=bias)
    scenes = make_scenes(8000, 1, world)
    for group, table in concept_probabilities(world.activity_pairs, bias).items():
        counts = Counter(scene.activity for scene in scenes if scene.person["gender"] == group)
        for activity, probability in table.items():
            assert counts[activity] / counts.total() == pytest.approx(
                probability, abs=4 * np.sqrt(0.25 / counts.total())
            )


def test_without_data_bias_nothing_depends_on_gender():
    table = concept_probabilities(ACTIVITY_PAIRS, 0.0)
    assert table["female"] == pytest.approx(table["male"])
    scenes = make_scenes(20000, 3, World(data_bias=0.0))
    for get_values in (lambda s: s.extras, lambda s: (s.place,), lambda s: (s.occupation,)):
        counts = {
            group: Counter(
                concept for s in scenes if s.person["gender"] == group for concept in get_values(s)
            )
            for group in ATTRIBUTES["gender"]
        }
        for concept in counts["female"] | counts["male"]:
            shares = [counts[g][concept] / counts[g].total() for g in counts]
            assert shares[0] == pytest.approx(shares[1], abs=0.02)


def test_cues_come_in_the_stated_shares():
    scenes = make_scenes(8000)
    cues = Counter(scene.cue for scene in scenes)
    assert cues["full"] / 8000 == pytest.approx(0.4, abs=0.02)
    assert cues["ambiguous"] / 8000 == pytest.approx(0.4, abs=0.02)
    assert cues["absent"] / 8000 == pytest.approx(0.2, abs=0.02)
    assert np.mean([scene.androgynous for scene in scenes]) == pytest.approx(0.15, abs=0.015)
    assert {scene.cue for scene in make_scenes(500, 0, World(cue_strength=1))} == {"full"}
    assert "full" not in {scene.cue for scene in make_scenes(500, 0, World(cue_strength=0))}


def test_the_truth_of_a_world_of_six_pairs_by_hand():
    """Six pairs of strengths 1, 1, .6, .6, .3, 0 (mean .5833): .9 b s (.4 + .2 / 6), so 22.75 % at b = 1."""
    pairs = [
        ActivityPair({"female": f"f{n}", "male": f"m{n}"}, strength)
        for n, strength in enumerate((1, 1, 0.6, 0.6, 0.3, 0))
    ]
    cues = {"full": 0.4, "ambiguous": 0.4, "absent": 0.2}
    for bias, expected in ((0.0, 0.0), (0.5, 0.11375), (1.0, 0.2275)):
        bias_by_activity = bayes_optimal_bias(pairs, bias, cues)
        assert np.mean(np.abs(list(bias_by_activity.values()))) == pytest.approx(expected)
        assert all(bias_by_activity[f"f{n}"] == pytest.approx(-bias_by_activity[f"m{n}"]) for n in range(6))
    assert bayes_optimal_bias(pairs, 1.0, {"full": 1.0, "ambiguous": 0.0, "absent": 0.0})["f0"] == 0


def test_the_closed_form_truth_agrees_with_counted_scenes():
    """The optimal classifier knows the share of each activity given the image; here the shares are counted."""
    world = World(data_bias=1.0, several=0)
    scenes = make_scenes(120_000, 5, world)

    def visible_content(scene):
        if scene.cue == "full":
            return ("full", scene.activity)
        pair = tuple(ACTIVITIES[scene.activity].concepts.values())
        return ("ambiguous", *pair) if scene.cue == "ambiguous" else ("absent", scene.place)

    counts: dict = {group: {} for group in ATTRIBUTES["gender"]}
    for scene in scenes:
        counts[scene.person["gender"]].setdefault(visible_content(scene), Counter())[scene.activity] += 1

    def predicted_probability(group, scene):
        activity_counts = counts[group].get(visible_content(scene), Counter())
        return activity_counts[scene.activity] / max(activity_counts.total(), 1)

    gaps: dict = {}
    for scene in scenes:
        gap = predicted_probability("female", scene) - predicted_probability("male", scene)
        gaps.setdefault((scene.activity, scene.person["gender"]), []).append(gap)
    truth = optimal_bias(world)
    for activity in ("sweeping", "driving", "sewing", "reading"):
        mean_gap = np.mean([np.mean(gaps[activity, group]) for group in ATTRIBUTES["gender"]])
        assert mean_gap == pytest.approx(truth[activity], abs=0.02)


def test_a_scene_with_another_person_is_the_same_scene():
    scene = make_scenes(1)[0]
    other_group = "female" if scene.person["gender"] == "male" else "male"
    changed = scene.with_person(gender=other_group)
    assert changed.person == {**scene.person, "gender": other_group}
    assert changed.with_person(gender=scene.person["gender"]) == scene
    with pytest.raises(PortrayalError, match="Unknown group of 'gender'"):
        scene.with_person(gender="femal")
    with pytest.raises(PortrayalError, match="Unknown attribute"):
        scene.with_person(height="tall")
