"""A table of how people look, from whatever made it: an image a row, a number from a model or a person a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from portrayal.errors import Problems, shown
from portrayal.metrics.harms.setup import Appearance
from portrayal.study.formats import read_raw
from portrayal.study.image_ids import image_id
from portrayal.study.validation import IDS


def read_appearance(path: Path) -> Appearance:
    """Every column beside the image's id is a physical attribute; an empty cell is unknown."""
    problems = Problems()
    raw = read_raw(path, problems)
    key = next((name for name in IDS if name in raw.columns), None)
    if key is None:
        raise problems.stop(path, f"a column {' or '.join(IDS)}", f"the columns {', '.join(raw.columns)}")
    names = tuple(name for name in raw.columns if name != key)
    if not names:
        raise problems.stop(path, "a column for at least one physical attribute", "image ids only")
    rows: dict[str, np.ndarray] = {}
    for index, value in enumerate(raw.columns[key]):
        image = image_id(value)
        if image is None:
            problems.note(path, "an image id", shown(value), raw.place(index))
            continue
        if image in rows:
            problems.note(path, "each image once", f"image {image} again", raw.place(index))
        numbers = [_number(raw.columns[name][index]) for name in names]
        for name, number in zip(names, numbers, strict=True):
            if number is None:
                found = shown(raw.columns[name][index])
                problems.note(path, f"a number in the column '{name}'", found, raw.place(index))
        rows[image] = np.array([np.nan if number is None else number for number in numbers])
    problems.settle()
    return Appearance(names, rows)


def _number(value: Any) -> float | None:
    """None for what is no number; nan for what is missing."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return float("nan")
    if isinstance(value, bool):
        return float(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if np.isinf(number) else number
