"""Dials: parameters of planted biases. A dial is one planted bias, by default from 0 to 1."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_args, get_origin

from portrayal.errors import PortrayalError, unknown_name

# One number for every group, or a number per group.
Rates = float | Mapping[str, float]


@dataclass(frozen=True)
class Dial:
    """Documentation and range of a dial. It is written in the annotation of the field that it documents.

    Parameters
    ----------
    meaning
        What the number is.
    zero
        What 0 means.
    low, high
        The range of the number.
    per_group
        Whether the dial also takes a number per group.
    """

    meaning: str
    zero: str
    low: float = 0.0
    high: float = 1.0
    per_group: bool = False


def dials_of(cls: type) -> dict[str, Dial]:
    """Return the dials of a dataclass by field name, in the order of its fields."""
    hints = typing.get_type_hints(cls, include_extras=True)
    dials = {}
    for field in fields(cls):
        hint = hints[field.name]
        if get_origin(hint) is Annotated and isinstance(get_args(hint)[1], Dial):
            dials[field.name] = get_args(hint)[1]
    return dials


def check_dials(settings: Any, groups: Mapping[str, object]) -> None:
    """Raise an error unless every dial of a dataclass is in its range and names known groups."""
    for name, dial in dials_of(type(settings)).items():
        value = getattr(settings, name)
        if isinstance(value, Mapping):
            for group in value:
                if group not in groups:
                    raise unknown_name(f"group of the dial '{dial_name(name)}'", group, list(groups))
        for number in value.values() if isinstance(value, Mapping) else (value,):
            if not isinstance(number, int | float) or not dial.low <= number <= dial.high:
                raise PortrayalError(
                    f"The dial '{dial_name(name)}' goes from {dial.low:g} to {dial.high:g}. Got {number!r} instead."
                )


def rate_of(rates: Rates, group: str) -> float:
    """Return the rate of one group; a group without a rate has 0."""
    return rates.get(group, 0.0) if isinstance(rates, Mapping) else rates


def dial_name(name: str) -> str:
    """Return the name of a dial as users write it, with hyphens."""
    return name.replace("_", "-")
