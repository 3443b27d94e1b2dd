"""Small masked models trained on the lab's world, so that their bias can be compared with the truth."""

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
from portrayal.lab.world import ATTRIBUTES, BIASED_ATTRIBUTE, Scene, World, make_scenes
from portrayal.models.masked_vlm.requirements import need_packages

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.training import ImageTextPairs, TrainingConfig
    from portrayal.models.masked_vlm.training.loop import ReportProgress

SIDE, PATCH, WIDTH = 64, 8, 128
# Plain sentences per scene.
SENTENCES = 10
WORLDS = {
    "0": World(data_bias=0.0),
    "half": World(data_bias=0.5),
    "full": World(data_bias=1.0),
    "clear": World(data_bias=1.0, cue_strength=1.0),
}
# For a GPU. A single stream learns small details of an image more slowly.
STEPS = {
    "single": 6000,
    "dual": 4000,
}
STREAMS = tuple(STEPS)
_DEFAULTS = {"batch_size": 256, "n_captioned": 64, "learning_rate": 1e-3}
# Initial weights are scaled up from those of networks six times as wide: training converges sooner.
_INIT_SCALE = 3.0
# Length of a text, with its start and end token.
MAX_TOKENS = 40
_VOCABULARY_SCENES = 20_000
# Checkpoint, deleted after training.
STATE = "training.pt"


@dataclass(frozen=True)
class TrainingSpec:
    """The data of a model of the lab. With the training recipe it determines the weights.

    Parameters
    ----------
    stream
        Architecture: "single" (ViLT) or "dual" (ALBEF).
    world
        Name of the world, a key of `WORLDS`.
    scenes
        Number of training scenes.
    seed
        Seed of the scenes and of the initial weights.
    """

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
            raise PortrayalError(f"A model is trained on two scenes or more, got {self.scenes}.")

    @property
    def name(self) -> str:
        return f"lab-{self.stream}-{self.world}"


def render_images(scenes: Sequence[Scene], side: int = SIDE) -> NDArray[np.uint8]:
    """Return the images of scenes as an array (scenes, height, width, 3)."""
    return np.stack([np.asarray(draw(scene, side)) for scene in scenes])


def recipe_for(stream: str, device: str = "cpu", **overrides: Any) -> TrainingConfig:
    """Return the default training recipe of a stream, with overrides. A GPU uses bfloat16 products."""
    from portrayal.models.masked_vlm.training import TrainingConfig

    defaults = {
        **_DEFAULTS,
        "steps": STEPS[stream],
        "precision": "bfloat16" if device == "cuda" else "float32",
    }
    return TrainingConfig(
        **{**defaults, **{name: value for name, value in overrides.items() if value is not None}}
    )


