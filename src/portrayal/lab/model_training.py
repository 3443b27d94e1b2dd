"""Small models that fill masks, trained on the lab's world: what they learnt can be held against the truth."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import PortrayalError, unknown_name
from portrayal.files import content_digest, write_text
from portrayal.lab.annotators import Annotators
from portrayal.lab.images import draw
from portrayal.lab.sentences import plain_sentences
from portrayal.lab.world import ATTRIBUTES, LEANING, Scene, World, make_scenes
from portrayal.models.masked_vlm.requirements import need_packages

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.training import Pairs, Recipe
    from portrayal.models.masked_vlm.training.loop import ReportProgress

SIDE, PATCH, WIDTH = 64, 8, 128
SENTENCES = 10  # plain ones of each scene
WORLDS = {
    "0": World(data_bias=0.0),
    "half": World(data_bias=0.5),
    "full": World(data_bias=1.0),
    "clear": World(data_bias=1.0, cue_strength=1.0),
}
STEPS = {
    "single": 6000,
    "dual": 4000,
}  # for a GPU: a single stream learns small things of a picture more slowly
STREAMS = tuple(STEPS)
_USUAL = {"batch_size": 256, "captioned": 64, "learning_rate": 1e-3}
_WIDER = (
    3.0  # weights begin so many times further from 0 than in networks six times as wide: they learn sooner
)
LONGEST = 40  # words of a text, with its beginning and end
_READ_FOR_WORDS = 20_000  # scenes
STATE = "training.pt"  # while it is trained


@dataclass(frozen=True)
class Lesson:
    """What a model of the lab is made from: with the recipe, all that decides its weights."""

    stream: str = "single"
    world: str = "half"
    scenes: int = 160_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.stream not in STREAMS:
            raise unknown_name("kind of model", self.stream, STREAMS)
        if self.world not in WORLDS:
            raise unknown_name("world of the lab's models", self.world, WORLDS)
        if self.scenes < 2:
            raise PortrayalError(f"A model learns from two scenes or more, got {self.scenes}.")

    @property
    def name(self) -> str:
        return f"lab-{self.stream}-{self.world}"


def pictures_of(scenes: Sequence[Scene], side: int = SIDE) -> NDArray[np.uint8]:
    """(scenes, height, width, 3)"""
    return np.stack([np.asarray(draw(scene, side)) for scene in scenes])


def recipe_for(stream: str, device: str = "cpu", **given: Any) -> Recipe:
    """How the lab's models of a kind are trained, but for what is given. A GPU computes products in 16 bits."""
    from portrayal.models.masked_vlm.training import Recipe

    usual = {**_USUAL, "steps": STEPS[stream], "precision": "bfloat16" if device == "cuda" else "float32"}
    return Recipe(**{**usual, **{name: value for name, value in given.items() if value is not None}})


def lesson_pairs(lesson: Lesson) -> Pairs:
    """The pictures of a lesson, with five captions and some plain sentences of each.

    The same draws are made for every group, so that groups differ by what was planted and by nothing else: in so many
    scenes drawn apart, chance ties activities to groups by a percent or two, and models learn it.
    """
    from portrayal.models.masked_vlm.training import Pairs

    scenes: list[Scene] = []
    captions: list[list[str]] = []
    sentences: list[list[str]] = []
    groups = ATTRIBUTES[LEANING]
    for group in groups:
        world = replace(WORLDS[lesson.world], shares={group: 1.0})
        some = make_scenes(lesson.scenes // len(groups), lesson.seed, world)
        scenes += some
        captions += Annotators().describe(some, lesson.seed)
        sentences += plain_sentences(some, SENTENCES, lesson.seed)
    return Pairs.made_from(pictures_of(scenes), captions, sentences, lab_vocabulary())


@cache
def lab_vocabulary() -> Any:
    """Every word that annotators and plain sentences use, in the order of the alphabet: one for all worlds."""
    from portrayal.models.masked_vlm.vocabulary import Vocabulary, split_words

    scenes = make_scenes(_READ_FOR_WORDS, 0, World())
    texts = [*Annotators().describe(scenes, 0), *plain_sentences(scenes, SENTENCES, 0)]
    words = {word for some in texts for text in some for word in split_words(text)}
    return Vocabulary(sorted(words), LONGEST)


def lab_network(stream: str, words: int, seed: int = 0) -> Any:
    """An untrained network of a small configuration."""
    import torch

    torch.manual_seed(seed)
    network = _dual(words) if stream == "dual" else _single(words)
    with torch.no_grad():
        for weights in network.parameters():
            if weights.ndim > 1:
                weights.mul_(_WIDER)
    return network


def _dual(words: int) -> Any:
    from portrayal.models.masked_vlm.dual import DualNetwork, DualShape

    return DualNetwork(
        DualShape(
            side=SIDE, patch=PATCH, picture_width=WIDTH, picture_layers=3, picture_heads=4, words=words,
            width=WIDTH, layers=4, fusion=2, heads=4, inner=4 * WIDTH, positions=LONGEST, compared=64, dropout=0.0,
        )
    )  # fmt: skip


def _single(words: int) -> Any:
    from portrayal.models.masked_vlm.single import SingleNetwork, vilt

    return SingleNetwork(
        vilt(
            image_size=SIDE, patch_size=PATCH, hidden_size=WIDTH, num_hidden_layers=4, num_attention_heads=4,
            intermediate_size=4 * WIDTH, vocab_size=words, max_position_embeddings=LONGEST, pad_token_id=0,
        ),
        matching=True,
        square=True,
    )  # fmt: skip


def teach(
    lesson: Lesson,
    out: Path,
    recipe: Recipe | None = None,
    device: str = "cpu",
    report_progress: ReportProgress | None = None,
    graded: int = 4000,
) -> dict[str, Any]:
    """Train a model of the lab into a folder, with its card. Broken off, the same call goes on where it was.

    `graded` is the number of scenes on which it is graded.
    """
    need_packages("lab", "A model of the lab")  # its weights are written when hours of training are over
    from portrayal.lab.model_evaluation import grade
    from portrayal.models.masked_vlm.folder import CARD, WEIGHTS, load_model, save_model
    from portrayal.models.masked_vlm.model import MaskedModel
    from portrayal.models.masked_vlm.training import train

    recipe = recipe or recipe_for(lesson.stream, device, seed=lesson.seed)
    out.mkdir(parents=True, exist_ok=True)
    words = lab_vocabulary()
    network = lab_network(lesson.stream, len(words), lesson.seed)
    kept = out / STATE
    train(network, lesson_pairs(lesson), recipe, kept, report_progress, device)
    save_model(out, network, words)
    network, words = load_model(out)
    model = MaskedModel(lesson.name, network, words, device, batch=256)
    card = {
        "name": lesson.name,
        "lesson": asdict(lesson),
        "world": asdict(WORLDS[lesson.world]),
        "recipe": asdict(recipe),
        "weights": sum(part.numel() for part in network.parameters()),
        "weights digest": content_digest(out / WEIGHTS),
        "made on": _machine(device),
        "held out": grade(model, WORLDS[lesson.world], graded),
    }
    write_text(out / CARD, json.dumps(card, indent=1) + "\n")
    kept.unlink(missing_ok=True)
    return card


def _machine(device: str) -> dict[str, Any]:
    """What the weights depend on beside the lesson and the recipe: other machines round in other places."""
    import torch
    import transformers

    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "processor",
        "threads": None if device == "cuda" else torch.get_num_threads(),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
    }
