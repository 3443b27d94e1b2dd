"""How a model is remedied and compared unless something else is said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from portrayal.counterfactual.attack import Attack
from portrayal.errors import PortrayalError, unknown_name
from portrayal.files import content_digest
from portrayal.mitigate.methods import GIVEN, METHODS, Dose
from portrayal.models.device import best_device
from portrayal.models.masked_vlm.loading import load_masked, located, plain_name
from portrayal.models.masked_vlm.model import MaskedModel
from portrayal.models.masked_vlm.training import Recipe

LAB = "lab-"
MODEL = "lab-dual-full"
QUICK_METHODS = ("vanilla", "gender-swap", "fairvlp", "image-swap")


@dataclass(frozen=True)
class Size:
    """How much is learnt from and examined."""

    scenes: int  # of the lab, to learn from
    asked: int  # scenes to ask about
    searched: int  # pictures to search
    rerank: int  # of what is found, so many are put in order anew
    steps: int
    batch: int
    fitting: int  # steps of fitting to searching
    seeds: int


FULL = Size(scenes=20_000, asked=1500, searched=500, rerank=16, steps=1000, batch=256, fitting=200, seeds=4)
QUICK = Size(scenes=600, asked=200, searched=40, rerank=4, steps=24, batch=16, fitting=6, seeds=2)


@dataclass(frozen=True)
class Choice:
    """What is asked of a comparison, whatever it is made on; what is not said is usual."""

    methods: Sequence[str] | None = None
    seeds: int | None = None
    quick: bool = False
    device: str = "auto"
    recipe: Mapping[str, Any] = field(default_factory=dict)
    dose: Mapping[str, Any] = field(default_factory=dict)
    attack: Attack | None = None

    @property
    def size(self) -> Size:
        return QUICK if self.quick else FULL

    @property
    def where(self) -> str:
        return best_device(self.device)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.methods or (QUICK_METHODS if self.quick else METHODS))

    def training(self, lab: bool) -> dict[str, Any]:
        """The parts of a comparison that say how models are trained and attacked."""
        recipe = recipe_for(self.size, lab, self.where, self.recipe)
        return {
            "seeds": tuple(range(self.size.seeds if self.seeds is None else self.seeds)),
            "recipe": recipe,
            "fitting": fitting_for(self.size, recipe),
            "dose": Dose(**{name: value for name, value in self.dose.items() if value is not None}),
            "attack": self.attack or Attack(),
        }


def recipe_for(size: Size, lab: bool, device: str, given: Mapping[str, Any]) -> Recipe:
    """As the paper has it where it says (rate, decay, batch); the lab's small models learn at a higher rate."""
    batch = given.get("batch_size") or size.batch
    steps = given.get("steps") or size.steps
    usual = {
        "steps": steps,
        "batch_size": batch,
        "captioned": max(2, batch // 4) if lab else batch,  # the lab's plain sentences teach most
        "learning_rate": 3e-4 if lab else 1e-4,
        "warmup": max(1, steps // 10),
        "decay": 0.02,
        "mask_probability": 0.15,
        "precision": "bfloat16" if device == "cuda" else "float32",
    }
    return Recipe(**{**usual, **{name: value for name, value in given.items() if value is not None}})


def fitting_for(size: Size, recipe: Recipe) -> Recipe:
    """A short training to tell captions apart, at a third of the rate."""
    return Recipe(
        steps=size.fitting, batch_size=recipe.batch_size, captioned=recipe.batch_size, learning_rate=recipe.learning_rate / 3, decay=recipe.decay,
        warmup=max(1, size.fitting // 10), mask_probability=recipe.mask_probability, precision=recipe.precision,
    )  # fmt: skip


def start_of(model: str, device: str, batch: int, tokenizer: str | None) -> tuple[MaskedModel, str]:
    """The model to begin with, and its name with a digest of what lies behind it."""
    where = Path(located(model))
    loaded = load_masked(model, device, batch=batch, tokenizer=tokenizer)
    if not loaded.network.side:
        raise PortrayalError(
            f"The model '{model}' reads texts alone: these remedies train on pictures and texts."
        )
    if not loaded.network.filling:
        raise PortrayalError(f"The model '{model}' fills no masks: these remedies train on hidden words.")
    digest = content_digest(where)[:16] if where.exists() else model
    return loaded, f"{plain_name(model)} {digest}"


def world_of(model: str, data: str | None) -> str | None:
    """The lab's world that is learnt from: that of the model unless another is named; None where data are one's own."""
    from portrayal.lab.model_training import WORLDS

    if data is not None:
        if Path(data).exists() or not data.startswith(LAB):
            return None
        world = data.removeprefix(LAB)
        if world not in WORLDS:
            raise unknown_name("world of the lab", data, [f"{LAB}{name}" for name in WORLDS])
        return world
    if not model.startswith(LAB) or Path(model).exists():
        raise PortrayalError(
            f"The model '{model}' is not of the lab: name the data to learn from (--data STUDY)."
        )
    name = Path(located(model)).name
    return name.rpartition("-")[2]


def without_given(methods: Sequence[str]) -> list[str]:
    """Those that need no given pictures of the other group."""
    return [name for name in methods if METHODS[name].picture != GIVEN]
