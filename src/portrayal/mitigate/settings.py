"""Default settings of a comparison of mitigation methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portrayal.counterfactual.attack import Attack
from portrayal.errors import PortrayalError, unknown_name
from portrayal.files import content_digest
from portrayal.mitigate.methods import GIVEN, METHODS, Hyperparameters
from portrayal.models.device import resolve_device
from portrayal.models.masked_vlm.loading import display_name, lab_model_path, load_masked
from portrayal.models.masked_vlm.model import TorchMaskedVLM
from portrayal.models.masked_vlm.training import TrainingConfig

LAB = "lab-"
MODEL = "lab-dual-full"
QUICK_METHODS = ("vanilla", "gender-swap", "fairvlp", "image-swap")


@dataclass(frozen=True)
class ComparisonSize:
    """The size of training and evaluation.

    Parameters
    ----------
    scenes
        Training scenes of the lab.
    evaluation_scenes
        Scenes for bias and for masked words.
    retrieval_images
        Images for retrieval.
    rerank
        Number of results that the matching head reranks.
    steps, batch_size
        Training.
    retrieval_steps
        Steps of fine-tuning for retrieval.
    seeds
        Trainings of each method.
    """

    scenes: int
    evaluation_scenes: int
    retrieval_images: int
    rerank: int
    steps: int
    batch_size: int
    retrieval_steps: int
    seeds: int


FULL = ComparisonSize(
    scenes=20_000,
    evaluation_scenes=1500,
    retrieval_images=500,
    rerank=16,
    steps=1000,
    batch_size=256,
    retrieval_steps=200,
    seeds=4,
)
QUICK = ComparisonSize(
    scenes=600,
    evaluation_scenes=200,
    retrieval_images=40,
    rerank=4,
    steps=24,
    batch_size=16,
    retrieval_steps=6,
    seeds=2,
)


@dataclass(frozen=True)
class ComparisonOptions:
    """The options of a comparison, on the lab or on a study; None stands for the default."""

    methods: Sequence[str] | None = None
    seeds: int | None = None
    quick: bool = False
    device: str = "auto"
    recipe: Mapping[str, Any] = field(default_factory=dict)
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    attack: Attack | None = None

    @property
    def size(self) -> ComparisonSize:
        return QUICK if self.quick else FULL

    @property
    def resolved_device(self) -> str:
        return resolve_device(self.device)

    @property
    def method_names(self) -> tuple[str, ...]:
        return tuple(self.methods or (QUICK_METHODS if self.quick else METHODS))

    def training(self, lab: bool) -> dict[str, Any]:
        """Return the fields of a `Comparison` that set training and attack."""
        recipe = recipe_for(self.size, lab, self.resolved_device, self.recipe)
        return {
            "seeds": tuple(range(self.size.seeds if self.seeds is None else self.seeds)),
            "recipe": recipe,
            "retrieval_recipe": retrieval_recipe_for(self.size, recipe),
            "hyperparameters": Hyperparameters(
                **{name: value for name, value in self.hyperparameters.items() if value is not None}
            ),
            "attack": self.attack or Attack(),
        }


def recipe_for(size: ComparisonSize, lab: bool, device: str, overrides: Mapping[str, Any]) -> TrainingConfig:
    """Return the training configuration, with overrides.

    Learning rate, weight decay and batch size are the paper's; the lab's small models have a higher learning rate.
    """
    batch_size = overrides.get("batch_size") or size.batch_size
    steps = overrides.get("steps") or size.steps
    defaults = {
        "steps": steps,
        "batch_size": batch_size,
        # Most of the lab's training signal is in the plain sentences.
        "n_captioned": max(2, batch_size // 4) if lab else batch_size,
        "learning_rate": 3e-4 if lab else 1e-4,
        "warmup_steps": max(1, steps // 10),
        "weight_decay": 0.02,
        "mask_probability": 0.15,
        "precision": "bfloat16" if device == "cuda" else "float32",
    }
    return TrainingConfig(
        **{**defaults, **{name: value for name, value in overrides.items() if value is not None}}
    )


def retrieval_recipe_for(size: ComparisonSize, recipe: TrainingConfig) -> TrainingConfig:
    """Return the configuration of a short fine-tuning for retrieval, at a third of the learning rate."""
    return TrainingConfig(
        steps=size.retrieval_steps,
        batch_size=recipe.batch_size,
        n_captioned=recipe.batch_size,
        learning_rate=recipe.learning_rate / 3,
        weight_decay=recipe.weight_decay,
        warmup_steps=max(1, size.retrieval_steps // 10),
        mask_probability=recipe.mask_probability,
        precision=recipe.precision,
    )


def load_start_model(
    model: str, device: str, batch_size: int, tokenizer: str | None
) -> tuple[TorchMaskedVLM, str]:
    """Return the model where training starts, and its name with a digest of its files."""
    path = Path(lab_model_path(model))
    loaded = load_masked(model, device, batch_size=batch_size, tokenizer=tokenizer)
    if not loaded.network.image_size:
        raise PortrayalError(
            f"The model '{model}' has no image encoder: these methods train on images and texts."
        )
    if not loaded.network.has_mlm_head:
        raise PortrayalError(
            f"The model '{model}' has no masked-word head: these methods train on masked words."
        )
    digest = content_digest(path)[:16] if path.exists() else model
    return loaded, f"{display_name(model)} {digest}"


def training_world(model: str, data: str | None) -> str | None:
    """Return the lab's world for training, by default the world of the model; None if `data` is a study."""
    from portrayal.lab.model_training import WORLDS

    if data is not None:
        if Path(data).exists() or not data.startswith(LAB):
            return None
        world = data.removeprefix(LAB)
        if world not in WORLDS:
            raise unknown_name("world of the lab", data, [f"{LAB}{name}" for name in WORLDS])
        return world
    if not model.startswith(LAB) or Path(model).exists():
        raise PortrayalError(f"The model '{model}' is not of the lab: name the training data (--data STUDY).")
    name = Path(lab_model_path(model)).name
    return name.rpartition("-")[2]


def without_given_images(methods: Sequence[str]) -> list[str]:
    """Return the methods that need no given counterfactual images."""
    return [name for name in methods if METHODS[name].image != GIVEN]
