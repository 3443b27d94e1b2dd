"""The packaged models of the lab: their training and their evaluation agree with their cards."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from portrayal.files import content_digest
from portrayal.lab.model_training import (
    STREAMS,
    WORLDS,
    TrainingSpec,
    lab_network,
    lab_vocabulary,
    recipe_for,
)

pytest.importorskip("torch")
pytest.importorskip("transformers")

from portrayal.lab.model_evaluation import evaluate_lab_model, held_out
from portrayal.models.masked_vlm import load_masked
from portrayal.models.masked_vlm.loading import lab_model_folder, lab_models

SPECS = [TrainingSpec(stream, world) for stream in STREAMS for world in WORLDS]
EVERY_SPEC = pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)


def card_of(spec: TrainingSpec) -> dict:
    return json.loads((lab_model_folder(spec.name) / "card.json").read_text(encoding="utf-8"))


def test_every_stream_and_world_has_a_model_and_half_is_the_default():
    assert lab_models() == sorted(spec.name for spec in SPECS)
    assert lab_model_folder("lab-dual") == lab_model_folder("lab-dual-half")


@EVERY_SPEC
def test_the_card_agrees_with_the_current_training_script(spec):
    card = card_of(spec)
    assert card["name"] == spec.name
    assert card["training_spec"] == asdict(spec)
    assert card["world"] == json.loads(json.dumps(asdict(WORLDS[spec.world])))
    assert card["recipe"] == asdict(recipe_for(spec.stream, "cuda"))
    assert card["weights digest"] == content_digest(lab_model_folder(spec.name) / "model.safetensors")
    model = load_masked(spec.name, "cpu")
    untrained = lab_network(spec.stream, len(lab_vocabulary()))
    assert card["weights"] == sum(parameter.numel() for parameter in untrained.parameters())
    assert {name: value.shape for name, value in model.network.state_dict().items()} == {
        name: value.shape for name, value in untrained.state_dict().items()
    }


@EVERY_SPEC
def test_the_model_fits_its_world(spec):
    """The scores in the card are high, and an evaluation on fewer scenes gives similar scores."""
    documented = card_of(spec)["held out"]
    assert documented["group"] > 0.95
    assert documented["activity, full"] > 0.95
    assert documented["least activity, full"] > 0.95
    measured = evaluate_lab_model(load_masked(spec.name, "cpu"), WORLDS[spec.world], 1000)
    assert measured["group"] == pytest.approx(documented["group"], abs=0.02)
    assert measured["activity, full"] == pytest.approx(documented["activity, full"], abs=0.02)
    if spec.world == "clear":
        assert "prior, absent" not in documented  # every image shows what is done
        return
    assert documented["prior, absent"] < 0.1
    assert documented["prior, unclear"] < 0.1
    assert measured["prior, unclear"] < 0.15
    if spec.world == "0":
        assert documented["activity, ambiguous"] == pytest.approx(
            0.5, abs=0.03
        )  # one of two activities, without any evidence


@pytest.mark.parametrize("stream", STREAMS)
def test_a_model_is_more_biased_the_more_its_data_are(stream):
    """The mean difference of an activity's probability between its stereotypical group and the other group, on
    ambiguous images of the same scene.
    """
    from portrayal.lab.images import draw
    from portrayal.lab.world import ACTIVITIES, BIASED_ATTRIBUTE, DRAWN_ACTIVITIES

    scenes = [scene for scene in held_out(1500, WORLDS["0"]) if scene.cue == "ambiguous"]
    biases = []
    for world in ("0", "half", "full"):
        model = load_masked(f"lab-{stream}-{world}", "cpu")
        probabilities = {}
        for group, noun in (("female", "woman"), ("male", "man")):
            images = [
                draw(scene.with_person(**{BIASED_ATTRIBUTE: group}), model.network.image_size)
                for scene in scenes
            ]
            embeddings = model.encode_images(model.preprocess(images))
            probabilities[group] = model.word_log_probs(
                embeddings, f"the {noun} is [MASK]", DRAWN_ACTIVITIES
            ).exp()
        difference = 0.0
        for row, scene in enumerate(scenes):
            for group, other in (("female", "male"), ("male", "female")):
                column = DRAWN_ACTIVITIES.index(ACTIVITIES[scene.activity].concepts[group])
                difference += float(probabilities[group][row, column] - probabilities[other][row, column])
        biases.append(difference / len(scenes))
    assert abs(biases[0]) < 0.05
    assert biases[0] + 0.05 < biases[1] < biases[2] - 0.05
