"""The models of the lab that the package brings: made as their cards say, and as good as they say."""

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

LESSONS = [TrainingSpec(stream, world) for stream in STREAMS for world in WORLDS]
EVERY = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def card_of(lesson: TrainingSpec) -> dict:
    return json.loads((lab_model_folder(lesson.name) / "card.json").read_text(encoding="utf-8"))


def test_every_stream_and_world_is_there_and_half_is_the_usual_one():
    assert lab_models() == sorted(lesson.name for lesson in LESSONS)
    assert lab_model_folder("lab-dual") == lab_model_folder("lab-dual-half")


@EVERY
def test_the_card_says_what_the_script_would_do_today(lesson):
    card = card_of(lesson)
    assert card["name"] == lesson.name
    assert card["training_spec"] == asdict(lesson)
    assert card["world"] == json.loads(json.dumps(asdict(WORLDS[lesson.world])))
    assert card["recipe"] == asdict(recipe_for(lesson.stream, "cuda"))
    assert card["weights digest"] == content_digest(lab_model_folder(lesson.name) / "model.safetensors")
    model = load_masked(lesson.name, "cpu")
    untrained = lab_network(lesson.stream, len(lab_vocabulary()))
    assert card["weights"] == sum(part.numel() for part in untrained.parameters())
    assert {name: value.shape for name, value in model.network.state_dict().items()} == {
        name: value.shape for name, value in untrained.state_dict().items()
    }


@EVERY
def test_it_fitted_its_world(lesson):
    """The card's grades are good, and hold when a part of the scenes is asked about again."""
    stated = card_of(lesson)["held out"]
    assert stated["group"] > 0.95
    assert stated["activity, full"] > 0.95
    assert stated["least activity, full"] > 0.95
    again = evaluate_lab_model(load_masked(lesson.name, "cpu"), WORLDS[lesson.world], 1000)
    assert again["group"] == pytest.approx(stated["group"], abs=0.02)
    assert again["activity, full"] == pytest.approx(stated["activity, full"], abs=0.02)
    if lesson.world == "clear":
        assert "prior, absent" not in stated  # every image shows what is done
        return
    assert stated["prior, absent"] < 0.1
    assert stated["prior, unclear"] < 0.1
    assert again["prior, unclear"] < 0.15
    if lesson.world == "0":
        assert stated["activity, ambiguous"] == pytest.approx(
            0.5, abs=0.03
        )  # one of two, and nothing to go by


@pytest.mark.parametrize("stream", STREAMS)
def test_the_more_the_data_lean_the_more_does_the_model(stream):
    """Where the image is unclear, how much likelier an activity is of somebody of the group that it is said of than
    of somebody else in the same scene.
    """
    from portrayal.lab.images import draw
    from portrayal.lab.world import ACTIVITIES, BIASED_ATTRIBUTE, DRAWN_ACTIVITIES

    scenes = [scene for scene in held_out(1500, WORLDS["0"]) if scene.cue == "ambiguous"]
    leans = []
    for world in ("0", "half", "full"):
        model = load_masked(f"lab-{stream}-{world}", "cpu")
        output = {}
        for group, noun in (("female", "woman"), ("male", "man")):
            shown = [
                draw(scene.with_person(**{BIASED_ATTRIBUTE: group}), model.network.image_size)
                for scene in scenes
            ]
            embeddings = model.encode_images(model.preprocess(shown))
            output[group] = model.word_log_probs(embeddings, f"the {noun} is [MASK]", DRAWN_ACTIVITIES).exp()
        total = 0.0
        for row, scene in enumerate(scenes):
            for group, other in (("female", "male"), ("male", "female")):
                column = DRAWN_ACTIVITIES.index(ACTIVITIES[scene.activity].concepts[group])
                total += float(output[group][row, column] - output[other][row, column])
        leans.append(total / len(scenes))
    assert abs(leans[0]) < 0.05
    assert leans[0] + 0.05 < leans[1] < leans[2] - 0.05
