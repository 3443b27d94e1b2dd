"""Evaluation of a model of the lab on held-out scenes, against the known truth of its world."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from portrayal.lab.annotators import Annotators
from portrayal.lab.images import draw
from portrayal.lab.language import group_noun
from portrayal.lab.sentences import GROUP_FORM
from portrayal.lab.world import (
    ACTIVITIES,
    ATTRIBUTES,
    BIASED_ATTRIBUTE,
    CUES,
    DRAWN_ACTIVITIES,
    Scene,
    World,
    concept_probabilities,
    make_scenes,
    place_probabilities,
)

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.model import TorchMaskedVLM

Array = NDArray[np.float64]
_SEED = 1_000_003
_ACTIVITY_PROMPT = "the {noun} is [MASK]"


def held_out(count: int, world: World, seed: int = _SEED) -> list[Scene]:
    """Return held-out scenes with one person, made with a seed that no training uses."""
    return [scene for scene in make_scenes(count, seed, world) if scene.people == 1]


def evaluate_lab_model(model: TorchMaskedVLM, world: World, count: int = 4000) -> dict[str, float]:
    """Evaluate a masked model on `count` scenes of a world, of which those with one person are used.

    Returns
    -------
    dict
        Shares and distances from 0 to 1. What no scene shows is left out.

        - `group`: accuracy of the group word at the mask, for people drawn with signs of gender; `group, no signs`:
          for people drawn without.
        - `activity, CUE`: accuracy among all activities for images with this cue; the prompt names the group.
        - `least activity, full`: the same for the activity with the lowest accuracy.
        - `prior, absent` and `prior, unclear`: where the image shows no activity, or one of two, the total variation
          distance of mean predictions from the world's probabilities given group and place.
        - `matched, own` and `matched, another's`: mean matching probability of an image with its own caption and with
          another image's.
    """
    import torch

    from portrayal.models.threads import limit_threads

    scenes = held_out(count, world)
    groups = tuple(ATTRIBUTES[BIASED_ATTRIBUTE])
    true_group = np.array([groups.index(scene.person[BIASED_ATTRIBUTE]) for scene in scenes])
    true_activity = np.array([DRAWN_ACTIVITIES.index(scene.activity) for scene in scenes])
    with torch.inference_mode(), limit_threads(model.network):
        embeddings = model.encode_images(
            model.preprocess([draw(scene, model.network.image_size) for scene in scenes])
        )
        group_prompt = GROUP_FORM.format(a="a ", noun="[MASK]", **{"is": "is"})
        nouns = [group_noun(group, "old") for group in groups]
        group_log_probs = model.word_log_probs(embeddings, group_prompt, nouns).cpu().numpy()
        activity_prompts = [_ACTIVITY_PROMPT.format(noun=nouns[index]) for index in true_group]
        activity_probs = (
            model.word_log_probs(embeddings, activity_prompts, DRAWN_ACTIVITIES).exp().cpu().numpy()
        )
        own_captions = [captions[0] for captions in Annotators(bare=0.0).describe(scenes, _SEED)]
        own_match = model.match_log_probs(embeddings, own_captions).exp().cpu().numpy()
        other_match = (
            model.match_log_probs(embeddings, own_captions[1:] + own_captions[:1]).exp().cpu().numpy()
        )
    has_signs = np.array([not scene.androgynous for scene in scenes])
    group_correct = group_log_probs.argmax(1) == true_group
    activity_correct = activity_probs.argmax(1) == true_activity
    evaluation = {
        name: _mean(group_correct[mask])
        for name, mask in (("group", has_signs), ("group, no signs", ~has_signs))
        if mask.any()
    }
    cues = np.array([scene.cue for scene in scenes])
    for cue in CUES:
        if (cues == cue).any():
            evaluation[f"activity, {cue}"] = _mean(activity_correct[cues == cue])
    full = cues == "full"
    evaluation["least activity, full"] = min(
        _mean(activity_correct[full & (true_activity == index)])
        for index in sorted(set(true_activity[full].tolist()))
    )
    for name, cue in (("prior, absent", "absent"), ("prior, unclear", "ambiguous")):
        if (cues == cue).any():
            evaluation[name] = _distance_from_prior(activity_probs, scenes, cues == cue, world)
    evaluation["matched, own"], evaluation["matched, another's"] = _mean(own_match), _mean(other_match)
    return {name: round(value, 4) for name, value in evaluation.items()}


def _distance_from_prior(
    activity_probs: Array, scenes: Sequence[Scene], mask: NDArray[np.bool_], world: World
) -> float:
    """Return the mean total variation distance of mean predictions from the world's probabilities, from 0 to 1.

    The probabilities are those given group and place and, where the image is unclear, the pair of activities. Each
    stratum is weighted by its number of scenes.
    """
    prior = concept_probabilities(world.activity_pairs, world.data_bias)
    places = {
        group: place_probabilities(world.activity_pairs, world.data_bias, group)
        for group in ATTRIBUTES[BIASED_ATTRIBUTE]
    }
    strata: dict[tuple[str, str, frozenset[str]], list[int]] = {}
    for index in np.flatnonzero(mask).tolist():
        scene = scenes[index]
        pair = ACTIVITIES[scene.activity].concepts.values() if scene.cue == "ambiguous" else DRAWN_ACTIVITIES
        strata.setdefault((scene.person[BIASED_ATTRIBUTE], scene.place, frozenset(pair)), []).append(index)
    total = 0.0
    for (group, place, possible), indices in strata.items():
        shares = np.array(
            [
                prior[group][activity] * places[group][activity].get(place, 0.0) * (activity in possible)
                for activity in DRAWN_ACTIVITIES
            ]
        )
        mean_probs = (activity_probs[indices] / activity_probs[indices].sum(1, keepdims=True)).mean(0)
        total += len(indices) * float(np.abs(mean_probs - shares / shares.sum()).sum() / 2)
    return total / int(mask.sum())


def _mean(values: Sequence[float] | NDArray[Any]) -> float:
    return float(np.mean(values))
