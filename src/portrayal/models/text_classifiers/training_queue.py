"""Trainings that are kept in a folder: what was trained once is not trained again, here or on another machine.

Each answer is a file of plain arrays, named by a digest of the captions, labels and settings behind it. Trainings that
wait stand in one file, so that a machine with a GPU and nothing of the study can do them:
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

from portrayal.documents import Unreadable, parse_json
from portrayal.errors import InputError, Problem
from portrayal.files import replacing
from portrayal.models.text_classifiers.schedules import Classifier, as_dict, from_dict, key
from portrayal.models.text_classifiers.tasks import Answer, Task, Texts

PLAN = "plan.npz"
_BETWEEN = "\n"  # words of a plan; no word has it


@dataclass(frozen=True)
class Kept:
    """The answers in a folder."""

    folder: Path

    def get(self, task: Task, classifier: Classifier, explain: int) -> Answer | None:
        path = self._path(task, classifier, explain)
        if not path.exists():
            return None
        stored = _load(path)
        likely = stored["likely"].astype(np.float64)
        parts = stored["parts"].astype(np.float64) if "parts" in stored else None
        expected = (len(task.test), task.groups)
        if likely.shape != expected:
            raise InputError([Problem(str(path), f"probabilities of shape {expected}", str(likely.shape))])
        return Answer(likely, parts)

    def put(self, task: Task, classifier: Classifier, explain: int, answer: Answer) -> None:
        arrays = {"likely": answer.likely.astype(np.float32)}
        if answer.parts is not None:
            arrays["parts"] = answer.parts.astype(np.float32)
        _save(self._path(task, classifier, explain), arrays)

    def _path(self, task: Task, classifier: Classifier, explain: int) -> Path:
        return self.folder / f"{key(task, classifier, explain)}.npz"


def write_plan(path: Path, tasks: Sequence[Task], classifier: Classifier, explain: int) -> None:
    """Trainings that wait; captions that several of them share are written once."""
    texts = list({id(task.texts): task.texts for task in tasks}.values())
    number = {id(some): place for place, some in enumerate(texts)}
    arrays: dict[str, Any] = {}
    for place, some in enumerate(texts):
        arrays[f"words {place}"] = np.frombuffer(_BETWEEN.join(some.words).encode(), dtype=np.uint8)
        arrays[f"codes {place}"] = some.codes.astype(np.int32)
        arrays[f"lengths {place}"] = some.lengths.astype(np.int32)
    for place, task in enumerate(tasks):
        arrays[f"group {place}"] = task.group.astype(np.int32)
        arrays[f"train {place}"] = task.train.astype(np.int32)
        arrays[f"test {place}"] = task.test.astype(np.int32)
        arrays[f"weight {place}"] = task.weight
    about = {
        "classifier": as_dict(classifier),
        "explain": explain,
        "texts": len(texts),
        "tasks": [[number[id(task.texts)], task.groups, task.seed] for task in tasks],
    }
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    _save(path, arrays)


def read_plan(path: Path) -> tuple[list[Task], Classifier, int]:
    stored = _load(path)
    try:
        about = parse_json(stored["about"].tobytes().decode())
        texts = []
        for place in range(about["texts"]):
            words = stored[f"words {place}"].tobytes().decode().split(_BETWEEN)
            codes, lengths = stored[f"codes {place}"], stored[f"lengths {place}"]
            texts.append(Texts(tuple(words), codes.astype(np.int64), lengths.astype(np.int64)))
        tasks = [
            Task(
                texts[of],
                stored[f"group {place}"].astype(np.int64),
                groups,
                stored[f"train {place}"].astype(np.int64),
                stored[f"test {place}"].astype(np.int64),
                stored[f"weight {place}"],
                seed,
            )
            for place, (of, groups, seed) in enumerate(about["tasks"])
        ]
        return tasks, from_dict(about["classifier"]), int(about["explain"])
    except (Unreadable, KeyError, ValueError, TypeError) as error:
        problem = Problem(str(path), "a plan of trainings", f"something else ({error})")
        raise InputError([problem]) from error


def carry_out(folder: Path, device: str) -> Iterator[tuple[int, int]]:
    """Do what waits in a folder; tells each time how many trainings of how many are done."""
    tasks, classifier, explain = read_plan(folder / PLAN)
    kept = Kept(folder)
    waiting = [task for task in tasks if kept.get(task, classifier, explain) is None]
    for done, (place, answer) in enumerate(classifier.train(waiting, device, explain), 1):
        kept.put(waiting[place], classifier, explain, answer)
        yield done, len(waiting)


def _save(path: Path, arrays: dict[str, Any]) -> None:
    with replacing(path) as temporary, temporary.open("wb") as file:
        np.savez_compressed(file, **arrays)


def _load(path: Path) -> dict[str, Any]:
    try:
        # Opened here, so that it is closed whatever it holds; a pickle could run code, so none is read.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        # What numpy says of a pickle advises to read it all the same, which would run whatever it holds.
        known = error.strerror if isinstance(error, OSError) else None
        found = known.lower() if known else "something else"
        raise InputError([Problem(str(path), "arrays of trainings", found)]) from error