def training_pairs(spec: TrainingSpec) -> ImageTextPairs:
    """Return the training images, each with five captions and several plain sentences.

    Every group has the same random numbers, so that groups differ only by the planted bias. With independent random
    numbers, chance associates activities with groups by a percent or two, and models learn that.
    """
    from portrayal.models.masked_vlm.training import ImageTextPairs

    scenes: list[Scene] = []
    captions: list[list[str]] = []
    sentences: list[list[str]] = []
    groups = ATTRIBUTES[BIASED_ATTRIBUTE]
    for group in groups:
        world = replace(WORLDS[spec.world], shares={group: 1.0})
        group_scenes = make_scenes(spec.scenes // len(groups), spec.seed, world)
        scenes += group_scenes
        captions += Annotators().describe(group_scenes, spec.seed)
        sentences += plain_sentences(group_scenes, SENTENCES, spec.seed)
    return ImageTextPairs.from_texts(render_images(scenes), captions, sentences, lab_vocabulary())


@cache
def lab_vocabulary() -> Any:
    """Return the vocabulary of annotators and plain sentences in alphabetical order, the same for all worlds."""
    from portrayal.models.masked_vlm.vocabulary import WordTokenizer, split_words

    scenes = make_scenes(_VOCABULARY_SCENES, 0, World())
    texts = [*Annotators().describe(scenes, 0), *plain_sentences(scenes, SENTENCES, 0)]
    words = {word for scene_texts in texts for text in scene_texts for word in split_words(text)}
    return WordTokenizer(sorted(words), MAX_TOKENS)


def lab_network(stream: str, n_words: int, seed: int = 0) -> Any:
    """Return an untrained network with a small configuration."""
    import torch

    torch.manual_seed(seed)
    network = _dual(n_words) if stream == "dual" else _single(n_words)
    with torch.no_grad():
        for weights in network.parameters():
            if weights.ndim > 1:
                weights.mul_(_INIT_SCALE)
    return network


def _dual(n_words: int) -> Any:
    from portrayal.models.masked_vlm.dual_stream import DualNetwork, DualShape

    return DualNetwork(
        DualShape(
            image_size=SIDE, patch_size=PATCH, image_width=WIDTH, image_layers=3, image_heads=4, vocab_size=n_words,
            text_width=WIDTH, text_layers=4, fusion_layer=2, text_heads=4, intermediate_size=4 * WIDTH,
            max_position_embeddings=MAX_TOKENS, embed_dim=64, dropout=0.0,
        )
    )  # fmt: skip


def _single(n_words: int) -> Any:
    from portrayal.models.masked_vlm.single_stream import SingleNetwork, build_vilt

    return SingleNetwork(
        build_vilt(
            image_size=SIDE, patch_size=PATCH, hidden_size=WIDTH, num_hidden_layers=4, num_attention_heads=4,
            intermediate_size=4 * WIDTH, vocab_size=n_words, max_position_embeddings=MAX_TOKENS, pad_token_id=0,
        ),
        has_new_match_head=True,
        square=True,
    )  # fmt: skip


def train_lab_model(
    spec: TrainingSpec,
    out: Path,
    recipe: TrainingConfig | None = None,
    device: str = "cpu",
    report_progress: ReportProgress | None = None,
    evaluation_scenes: int = 4000,
) -> dict[str, Any]:
    """Train a model of the lab, save it with its card, and return the card.

    Progress is checkpointed; the same call resumes an interrupted training.

    Parameters
    ----------
    spec
        The data of the model.
    out
        Folder of the model.
    recipe
        How it is trained; by default `recipe_for(spec.stream, device)`.
    device
        "cpu" or "cuda".
    report_progress
        Called with the finished steps, all steps and the losses.
    evaluation_scenes
        Number of held-out scenes for the evaluation in the card.
    """
    # Checked first: the weights are written after hours of training.
    need_packages("lab", "A model of the lab")
    from portrayal.lab.model_evaluation import evaluate_lab_model
    from portrayal.models.masked_vlm.folder import CARD, WEIGHTS, load_model, save_model
    from portrayal.models.masked_vlm.model import TorchMaskedVLM
    from portrayal.models.masked_vlm.training import train

    recipe = recipe or recipe_for(spec.stream, device, seed=spec.seed)
    out.mkdir(parents=True, exist_ok=True)
    vocabulary = lab_vocabulary()
    network = lab_network(spec.stream, len(vocabulary), spec.seed)
    state = out / STATE
    train(network, training_pairs(spec), recipe, state, report_progress, device)
    save_model(out, network, vocabulary)
    network, vocabulary = load_model(out)
    model = TorchMaskedVLM(spec.name, network, vocabulary, device, batch_size=256)
    card = {
        "name": spec.name,
        "training_spec": asdict(spec),
        "world": asdict(WORLDS[spec.world]),
        "recipe": asdict(recipe),
        "weights": sum(part.numel() for part in network.parameters()),
        "weights digest": content_digest(out / WEIGHTS),
        "made on": _machine(device),
        "held out": evaluate_lab_model(model, WORLDS[spec.world], evaluation_scenes),
    }
    write_text(out / CARD, json.dumps(card, indent=1) + "\n")
    state.unlink(missing_ok=True)
    return card


def _machine(device: str) -> dict[str, Any]:
    """Return the hardware and versions on which the weights depend, since rounding differs between machines."""
    import torch
    import transformers

    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else "processor",
        "threads": None if device == "cuda" else torch.get_num_threads(),
        "torch": torch.__version__.split("+")[0],
        "transformers": transformers.__version__,
    }
