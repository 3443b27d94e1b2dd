"""Short labels that distinguish the rows of a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from portrayal.gating.names import value_of
from portrayal.results import Measurement

_AGGREGATE = {"group": "all", "item": "all"}  # labels of aggregate rows


def row_labels(rows: Sequence[Measurement]) -> list[dict[str, str]]:
    """Return a label per row: system, attribute, group and item, then the unit and settings by which rows still differ.

    Settings are ordered by importance, so the first one that separates two rows is named and the others are omitted.

    >>> a, b = (Measurement("lic", "lic", system="s", value=1.0, settings={"split": split}) for split in ("x", "y"))
    >>> row_labels([a, b])
    [{'system': 's', 'split': 'x'}, {'system': 's', 'split': 'y'}]
    """
    names = [
        field
        for field in ("system", "attribute", "group", "item")
        if any(value_of(m, field) is not None for m in rows)
    ]
    candidates = ["unit", *dict.fromkeys(name for m in rows for name in m.settings)]
    for name in candidates:
        count = _count_distinct(rows, names)
        if count == len(rows):
            break
        if _count_distinct(rows, [*names, name]) > count:
            names.append(name)
    return [{name: _shown_value(m, name) for name in names if _is_shown(m, name)} for m in rows]


def _count_distinct(rows: Sequence[Measurement], names: Sequence[str]) -> int:
    """Return how many rows these names distinguish."""
    return len({tuple(value_of(m, name) for name in names) for m in rows})


def _is_shown(m: Measurement, name: str) -> bool:
    return value_of(m, name) is not None or name not in ("system", "attribute")


def _shown_value(m: Measurement, name: str) -> str:
    value = value_of(m, name)
    return _AGGREGATE.get(name, "none") if value is None else value


def label_text(label: dict[str, str], include: Callable[[str], bool] = lambda _: True) -> str:
    """Return a label on one line: "system a, group female, split paper"."""
    return ", ".join(f"{name} {value}" for name, value in label.items() if include(name))
