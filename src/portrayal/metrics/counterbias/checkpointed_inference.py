"""Inference on the instances of a manifest in parts, with a checkpoint from which an interrupted run resumes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.inference import query_model, rows_by_image
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import ModelOutputs, Prompts
from portrayal.engine import Checkpoint, Progress, code_digest
from portrayal.models.masked_vlm.model import MaskedVLM
from portrayal.models.vision.images import read_image

# Number of images in a part, which is checkpointed as a whole. A part has at least four batches, so that the next one
# can be loaded during inference.
PART_SIZE = 256
_ARRAYS_FILE = "answers.npz"
_ARRAY_NAMES = tuple(field.name for field in fields(ModelOutputs) if field.name != "images")


def run_inference(
    model: MaskedVLM,
    model_key: str | None,
    instances: Sequence[Instance],
    prompts: Prompts,
    attack: Attack | None,
    *,
    placebo: bool,
    seed: int,
    batch_size: int,
    keep_images: Sequence[int],
    checkpoint: Path | None,
    progress: Progress | None,
    title: str,
) -> ModelOutputs:
    """Return the model's outputs for all instances.

    `model_key` identifies the model in the checkpoint; with None nothing is checkpointed. `keep_images` are
    the instances whose images are kept for display.
    """
    parts_checkpoint: Checkpoint[ModelOutputs] | None = (
        None if checkpoint is None or model_key is None else Checkpoint(checkpoint, _save, _load)
    )
    rows_of_images = list(rows_by_image(instances).values())
    part_outputs, part_rows, n_done, rows_to_keep = [], [], 0, set(keep_images)
    part_size = max(PART_SIZE, 4 * batch_size) if parts_checkpoint is not None else len(rows_of_images)
    for start in range(0, len(rows_of_images), part_size):
        rows = [row for image_rows in rows_of_images[start : start + part_size] for row in image_rows]
        part_instances = [instances[row] for row in rows]
        kept = [position for position, row in enumerate(rows) if row in rows_to_keep]
        arguments = [
            prompts,
            attack,
            placebo,
            seed,
            kept,
            [_instance_key(instance) for instance in part_instances],
        ]
        key = _part_key(str(model_key), arguments)
        outputs = parts_checkpoint.get(key) if parts_checkpoint is not None else None
        if outputs is None:
            outputs = query_model(
                model, part_instances, prompts, attack, read_image, placebo=placebo, seed=seed,
                batch_size=batch_size, keep_images=kept,
                report_progress=_part_progress(progress, title, n_done, len(rows_of_images)),
            )  # fmt: skip
            if parts_checkpoint is not None:
                parts_checkpoint.put(key, outputs)
        n_done += len(rows_of_images[start : start + part_size])
        if progress is not None:
            progress(title, n_done, len(rows_of_images))
        part_outputs.append(outputs)
        part_rows.append(rows)
    return _concat(part_outputs, part_rows, len(instances))


def _part_progress(
    progress: Progress | None, title: str, n_done: int, n_images: int
) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda n_done_in_part, _: progress(title, n_done + n_done_in_part, n_images)


def _instance_key(instance: Instance) -> list[object]:
    """Return what identifies an instance: its row, and size and modification time of the files that it names."""
    key: list[object] = [instance.image, instance.group, instance.concept, instance.kind]
    for path in (instance.path, instance.counterfactual):
        if path is not None:
            key += [str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns]
    return key


def _part_key(model_key: str, arguments: Sequence[object]) -> str:
    text = json.dumps([code_digest(), model_key, *map(str, arguments)])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _concat(parts: Sequence[ModelOutputs], part_rows: Sequence[Sequence[int]], n: int) -> ModelOutputs:
    arrays = {}
    for name in _ARRAY_NAMES:
        first = getattr(parts[0], name)
        arrays[name] = np.full((n, *first.shape[1:]), np.nan)
        for part, rows in zip(parts, part_rows, strict=True):
            arrays[name][list(rows)] = getattr(part, name)
    images = {
        rows[row]: part_images
        for part, rows in zip(parts, part_rows, strict=True)
        for row, part_images in part.images.items()
    }
    return ModelOutputs(**arrays, images=images)


def _save(outputs: ModelOutputs, folder: Path) -> None:
    images = {f"image {row}": image for row, image in outputs.images.items()}
    np.savez_compressed(
        folder / _ARRAYS_FILE,
        **{name: getattr(outputs, name) for name in _ARRAY_NAMES},
        **images,  # type: ignore[arg-type]
    )


def _load(folder: Path) -> ModelOutputs:
    with np.load(folder / _ARRAYS_FILE, allow_pickle=False) as file:
        images = {int(name[6:]): file[name] for name in file.files if name.startswith("image ")}
        return ModelOutputs(**{name: file[name] for name in _ARRAY_NAMES}, images=images)
