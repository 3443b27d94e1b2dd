"""Cache and queue of training tasks in a folder, so that no task is trained twice, here or on another
machine.

Predictions are files of plain arrays, named by a digest of captions, labels and configuration. Pending tasks
are written to one plan file, so that a machine with a GPU and without the study can train them:
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
from portrayal.models.text_classifiers.configs import ClassifierConfig, as_dict, cache_key, from_dict
from portrayal.models.text_classifiers.tasks import ClassificationTask, TaskPredictions, Texts

PLAN = "plan.npz"
_SEPARATOR = "\n"  # between the words of a plan; no word contains it


@dataclass(frozen=True)
class TrainingCache:
    """The predictions cached in a folder."""

    folder: Path

    def get(self, task: ClassificationTask, config: ClassifierConfig, explain: int) -> TaskPredictions | None:
        path = self._path(task, config, explain)
        if not path.exists():
            return None
        stored = _load(path)
        proba = stored["proba"].astype(np.float64)
        attributions = stored["attributions"].astype(np.float64) if "attributions" in stored else None
        expected = (len(task.test), task.groups)
        if proba.shape != expected:
            raise InputError([Problem(str(path), f"probabilities of shape {expected}", str(proba.shape))])
        return TaskPredictions(proba, attributions)

    def put(
        self, task: ClassificationTask, config: ClassifierConfig, explain: int, predictions: TaskPredictions
    ) -> None:
        arrays = {"proba": predictions.proba.astype(np.float32)}
        if predictions.attributions is not None:
            arrays["attributions"] = predictions.attributions.astype(np.float32)
        _save(self._path(task, config, explain), arrays)

    def _path(self, task: ClassificationTask, config: ClassifierConfig, explain: int) -> Path:
        return self.folder / f"{cache_key(task, config, explain)}.npz"


def write_plan(
    path: Path, tasks: Sequence[ClassificationTask], config: ClassifierConfig, explain: int
) -> None:
    """Write pending tasks to a file; captions that tasks share are written once."""
    texts = list({id(task.texts): task.texts for task in tasks}.values())
    text_index = {id(text): index for index, text in enumerate(texts)}
    arrays: dict[str, Any] = {}
    for index, text in enumerate(texts):
        arrays[f"words {index}"] = np.frombuffer(_SEPARATOR.join(text.words).encode(), dtype=np.uint8)
        arrays[f"codes {index}"] = text.codes.astype(np.int32)
        arrays[f"lengths {index}"] = text.lengths.astype(np.int32)
    for index, task in enumerate(tasks):
        arrays[f"group {index}"] = task.group.astype(np.int32)
        arrays[f"train {index}"] = task.train.astype(np.int32)
        arrays[f"test {index}"] = task.test.astype(np.int32)
        arrays[f"weight {index}"] = task.weight
    header = {
        "classifier": as_dict(config),
        "explain": explain,
        "texts": len(texts),
        "tasks": [[text_index[id(task.texts)], task.groups, task.seed] for task in tasks],
    }
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    _save(path, arrays)


def read_plan(path: Path) -> tuple[list[ClassificationTask], ClassifierConfig, int]:
    stored = _load(path)
    try:
        header = parse_json(stored["header"].tobytes().decode())
        texts = []
        for index in range(header["texts"]):
            words = stored[f"words {index}"].tobytes().decode().split(_SEPARATOR)
            codes, lengths = stored[f"codes {index}"], stored[f"lengths {index}"]
            texts.append(Texts(tuple(words), codes.astype(np.int64), lengths.astype(np.int64)))
        tasks = [
            ClassificationTask(
                texts[text_index],
                stored[f"group {index}"].astype(np.int64),
                groups,
                stored[f"train {index}"].astype(np.int64),
                stored[f"test {index}"].astype(np.int64),
                stored[f"weight {index}"],
                seed,
            )
            for index, (text_index, groups, seed) in enumerate(header["tasks"])
        ]
        return tasks, from_dict(header["classifier"]), int(header["explain"])
    except (DocumentError, KeyError, ValueError, TypeError) as error:
        problem = Problem(str(path), "a plan of training tasks", f"something else ({error})")
        raise InputError([problem]) from error


def run_plan(folder: Path, device: str) -> Iterator[tuple[int, int]]:
    """Train the tasks of a folder's plan that are not cached; yields (tasks done, tasks to do) after each."""
    tasks, config, explain = read_plan(folder / PLAN)
    cache = TrainingCache(folder)
    pending = [task for task in tasks if cache.get(task, config, explain) is None]
    for done, (index, predictions) in enumerate(config.train(pending, device, explain), 1):
        cache.put(pending[index], config, explain, predictions)
        yield done, len(pending)


def _save(path: Path, arrays: dict[str, Any]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _load(path: Path) -> dict[str, Any]:
    try:
        # Opened here so that it is always closed. Pickles could run code and are not loaded.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # numpy's message for a pickle suggests to load it anyway, which would run any code in it.
        reason = error.strerror if isinstance(error, OSError) else None
        found = reason.lower() if reason else "something else"
        raise InputError([Problem(str(path), "arrays of predictions", found)]) from error
