"""Dials: numbers that turn a known fault up or down, each with its range and what 0 means."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_origin

from portrayal.errors import PortrayalError, unknown_name

Rates = float | Mapping[str, float]  # one number for every group, or a number per group


@dataclass(frozen=True)
class Dial:
    """What a dial turns. It stands in the annotation of the field it documents."""

    meaning: str
    zero: str
    low: float = 0.0
    high: float = 1.0
    per_group: bool = False


def dials_of(kind: type) -> dict[str, Dial]:
    """The dials of a class by field name, in the order in which they stand there."""
    hints = typing.get_type_hints(kind, include_extras=True)
    found = {}
    for field in fields(kind):
        hint = hints[field.name]
        if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], Dial):
            found[field.name] = get_args(hint)[1]
    return found


def check_dials(settings: Any, groups: Mapping[str, object]) -> None:
    """Every dial of a dataclass is in its range, and rates per group speak of groups there are."""
    for name, dial in dials_of(type(settings)).items():
        value = getattr(settings, name)
        if isinstance(value, Mapping):
            for group in value:
                if group not in groups:
                    raise unknown_name(f"group of the dial '{spelled(name)}'", group, list(groups))
        for number in value.values() if isinstance(value, Mapping) else (value,):
            if not isinstance(number, int | float) or not dial.low <= number <= dial.high:
                raise PortrayalError(
                    f"The dial '{spelled(name)}' goes from {dial.low:g} to {dial.high:g}. Got {number!r} instead."
                )


def rate_of(rates: Rates, group: str) -> float:
    """The rate of one group; a group that is not mentioned has 0."""
    return rates.get(group, 0.0) if isinstance(rates, Mapping) else rates


def spelled(name: str) -> str:
    """A field's name as users write it."""
    return name.replace("_", "-")
