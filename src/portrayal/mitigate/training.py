"""Train one mitigated model and save it in a folder with its card."""

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
from portrayal.mitigate.losses import MitigationTask, RetrievalTask
from portrayal.mitigate.methods import Hyperparameters, Method
from portrayal.mitigate.training_data import TrainingData
from portrayal.models.masked_vlm.folder import CARD, load_model, save_model
from portrayal.models.masked_vlm.model import TorchMaskedVLM
from portrayal.models.masked_vlm.training import ImageTextPairs, TrainingConfig, train

# Checkpoint, deleted after training.
STATE = "training.pt"
ReportProgress = Callable[[int, int], None]
# These depend on the machine: they do not make it another model.
_MACHINE_SETTINGS = ("precision", "checkpoint_every", "gradient_accumulation")


@dataclass(frozen=True)
class TrainingPlan:
    """Everything that determines a mitigated model."""

    # The model before mitigation: its name and a digest of its weights.
    start: str
    data: str
    method: Method
    hyperparameters: Hyperparameters
    recipe: TrainingConfig

    def as_dict(self) -> dict[str, Any]:
        return {
            "start": self.start,
            "data": self.data,
            "method": self.method.name,
            "description": self.method.description,
            "hyperparameters": self.hyperparameters.used_by(self.method),
            "recipe": asdict(self.recipe),
        }

    @property
    def digest(self) -> str:
        settings = self.as_dict()
        settings["recipe"] = {
            name: value for name, value in settings["recipe"].items() if name not in _MACHINE_SETTINGS
        }
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def train_mitigated(
    model: TorchMaskedVLM,
    training_data: TrainingData,
    plan: TrainingPlan,
    out: Path,
    device: str = "cpu",
    report_progress: ReportProgress | None = None,
) -> TorchMaskedVLM:
    """Train a copy of the model, save it in a folder, and return it as loaded from there.

    Progress is checkpointed; the same call resumes an interrupted training and reads a finished one. The model is
    always loaded from the folder, so that numbers measured now and later are the same.

    Parameters
    ----------
    model
        The model where training starts.
    training_data
        Images, texts and their counterparts.
    plan
        Method and settings.
    out
        Folder of the mitigated model.
    device
        "cpu" or "cuda".
    report_progress
        Called with the finished steps and all steps.
    """
    card = _read_card(out)
    if card is None:
        _refuse_other_files(out)
        out.mkdir(parents=True, exist_ok=True)
        network = deepcopy(model.network)
        if plan.method.dropout:
            set_dropout(network, plan.hyperparameters.dropout)
        task = MitigationTask(plan.method, training_data, plan.hyperparameters)
        state = out / STATE
        train(
            network, training_data.pairs, plan.recipe, state, _without_losses(report_progress), device, task
        )
        save_model(out, network, model.tokenizer)
        card_data = {**plan.as_dict(), "digest": plan.digest, "texts": dict(training_data.counts or {})}
        write_text(out / CARD, json.dumps(card_data, indent=1) + "\n")
        state.unlink(missing_ok=True)
    elif card.get("digest") != plan.digest:
        raise PortrayalError(
            f"{out} holds a model of other settings or data: remove it, or choose another folder."
        )
    network, tokenizer = load_model(out)
    return TorchMaskedVLM(out.name, network, tokenizer, device, batch_size=model.batch_size)


def fine_tune_retrieval(
    model: TorchMaskedVLM, pairs: ImageTextPairs, recipe: TrainingConfig, device: str = "cpu"
) -> TorchMaskedVLM:
    """Return a copy of the model, fine-tuned for retrieval."""
    network = deepcopy(model.network)
    train(network, pairs, replace(recipe, n_captioned=recipe.batch_size), None, None, device, RetrievalTask())
    return TorchMaskedVLM(model.name, network, model.tokenizer, device, batch_size=model.batch_size)


def set_dropout(network: nn.Module, p: float) -> None:
    """Set the dropout rate of all layers of a network that have one."""
    for module in network.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
        elif isinstance(getattr(module, "dropout", None), float):
            setattr(module, "dropout", p)  # noqa: B010 (a type checker takes it for a module)


def _refuse_other_files(folder: Path) -> None:
    """Raise an error if a folder has files that are not of an interrupted training, such as another model."""
    files = [file for file in folder.iterdir() if not file.name.startswith(".")] if folder.is_dir() else []
    if files and not (folder / STATE).is_file():
        raise PortrayalError(f"{folder} holds files that are not of a mitigated model; choose a new folder.")


def _read_card(folder: Path) -> dict[str, Any] | None:
    file = folder / CARD
    if not file.is_file():
        return None
    try:
        card = read_json(file)
    except InputError:
        card = None
    if not isinstance(card, dict):
        raise PortrayalError(f"{file}: expected the card of a model, found something else.")
    return card


def _without_losses(
    report_progress: ReportProgress | None,
) -> Callable[[int, int, dict[str, float]], None] | None:
    return None if report_progress is None else lambda done, total, _: report_progress(done, total)
