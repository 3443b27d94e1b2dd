"""A folder with cached predictions and a queue of training tasks, which another machine can train.

Predictions are files of plain arrays, named by a digest of captions, labels and configuration. Pending tasks
are written to one plan file, so that a machine with a GPU, which need not have the study, can train them with
`python -m portrayal.models FOLDER`.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from portrayal.documents import DocumentError, parse_json
from portrayal.errors import InputError, Problem
from portrayal.files import replacing
from portrayal.models.text_classifiers.configs import (
    ClassifierConfig,
    cache_key,
    config_from_dict,
    config_to_dict,
)
from portrayal.models.text_classifiers.tasks import ClassificationTask, TaskPredictions, Texts

PLAN = "plan.npz"
_SEPARATOR = "\n"  # between the words of a plan; no word contains it


@dataclass(frozen=True)
class TrainingCache:
    """The predictions cached in a folder."""

    folder: Path

    def get(
        self, task: ClassificationTask, config: ClassifierConfig, attribution_steps: int
    ) -> TaskPredictions | None:
        path = self._path(task, config, attribution_steps)
        if not path.exists():
            return None
        arrays = _load(path)
        proba = arrays["proba"].astype(np.float64)
        attributions = arrays["attributions"].astype(np.float64) if "attributions" in arrays else None
        expected_shape = (len(task.test_indices), task.n_groups)
        if proba.shape != expected_shape:
            raise InputError(
                [Problem(str(path), f"probabilities of shape {expected_shape}", str(proba.shape))]
            )
        return TaskPredictions(proba, attributions)

    def put(
        self,
        task: ClassificationTask,
        config: ClassifierConfig,
        attribution_steps: int,
        predictions: TaskPredictions,
    ) -> None:
        arrays = {"proba": predictions.proba.astype(np.float32)}
        if predictions.attributions is not None:
            arrays["attributions"] = predictions.attributions.astype(np.float32)
        _save(self._path(task, config, attribution_steps), arrays)

    def _path(self, task: ClassificationTask, config: ClassifierConfig, attribution_steps: int) -> Path:
        return self.folder / f"{cache_key(task, config, attribution_steps)}.npz"


def write_plan(
    path: Path, tasks: Sequence[ClassificationTask], config: ClassifierConfig, attribution_steps: int
) -> None:
    """Write training tasks to a file; captions that tasks share are written once."""
    texts = list({id(task.texts): task.texts for task in tasks}.values())
    text_index = {id(captions): index for index, captions in enumerate(texts)}
    arrays: dict[str, Any] = {}
    for index, captions in enumerate(texts):
        arrays[f"words {index}"] = np.frombuffer(_SEPARATOR.join(captions.words).encode(), dtype=np.uint8)
        arrays[f"codes {index}"] = captions.codes.astype(np.int32)
        arrays[f"lengths {index}"] = captions.lengths.astype(np.int32)
    for index, task in enumerate(tasks):
        arrays[f"group {index}"] = task.group_index.astype(np.int32)
        arrays[f"train {index}"] = task.train_indices.astype(np.int32)
        arrays[f"test {index}"] = task.test_indices.astype(np.int32)
        arrays[f"weight {index}"] = task.group_weights
    header = {
        "classifier": config_to_dict(config),
        "explain": attribution_steps,
        "texts": len(texts),
        "tasks": [[text_index[id(task.texts)], task.n_groups, task.seed] for task in tasks],
    }
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    _save(path, arrays)


def read_plan(path: Path) -> tuple[list[ClassificationTask], ClassifierConfig, int]:
    """Return the tasks of a plan, the configuration, and the number of attribution steps."""
    arrays = _load(path)
    try:
        header = parse_json(arrays["header"].tobytes().decode())
        texts = []
        for index in range(header["texts"]):
            words = arrays[f"words {index}"].tobytes().decode().split(_SEPARATOR)
            codes, lengths = arrays[f"codes {index}"], arrays[f"lengths {index}"]
            texts.append(Texts(tuple(words), codes.astype(np.int64), lengths.astype(np.int64)))
        tasks = [
            ClassificationTask(
                texts[text_index],
                arrays[f"group {index}"].astype(np.int64),
                n_groups,
                arrays[f"train {index}"].astype(np.int64),
                arrays[f"test {index}"].astype(np.int64),
                arrays[f"weight {index}"],
                seed,
            )
            for index, (text_index, n_groups, seed) in enumerate(header["tasks"])
        ]
        return tasks, config_from_dict(header["classifier"]), int(header["explain"])
    except (DocumentError, KeyError, ValueError, TypeError) as error:
        problem = Problem(str(path), "a plan of training tasks", f"something else ({error})")
        raise InputError([problem]) from error


def run_plan(folder: Path, device: str) -> Iterator[tuple[int, int]]:
    """Train the tasks of a plan that are not cached; yield the number done and the total number after each."""
    tasks, config, attribution_steps = read_plan(folder / PLAN)
    cache = TrainingCache(folder)
    pending = [task for task in tasks if cache.get(task, config, attribution_steps) is None]
    for n_done, (index, predictions) in enumerate(config.train(pending, device, attribution_steps), 1):
        cache.put(pending[index], config, attribution_steps, predictions)
        yield n_done, len(pending)


def _save(path: Path, arrays: dict[str, Any]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _load(path: Path) -> dict[str, Any]:
    try:
        # Pickles are not loaded, since they could run code.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # The message of numpy is not shown, since it suggests to load pickles, which can run code.
        reason = error.strerror if isinstance(error, OSError) else None
        found = reason.lower() if reason else "something else"
        raise InputError([Problem(str(path), "arrays of predictions", found)]) from error
