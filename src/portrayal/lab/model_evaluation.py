"""How well a model of the lab learnt its world: on scenes it has not seen, against what the world is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from portrayal.lab.annotators import Annotators
from portrayal.lab.images import draw
from portrayal.lab.language import named
from portrayal.lab.sentences import WHO
from portrayal.lab.world import (
    ACTIVITIES,
    ATTRIBUTES,
    CUES,
    DRAWN_ACTIVITIES,
    LEANING,
    Scene,
    World,
    chances,
    make_scenes,
    place_chances,
)

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.model import MaskedModel

Array = NDArray[np.float64]
_SEED = 1_000_003
_ASK = "the {noun} is [MASK]"


def held_out(count: int, world: World, seed: int = _SEED) -> list[Scene]:
    """Scenes with one person; no training has seen them."""
    return [scene for scene in make_scenes(count, seed, world) if scene.people == 1]


def grade(model: MaskedModel, world: World, count: int = 4000) -> dict[str, float]:
    """Shares and distances from 0 to 1.

    `group`: the right word among the groups' at the prompt, where people are drawn with signs of gender; `group,
    no signs` where they are not. `activity, full` and so on: the right one among all activities, the text naming the
    group. `prior, absent` and `prior, unclear`: where the picture tells no activity, or one of two, how far guesses are
    from the world's shares given group and place. `least activity, full`: that of the activity known least well. What
    no scene shows is left out.
    """
    import torch

    from portrayal.models.threads import fitting_threads

    scenes = held_out(count, world)
    groups = tuple(ATTRIBUTES[LEANING])
    truth = np.array([groups.index(scene.person[LEANING]) for scene in scenes])
    does = np.array([DRAWN_ACTIVITIES.index(scene.activity) for scene in scenes])
    with torch.inference_mode(), fitting_threads(model.network):
        looked = model.encode(model.pixels([draw(scene, model.network.side) for scene in scenes]))
        asked = WHO.format(a="a ", noun="[MASK]", **{"is": "is"})
        nouns = [named(group, "old") for group in groups]
        who = model.word_log_probs(looked, asked, nouns).cpu().numpy()
        texts = [_ASK.format(noun=nouns[number]) for number in truth]
        said = model.word_log_probs(looked, texts, DRAWN_ACTIVITIES).exp().cpu().numpy()
        own = [captions[0] for captions in Annotators(bare=0.0).describe(scenes, _SEED)]
        matched = model.match_log_probs(looked, own).exp().cpu().numpy()
        other = model.match_log_probs(looked, own[1:] + own[:1]).exp().cpu().numpy()
    signs = np.array([not scene.androgynous for scene in scenes])
    right = who.argmax(1) == truth
    knows = said.argmax(1) == does
    grades = {
        name: _mean(right[some])
        for name, some in (("group", signs), ("group, no signs", ~signs))
        if some.any()
    }
    cues = np.array([scene.cue for scene in scenes])
    for cue in CUES:
        if (cues == cue).any():
            grades[f"activity, {cue}"] = _mean(knows[cues == cue])
    full = cues == "full"
    grades["least activity, full"] = min(
        _mean(knows[full & (does == number)]) for number in sorted(set(does[full].tolist()))
    )
    for name, cue in (("prior, absent", "absent"), ("prior, unclear", "ambiguous")):
        if (cues == cue).any():
            grades[name] = _from_prior(said, scenes, cues == cue, world)
    grades["matched, own"], grades["matched, another's"] = _mean(matched), _mean(other)
    return {name: round(value, 4) for name, value in grades.items()}


def _from_prior(said: Array, scenes: Sequence[Scene], where: NDArray[np.bool_], world: World) -> float:
    """How far mean guesses are from the world's shares, given what is left to go by: the group, the place, and
    where the picture is unclear the pair. Half the sum of differences, from 0 to 1, each by how often it occurs.
    """
    prior = chances(world.activity_pairs, world.data_bias)
    places = {
        group: place_chances(world.activity_pairs, world.data_bias, group) for group in ATTRIBUTES[LEANING]
    }
    rows: dict[tuple[str, str, frozenset[str]], list[int]] = {}
    for number in np.flatnonzero(where).tolist():
        scene = scenes[number]
        pair = ACTIVITIES[scene.activity].of.values() if scene.cue == "ambiguous" else DRAWN_ACTIVITIES
        rows.setdefault((scene.person[LEANING], scene.place, frozenset(pair)), []).append(number)
    total = 0.0
    for (group, place, possible), some in rows.items():
        shares = np.array(
            [
                prior[group][activity] * places[group][activity].get(place, 0.0) * (activity in possible)
                for activity in DRAWN_ACTIVITIES
            ]
        )
        guess = (said[some] / said[some].sum(1, keepdims=True)).mean(0)
        total += len(some) * float(np.abs(guess - shares / shares.sum()).sum() / 2)
    return total / int(where.sum())


def _mean(values: Sequence[float] | NDArray[Any]) -> float:
    return float(np.mean(values))
