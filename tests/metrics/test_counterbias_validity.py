"""CounterBias held against the truth: models of the lab whose data lean by a known amount, exact counterfactuals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.formulas import Bias, bias, placebo
from portrayal.counterfactual.inference import ask
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Answers, Questions
from portrayal.lab.images import draw
from portrayal.lab.model_evaluation import held_out
from portrayal.lab.world import ACTIVITIES, DRAWN_ACTIVITIES, LEANING, World, other_scene
from portrayal.metrics.counterbias.means import Means
from portrayal.models.masked_vlm import load_masked
from portrayal.stats import resampler

LEVELS = ("0", "half", "full")
WAYS = {"exact": None, "pgd": Attack()}


class Exam:
    """Pictures of people of a world without data bias, each with the same scene with somebody else."""

    def __init__(self, scenes: int, world: World) -> None:
        self.pictures, self.instances = {}, []
        for scene in held_out(scenes, world, 77):
            if scene.androgynous:
                continue
            own, other = Path(scene.identifier), Path(f"{scene.identifier} other")
            self.pictures[own], self.pictures[other] = draw(scene, 64), draw(other_scene(scene), 64)
            self.instances.append(
                Instance(scene.identifier, scene.person[LEANING], scene.activity, "activity", own, other)
            )
        self.group = np.array([0 if one.group == "male" else 1 for one in self.instances])

    def answers(self, model: str, attack: Attack | None, placebo: bool = False) -> Answers:
        questions = Questions({"male": "man", "female": "woman"}, {"activity": DRAWN_ACTIVITIES})
        return ask(
            load_masked(model, "cpu", batch=128), self.instances, questions, attack, self.pictures.__getitem__,
            placebo=placebo, batch=128,
        )  # fmt: skip

    def means(self, found: Bias, n_resamples: int = 20) -> Means:
        """Of b@v-l, in percent toward men."""
        names = tuple(sorted(one.image for one in self.instances))
        return Means(
            100 * found.signed(np.where(self.group == 0, 1.0, -1.0)).by_both,
            np.array([names.index(one.image) for one in self.instances]),
            np.array([DRAWN_ACTIVITIES.index(one.concept) for one in self.instances]),
            self.group,
            len(DRAWN_ACTIVITIES),
            resampler(names, 0, n_resamples),
        )


@pytest.fixture(scope="module")
def found():
    """(way, level) -> the excess of mean |b@v-l| over its floor, and how far each concept leans."""
    exam, made = Exam(700, World(data_bias=0.0)), {}
    for level in LEVELS:
        for way, attack in WAYS.items():
            answers = exam.answers(f"lab-dual-{level}", attack)
            means = exam.means(bias(answers.target, answers.present))
            size, floor = means.sizes()[0].value, means.floors(0, 200)[0]
            made[way, level] = size - floor, np.array([one.value for one in means.leans()], dtype=float)
    return made


@pytest.mark.parametrize("way", WAYS)
def test_the_excess_rises_with_what_was_planted(found, way):
    excess = [found[way, level][0] for level in LEVELS]
    assert excess[0] < 3
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


@pytest.mark.parametrize("stream", ["dual", "single"])
@pytest.mark.parametrize("level", ["0", "clear"])
def test_where_there_is_no_bias_none_is_left_beside_the_placebo(stream, level):
    exam = Exam(300, World(data_bias=0.0, cue_strength=1.0) if level == "clear" else World(data_bias=0.0))
    answers = exam.answers(f"lab-{stream}-{level}", Attack(), placebo=True)
    real = exam.means(bias(answers.target, answers.present), 500)
    sham = exam.means(placebo(answers.target, answers.present), 500)
    assert real.sizes_beyond(sham)[0].at_least(0).low == 0
    left = [one for one in real.leans_beyond(sham) if one.value is not None]
    assert len(left) >= 10
    beyond = [one for one in left if one.low is not None and one.low * one.high > 0]
    assert len(beyond) <= 1  # of eighteen, one in twenty by chance
