"""CounterBias held against the truth: models of the lab whose data lean by a known amount, exact counterfactuals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.formulas import Bias, bias, placebo
from portrayal.counterfactual.inference import query_model
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import ModelOutputs, Prompts
from portrayal.lab.images import draw
from portrayal.lab.model_evaluation import held_out
from portrayal.lab.world import ACTIVITIES, BIASED_ATTRIBUTE, DRAWN_ACTIVITIES, World, counterfactual_scene
from portrayal.metrics.counterbias.means import Means
from portrayal.models.masked_vlm import load_masked
from portrayal.stats import resampler

LEVELS = ("0", "half", "full")
WAYS = {"exact": None, "pgd": Attack()}


class Exam:
    """Images of people of a world without data bias, each with the same scene with somebody else."""

    def __init__(self, scenes: int, world: World) -> None:
        self.pictures, self.instances = {}, []
        for scene in held_out(scenes, world, 77):
            if scene.androgynous:
                continue
            own, other = Path(scene.identifier), Path(f"{scene.identifier} other")
            self.pictures[own], self.pictures[other] = draw(scene, 64), draw(counterfactual_scene(scene), 64)
            self.instances.append(
                Instance(
                    scene.identifier, scene.person[BIASED_ATTRIBUTE], scene.activity, "activity", own, other
                )
            )
        self.group = np.array([0 if item.group == "male" else 1 for item in self.instances])

    def answers(self, model: str, attack: Attack | None, placebo: bool = False) -> ModelOutputs:
        prompts = Prompts({"male": "man", "female": "woman"}, {"activity": DRAWN_ACTIVITIES})
        return query_model(
            load_masked(model, "cpu", batch_size=128), self.instances, prompts, attack, self.pictures.__getitem__,
            placebo=placebo, batch=128,
        )  # fmt: skip

    def means(self, found: Bias, n_resamples: int = 20) -> Means:
        """Of b@v-l, in percent toward men."""
        names = tuple(sorted(item.image for item in self.instances))
        return Means(
            100 * found.signed(np.where(self.group == 0, 1.0, -1.0)).by_both,
            np.array([names.index(item.image) for item in self.instances]),
            np.array([DRAWN_ACTIVITIES.index(item.concept) for item in self.instances]),
            self.group,
            len(DRAWN_ACTIVITIES),
            resampler(names, 0, n_resamples),
        )


@pytest.fixture(scope="module")
def biases():
    """(way, level) -> the excess of mean |b@v-l| over its floor, and how far each concept leans."""
    evaluation, built = Exam(700, World(data_bias=0.0)), {}
    for level in LEVELS:
        for attack_name, attack in WAYS.items():
            outputs = evaluation.answers(f"lab-dual-{level}", attack)
            means = evaluation.means(bias(outputs.target, outputs.present))
            size, floor = means.mean_absolute()[0].value, means.noise_floors(0, 200)[0]
            built[attack_name, level] = (
                size - floor,
                np.array([item.value for item in means.concept_biases()], dtype=float),
            )
    return built


@pytest.mark.parametrize("attack_name", WAYS)
def test_the_excess_rises_with_what_was_planted(biases, attack_name):
    excess = [biases[attack_name, level][0] for level in LEVELS]
    assert excess[0] < 3
    assert excess[0] + 8 < excess[1]
    assert excess[1] + 8 < excess[2]


@pytest.mark.parametrize("level", ["half", "full"])
def test_the_attack_ranks_concepts_as_the_truth_does(biases, level):
    exact, attacked = biases["exact", level][1], biases["pgd", level][1]
    known = np.isfinite(exact) & np.isfinite(attacked)
    assert known.sum() == len(DRAWN_ACTIVITIES)
    assert np.corrcoef(exact, attacked)[0, 1] > 0.8


@pytest.mark.parametrize("attack_name", WAYS)
@pytest.mark.parametrize("level", ["half", "full"])
def test_signs_are_those_that_were_planted(biases, attack_name, level):
    planted = np.array(
        [
            0 if not ACTIVITIES[item].strength else 1 if ACTIVITIES[item].concepts["male"] == item else -1
            for item in DRAWN_ACTIVITIES
        ]
    )
    agreed = np.sign(biases[attack_name, level][1]) == planted
    assert agreed[planted != 0].mean() >= 0.8


@pytest.mark.parametrize("stream", ["dual", "single"])
@pytest.mark.parametrize("level", ["0", "clear"])
def test_where_there_is_no_bias_none_is_left_beside_the_placebo(stream, level):
    evaluation = Exam(
        300, World(data_bias=0.0, cue_strength=1.0) if level == "clear" else World(data_bias=0.0)
    )
    outputs = evaluation.answers(f"lab-{stream}-{level}", Attack(), placebo=True)
    real = evaluation.means(bias(outputs.target, outputs.present), 500)
    sham = evaluation.means(placebo(outputs.target, outputs.present), 500)
    assert real.mean_absolute_excess_over(sham)[0].at_least(0).low == 0
    left = [item for item in real.concept_biases_beyond(sham) if item.value is not None]
    assert len(left) >= 10
    beyond = [item for item in left if item.low is not None and item.low * item.high > 0]
    assert len(beyond) <= 1  # of eighteen, one in twenty by chance
