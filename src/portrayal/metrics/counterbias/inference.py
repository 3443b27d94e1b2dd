"""Asking a model about a manifest part by part, so that an interrupted command goes on where it was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np

from portrayal.counterfactual.attack import Attack
from portrayal.counterfactual.inference import ask, by_picture
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Answers, Questions
from portrayal.engine import Checkpoint, Progress, code_digest
from portrayal.models.masked_vlm.model import FillsMasks
from portrayal.models.vision.images import read_picture

PART = 256  # pictures that are kept together, and four batches at least, so that they can be read ahead
_ENTRY = "answers.npz"
_ARRAYS = tuple(field.name for field in fields(Answers) if field.name != "seen")


def answers_of(
    model: FillsMasks,
    known_as: str | None,
    instances: Sequence[Instance],
    questions: Questions,
    attack: Attack | None,
    *,
    placebo: bool,
    seed: int,
    batch: int,
    show: Sequence[int],
    checkpoint: Path | None,
    progress: Progress | None,
    title: str,
) -> Answers:
    """`known_as` tells the model from others, or is None, and nothing is kept.

    `show` are the instances whose pictures are kept to be looked at.
    """
    kept: Checkpoint[Answers] | None = (
        None if checkpoint is None or known_as is None else Checkpoint(checkpoint, _save, _load)
    )
    pictures = list(by_picture(instances).values())
    parts, rows, done, wanted = [], [], 0, set(show)
    size = max(PART, 4 * batch) if kept is not None else len(pictures)
    for start in range(0, len(pictures), size):
        here = [row for some in pictures[start : start + size] for row in some]
        some = [instances[row] for row in here]
        shown = [place for place, row in enumerate(here) if row in wanted]
        asked = [questions, attack, placebo, seed, shown, [_file(one) for one in some]]
        key = _key(str(known_as), asked)
        found = kept.get(key) if kept is not None else None
        if found is None:
            found = ask(
                model, some, questions, attack, read_picture, placebo=placebo, seed=seed, batch=batch, show=shown,
                report_progress=_telling(progress, title, done, len(pictures)),
            )  # fmt: skip
            if kept is not None:
                kept.put(key, found)
        done += len(pictures[start : start + size])
        if progress is not None:
            progress(title, done, len(pictures))
        parts.append(found)
        rows.append(here)
    return _together(parts, rows, len(instances))


def _telling(progress: Progress | None, title: str, done: int, of: int) -> Callable[[int, int], None] | None:
    if progress is None:
        return None
    return lambda more, _: progress(title, done + more, of)


def _file(one: Instance) -> list[object]:
    """Changes with the row and with the files it names."""
    told: list[object] = [one.image, one.group, one.concept, one.kind]
    for path in (one.path, one.exact):
        if path is not None:
            told += [str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns]
    return told


def _key(known_as: str, asked: Sequence[object]) -> str:
    text = json.dumps([code_digest(), known_as, *map(str, asked)])
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _together(parts: Sequence[Answers], rows: Sequence[Sequence[int]], many: int) -> Answers:
    made = {}
    for name in _ARRAYS:
        first = getattr(parts[0], name)
        made[name] = np.full((many, *first.shape[1:]), np.nan)
        for part, here in zip(parts, rows, strict=True):
            made[name][list(here)] = getattr(part, name)
    seen = {
        here[row]: shown for part, here in zip(parts, rows, strict=True) for row, shown in part.seen.items()
    }
    return Answers(**made, seen=seen)


def _save(answers: Answers, folder: Path) -> None:
    shown = {f"seen {row}": pictures for row, pictures in answers.seen.items()}
    np.savez_compressed(folder / _ENTRY, **{name: getattr(answers, name) for name in _ARRAYS}, **shown)  # type: ignore[arg-type]


def _load(folder: Path) -> Answers:
    with np.load(folder / _ENTRY, allow_pickle=False) as kept:
        seen = {int(name[5:]): kept[name] for name in kept.files if name.startswith("seen ")}
        return Answers(**{name: kept[name] for name in _ARRAYS}, seen=seen)
