"""CounterBias held against the truth: models of the lab whose data lean by a known amount, exact counterfactuals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.formulas import bias
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.probe import ask
from portrayal.counterfactual.questions import Questions
from portrayal.lab.grades import held_out
from portrayal.lab.pictures import draw
from portrayal.lab.world import ACTIVITIES, DRAWN_ACTIVITIES, LEANING, World, other_scene
from portrayal.metrics.counter.means import Means
from portrayal.models.masked import load_masked
from portrayal.stats import resampler

LEVELS = ("0", "half", "full")
WAYS = {"exact": None, "pgd": Attack()}


@pytest.fixture(scope="module")
def found():
    """(way, level) -> the excess of mean |b@v-l| over its floor, and how far each concept leans."""
    scenes = [scene for scene in held_out(700, World(data_bias=0.0), 77) if not scene.androgynous]
    pictures, instances = {}, []
    for scene in scenes:
        own, other = Path(scene.identifier), Path(f"{scene.identifier} other")
        pictures[own], pictures[other] = draw(scene, 64), draw(other_scene(scene), 64)
        instances.append(
            Instance(scene.identifier, scene.person[LEANING], scene.activity, "activity", own, other)
        )
    names = tuple(sorted(one.image for one in instances))
    image = np.array([names.index(one.image) for one in instances])
    concept = np.array([DRAWN_ACTIVITIES.index(one.concept) for one in instances])
    group = np.array([0 if one.group == "male" else 1 for one in instances])
    questions = Questions({"male": "man", "female": "woman"}, {"activity": DRAWN_ACTIVITIES})
    made = {}
    for level in LEVELS:
        model = load_masked(f"lab-dual-{level}", "cpu", batch=128)
        for way, attack in WAYS.items():
            answers = ask(model, instances, questions, attack, pictures.__getitem__, placebo=False, batch=128)
            values = bias(answers.target, answers.present).signed(np.where(group == 0, 1.0, -1.0)).by_both
            means = Means(100 * values, image, concept, group, len(DRAWN_ACTIVITIES), resampler(names, 0, 20))
            size, floor = means.sizes()[0].value, means.floors(0, 200)[0]
            made[way, level] = size - floor, np.array([one.value for one in means.leans()], dtype=float)
    return made


@pytest.mark.parametrize("way", WAYS)
def test_the_excess_rises_with_what_was_planted(found, way):
    excess = [found[way, level][0] for level in LEVELS]
    assert excess[0] < 5
    assert excess[0] + 8 < excess[1]
    assert excess[1] + 8 < excess[2]


@pytest.mark.parametrize("level", ["half", "full"])
def test_the_attack_ranks_concepts_as_the_truth_does(found, level):
    exact, attacked = found["exact", level][1], found["pgd", level][1]
    known = np.isfinite(exact) & np.isfinite(attacked)
    assert known.sum() == len(DRAWN_ACTIVITIES)
    assert np.corrcoef(exact, attacked)[0, 1] > 0.8


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("level", ["half", "full"])
def test_signs_are_those_that_were_planted(found, way, level):
    planted = np.array(
        [
            0 if not ACTIVITIES[one].strength else 1 if ACTIVITIES[one].of["male"] == one else -1
            for one in DRAWN_ACTIVITIES
        ]
    )
    agreed = np.sign(found[way, level][1]) == planted
    assert agreed[planted != 0].mean() >= 0.8
