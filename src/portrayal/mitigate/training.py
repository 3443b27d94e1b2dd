"""One remedy: a model trained by a method, in a folder with its card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from portrayal.documents import read_json
from portrayal.errors import InputError, PortrayalError
from portrayal.files import write_text
from portrayal.mitigate.methods import Dose, Method
from portrayal.mitigate.objective import Remedy, Retrieval
from portrayal.mitigate.training_data import Material
from portrayal.models.masked_vlm.folder import CARD, load_model, save_model
from portrayal.models.masked_vlm.model import MaskedModel
from portrayal.models.masked_vlm.training import Pairs, Recipe, train

STATE = "training.pt"  # while it is trained
ReportProgress = Callable[[int, int], None]
# What a machine decides: a model that was made on another one is the same remedy.
_OF_THE_MACHINE = ("precision", "keep_every", "accumulate")


@dataclass(frozen=True)
class Plan:
    """All that decides a remedied model."""

    start: str  # what the model was before: its name and a digest of its weights
    data: str
    method: Method
    dose: Dose
    recipe: Recipe

    def told(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "data": self.data,
            "method": self.method.name,
            "about": self.method.about,
            "dose": self.dose.told(self.method),
            "recipe": asdict(self.recipe),
        }

    @property
    def digest(self) -> str:
        told = self.told()
        told["recipe"] = {
            name: value for name, value in told["recipe"].items() if name not in _OF_THE_MACHINE
        }
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


def remedied(
    model: MaskedModel,
    material: Material,
    plan: Plan,
    out: Path,
    device: str = "cpu",
    report_progress: ReportProgress | None = None,
) -> MaskedModel:
    """Train a copy of the model into a folder. Broken off, the same call goes on where it was; done, it is read.

    A model is what its folder holds, so that numbers taken now and later are the same.
    """
    card = _card(out)
    if card is None:
        _refuse_others(out)
        out.mkdir(parents=True, exist_ok=True)
        network = deepcopy(model.network)
        if plan.method.dropout:
            drop(network, plan.dose.dropout)
        task = Remedy(plan.method, material, plan.dose)
        state = out / STATE
        train(network, material.pairs, plan.recipe, state, _telling(report_progress), device, task)
        save_model(out, network, model.reader)
        told = {**plan.told(), "digest": plan.digest, "texts": dict(material.counts or {})}
        write_text(out / CARD, json.dumps(told, indent=1) + "\n")
        state.unlink(missing_ok=True)
    elif card.get("digest") != plan.digest:
        raise PortrayalError(
            f"{out} holds a model of other settings or data: remove it, or choose another folder."
        )
    network, reader = load_model(out)
    return MaskedModel(out.name, network, reader, device, batch=model.batch)


def fitted_to_searching(model: MaskedModel, pairs: Pairs, recipe: Recipe, device: str = "cpu") -> MaskedModel:
    """A copy that was trained to tell whose captions are."""
    network = deepcopy(model.network)
    train(network, pairs, replace(recipe, captioned=recipe.batch_size), None, None, device, Retrieval())
    return MaskedModel(model.name, network, model.reader, device, batch=model.batch)


def drop(network: nn.Module, share: float) -> None:
    """So much is dropped at random in training, wherever a network drops anything."""
    for part in network.modules():
        if isinstance(part, nn.Dropout):
            part.p = share
        elif isinstance(getattr(part, "dropout", None), float):
            setattr(part, "dropout", share)  # noqa: B010 (a type checker takes it for a module)


def _refuse_others(folder: Path) -> None:
    """What is not of a training that was broken off is not written over, such as the model that it begins with."""
    held = [file for file in folder.iterdir() if not file.name.startswith(".")] if folder.is_dir() else []
    if held and not (folder / STATE).is_file():
        raise PortrayalError(f"{folder} holds files that are not of a remedy; choose a new folder.")


def _card(folder: Path) -> dict[str, Any] | None:
    file = folder / CARD
    if not file.is_file():
        return None
    try:
        found = read_json(file)
    except InputError:
        found = None
    if not isinstance(found, dict):
        raise PortrayalError(f"{file}: expected the card of a model, found something else.")
    return found


def _telling(report_progress: ReportProgress | None) -> Callable[[int, int, dict[str, float]], None] | None:
    return None if report_progress is None else lambda done, of, _: report_progress(done, of)
