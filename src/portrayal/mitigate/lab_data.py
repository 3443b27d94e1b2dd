"""The lab's world as a remedy needs it: what to learn from, and what to be examined on, the truth beside it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from portrayal.counterfactual.manifest import Instance, Manifest
from portrayal.counterfactual.prompts import Questions
from portrayal.errors import PortrayalError
from portrayal.lab.annotators import Annotators
from portrayal.lab.images import draw
from portrayal.lab.model_evaluation import held_out
from portrayal.lab.model_training import SENTENCES, SIDE, WORLDS, lab_vocabulary, pictures_of
from portrayal.lab.sentences import plain_sentences
from portrayal.lab.world import LEANING, Scene, World, make_scenes, other_scene
from portrayal.lexicon import lexicon_for
from portrayal.mitigate.compare import Comparison
from portrayal.mitigate.evaluation import Exam
from portrayal.mitigate.methods import method_named
from portrayal.mitigate.settings import (
    LAB,
    MODEL,
    Choice,
    start_of,
)
from portrayal.mitigate.training_data import Material, Whom
from portrayal.models.masked_vlm.model import MaskedModel
from portrayal.models.masked_vlm.retrieval.search import Pool
from portrayal.models.masked_vlm.training import Pairs

BIASED, BALANCED = "biased", "balanced"
_LEARNT, _ASKED, _SEARCHED, _FILLED = 31, 77, 78, 79  # seeds, apart from those of the shipped models' scenes


def lab_comparison(
    model: str = MODEL,
    world: str = "full",
    choice: Choice | None = None,
) -> Comparison:
    """Methods on the lab's world: by default all, over as many seeds as the size has."""
    choice = choice or Choice()
    size = choice.size
    started, start = start_of(model, choice.where, 256, None)
    refuse_strangers(started)
    return Comparison(
        model=started,
        start=start,
        data=f"{LAB}{world}, {size.scenes} scenes",
        methods=tuple(method_named(name) for name in dict.fromkeys(choice.names)),
        **choice.training(lab=True),
        examined=f"{LAB}{world}, {size.asked} scenes asked about, {size.searched} searched, {size.rerank} again",
        attribute=LEANING,
        material=cache(lambda: lab_material(world, size.scenes)),
        exam=cache(lambda: lab_exam(world, size.asked, size.searched, size.rerank)),
    )


def lab_whom() -> Whom:
    """In the lexicon's order."""
    return Whom.of(lexicon_for(LEANING))


def refuse_strangers(model: MaskedModel) -> None:
    """The lab's texts are written in the words of its own models, and its pictures are of their size."""
    reads = getattr(model.reader, "words", None) == lab_vocabulary().words
    if not reads or model.network.side != SIDE:
        raise PortrayalError(
            f"The model '{model.name}' does not read the lab's words and pictures: expected a model of the lab, or a "
            f"study to learn from (--data STUDY)."
        )


def lab_material(world: str, scenes: int) -> Material:
    """New scenes of the world: each picture once more with somebody of the other group."""
    made = make_scenes(scenes, _LEARNT, WORLDS[world])
    return Material.made_from(
        pictures_of(made),
        Annotators().describe(made, _LEARNT),
        plain_sentences(made, SENTENCES, _LEARNT),
        lab_vocabulary(),
        lab_whom(),
        pictures_of([other_scene(scene) for scene in made]),
    )


def lab_exam(world: str, scenes: int, searched: int, rerank: int) -> Exam:
    """People to ask about come from a world without bias; captions to be searched from the world that was learnt; words
    to be filled in from both.
    """
    fair = World(data_bias=0.0)
    asked = [scene for scene in held_out(scenes, fair, _ASKED) if not scene.androgynous]
    drawn: dict[Path, Any] = {}
    instances = []
    for scene in asked:
        own, other = Path(f"{scene.identifier}.png"), Path(f"{scene.identifier}-other.png")
        drawn[own], drawn[other] = draw(scene, SIDE), draw(other_scene(scene), SIDE)
        about = [(scene.activity, "activity")]
        if scene.occupation is not None:
            about.append((scene.occupation, "occupation"))
        for concept, kind in about:
            instances.append(Instance(scene.identifier, scene.person[LEANING], concept, kind, own, other))
    whom = lab_whom()
    questions = Questions(
        dict(zip(whom.groups, whom.words, strict=True)), Manifest("", tuple(instances)).concepts
    )
    sought = make_scenes(searched, _SEARCHED, WORLDS[world])
    captions = Annotators(bare=0.0).describe(sought, _SEARCHED)
    sets = {name: held_out(scenes, one, _FILLED) for name, one in ((BIASED, WORLDS[world]), (BALANCED, fair))}
    return Exam(
        tuple(instances),
        drawn.__getitem__,
        questions,
        Pool(
            len(sought),
            lambda some: [draw(scene, SIDE) for scene in sought[some]],
            [caption for some in captions for caption in some],
            np.repeat(np.arange(len(sought)), [len(some) for some in captions]),
        ),
        tuple(scene.identifier for scene in sought),
        {name: _texts(some) for name, some in sets.items()},
        {name: tuple(scene.identifier for scene in some) for name, some in sets.items()},
        rerank,
    )


def _texts(scenes: Sequence[Scene]) -> Pairs:
    return Pairs.made_from(
        pictures_of(scenes),
        Annotators().describe(scenes, _FILLED),
        plain_sentences(scenes, SENTENCES, _FILLED),
        lab_vocabulary(),
    )
