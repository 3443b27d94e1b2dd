"""Read a table of physical attributes, made by any model or annotator: a row per image, a column per attribute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from portrayal.errors import Problems, shown
from portrayal.metrics.harms.settings import Appearance
from portrayal.study.formats import read_raw
from portrayal.study.image_ids import image_id
from portrayal.study.validation import ID_COLUMNS


def read_appearance(path: Path) -> Appearance:
    """Read a table of physical attributes.

    All columns other than the image id are attributes. An empty cell is an unknown value.
    """
    problems = Problems()
    raw = read_raw(path, problems)
    key = next((name for name in ID_COLUMNS if name in raw.columns), None)
    if key is None:
        raise problems.stop(
            path, f"a column {' or '.join(ID_COLUMNS)}", f"the columns {', '.join(raw.columns)}"
        )
    names = tuple(name for name in raw.columns if name != key)
    if not names:
        raise problems.stop(path, "a column for at least one physical attribute", "image ids only")
    rows: dict[str, np.ndarray] = {}
    for index, value in enumerate(raw.columns[key]):
        image = image_id(value)
        if image is None:
            problems.note(path, "an image id", shown(value), raw.location(index))
            continue
        if image in rows:
            problems.note(path, "each image once", f"image {image} again", raw.location(index))
        numbers = [_number(raw.columns[name][index]) for name in names]
        for name, number in zip(names, numbers, strict=True):
            if number is None:
                value_text = shown(raw.columns[name][index])
                problems.note(path, f"a number in the column '{name}'", value_text, raw.location(index))
        rows[image] = np.array([np.nan if number is None else number for number in numbers])
    problems.settle()
    return Appearance(names, rows)


def _number(value: Any) -> float | None:
    """The value as a number; nan if it is missing, None if it is not a number."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return float("nan")
    if isinstance(value, bool):
        return float(value)
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if np.isinf(number) else number
