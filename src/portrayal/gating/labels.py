"""What a row is about, in as many words as tell it from the other rows of a rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from portrayal.gating.names import value_of
from portrayal.results import Measurement

_WHOLE = {"group": "all", "item": "all"}  # how the row of all is called beside rows of single ones


def labels(rows: Sequence[Measurement]) -> list[dict[str, str]]:
    """For each row: system, attribute, group and item, then the unit and settings by which rows still differ.

    Settings stand in the order of how much they say, so the first that separates two rows is the one to name: what
    follows from it is not repeated.

    >>> a, b = (Measurement("lic", "lic", system="s", value=1.0, settings={"split": split}) for split in ("x", "y"))
    >>> labels([a, b])
    [{'system': 's', 'split': 'x'}, {'system': 's', 'split': 'y'}]
    """
    names = [
        field
        for field in ("system", "attribute", "group", "item")
        if any(value_of(m, field) is not None for m in rows)
    ]
    further = ["unit", *dict.fromkeys(name for m in rows for name in m.settings)]
    for name in further:
        count = _count(rows, names)
        if count == len(rows):
            break
        if _count(rows, [*names, name]) > count:
            names.append(name)
    return [{name: _shown(m, name) for name in names if _is_told(m, name)} for m in rows]


def _count(rows: Sequence[Measurement], names: Sequence[str]) -> int:
    """How many rows these names tell apart."""
    return len({tuple(value_of(m, name) for name in names) for m in rows})


def _is_told(m: Measurement, name: str) -> bool:
    return value_of(m, name) is not None or name not in ("system", "attribute")


def _shown(m: Measurement, name: str) -> str:
    value = value_of(m, name)
    return _WHOLE.get(name, "none") if value is None else value


def as_text(label: dict[str, str], wanted: Callable[[str], bool] = lambda _: True) -> str:
    """A label in one line: "system a, group female, split paper"."""
    return ", ".join(f"{name} {value}" for name, value in label.items() if wanted(name))
