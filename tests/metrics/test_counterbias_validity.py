"""CounterBias against the truth: lab models trained on data of known bias, and exact counterfactuals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.formulas import Bias, counterfactual_bias, placebo_bias
from portrayal.counterfactual.inference import query_model
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import ModelOutputs, Prompts
from portrayal.lab.images import draw
from portrayal.lab.model_evaluation import held_out
from portrayal.lab.world import ACTIVITIES, BIASED_ATTRIBUTE, DRAWN_ACTIVITIES, World, counterfactual_scene
from portrayal.metrics.counterbias.means import Means
from portrayal.models.masked_vlm import load_masked
from portrayal.stats import resampler

pytestmark = pytest.mark.training

LEVELS = ("0", "half", "full")
ATTACKS = {"exact": None, "pgd": Attack()}


class EvaluationSet:
    """Images of people of a world without data bias, each with its counterfactual."""

    def __init__(self, scenes: int, world: World) -> None:
        self.images, self.instances = {}, []
        for scene in held_out(scenes, world, 77):
            if scene.androgynous:
                continue
            image, counterfactual = Path(scene.identifier), Path(f"{scene.identifier} other")
            self.images[image], self.images[counterfactual] = (
                draw(scene, 64),
                draw(counterfactual_scene(scene), 64),
            )
            self.instances.append(
                Instance(
                    scene.identifier,
                    scene.person[BIASED_ATTRIBUTE],
                    scene.activity,
                    "activity",
                    image,
                    counterfactual,
                )
            )
        self.group = np.array([0 if instance.group == "male" else 1 for instance in self.instances])

    def query(self, model: str, attack: Attack | None, placebo: bool = False) -> ModelOutputs:
        prompts = Prompts({"male": "man", "female": "woman"}, {"activity": DRAWN_ACTIVITIES})
        return query_model(
            load_masked(model, "cpu", batch_size=128), self.instances, prompts, attack, self.images.__getitem__,
            placebo=placebo, batch_size=128,
        )  # fmt: skip

    def means(self, bias_values: Bias, n_resamples: int = 20) -> Means:
        """Means of b@v-l, in percent toward men."""
        names = tuple(sorted(instance.image for instance in self.instances))
        return Means(
            100 * bias_values.toward_first_group(np.where(self.group == 0, 1.0, -1.0)).vision_language,
            np.array([names.index(instance.image) for instance in self.instances]),
            np.array([DRAWN_ACTIVITIES.index(instance.concept) for instance in self.instances]),
            self.group,
            len(DRAWN_ACTIVITIES),
            resampler(names, 0, n_resamples),
        )


@pytest.fixture(scope="module")
def biases():
    """(attack, level) -> the excess of mean |b@v-l| over its noise floor, and the bias of each concept."""
    evaluation, measured = EvaluationSet(700, World(data_bias=0.0)), {}
    for level in LEVELS:
        for attack_name, attack in ATTACKS.items():
            outputs = evaluation.query(f"lab-dual-{level}", attack)
            means = evaluation.means(counterfactual_bias(outputs.concept_probs, outputs.group_probs))
            size, floor = means.mean_absolute()[0].value, means.noise_floors(0, 200)[0]
            measured[attack_name, level] = (
                size - floor,
                np.array([estimate.value for estimate in means.concept_biases()], dtype=float),
            )
    return measured


@pytest.mark.parametrize("attack_name", ATTACKS)
def test_the_excess_rises_with_the_planted_bias(biases, attack_name):
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


@pytest.mark.parametrize("attack_name", ATTACKS)
@pytest.mark.parametrize("level", ["half", "full"])
def test_signs_are_those_of_the_planted_bias(biases, attack_name, level):
    planted = np.array(
        [
            0
            if not ACTIVITIES[activity].strength
            else 1
            if ACTIVITIES[activity].concepts["male"] == activity
            else -1
            for activity in DRAWN_ACTIVITIES
        ]
    )
    agreed = np.sign(biases[attack_name, level][1]) == planted
    assert agreed[planted != 0].mean() >= 0.8


@pytest.mark.parametrize("stream", ["dual", "single"])
@pytest.mark.parametrize("level", ["0", "clear"])
def test_without_bias_none_remains_after_placebo_correction(stream, level):
    evaluation = EvaluationSet(
        300, World(data_bias=0.0, cue_strength=1.0) if level == "clear" else World(data_bias=0.0)
    )
    outputs = evaluation.query(f"lab-{stream}-{level}", Attack(), placebo=True)
    real = evaluation.means(counterfactual_bias(outputs.concept_probs, outputs.group_probs), 500)
    sham = evaluation.means(placebo_bias(outputs.concept_probs, outputs.group_probs), 500)
    assert real.mean_absolute_excess_over(sham)[0].at_least(0).low == 0
    corrected = [estimate for estimate in real.concept_biases_beyond(sham) if estimate.value is not None]
    assert len(corrected) >= 10
    significant = [
        estimate for estimate in corrected if estimate.low is not None and estimate.low * estimate.high > 0
    ]
    assert len(significant) <= 1  # of eighteen concepts; 5 % by chance
