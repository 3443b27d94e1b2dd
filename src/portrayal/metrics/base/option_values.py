"""Conversion of option values that a user gives: text on a command line, or TOML in a file."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from portrayal.errors import PortrayalError, shown, unknown_name
from portrayal.metrics.base.metric import Metric

_TRUE_WORDS, _FALSE_WORDS = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def option_name(metric: Metric, name_or_alias: str) -> str:
    """The name of an option; hyphens and underscores are equivalent.

    >>> from portrayal.metrics import find_metric
    >>> option_name(find_metric("gender-score"), "language-model")
    'language_model'
    """
    name = name_or_alias.replace("-", "_")
    if name not in metric.options:
        known = [option.replace("_", "-") for option in metric.options]
        raise unknown_name(f"option of the metric '{metric.name}'", name_or_alias, known)
    return name


def option_value(metric: Metric, name: str, raw: object) -> Any:
    """The value of an option, converted to its type in the metric's signature.

    >>> from portrayal.metrics import find_metric
    >>> option_value(find_metric("lic"), "folds", "4"), option_value(find_metric("lic"), "split", "paper")
    (4, ('paper',))
    """
    allowed = _allowed_types(metric.options[name].annotation)
    value = _convert(allowed, raw)
    if value is None:
        raise PortrayalError(
            f"The option '{name.replace('_', '-')}' of the metric '{metric.name}' must be {_describe_types(allowed)}. "
            f"Got {shown(raw)} instead."
        )
    metric.check_options({name: value})
    return value


def _allowed_types(annotation: Any) -> tuple[Any, ...]:
    """The types that an annotation allows, without None and types that only Python code can pass."""
    if get_origin(annotation) is typing.Annotated:
        annotation = get_args(annotation)[0]
    is_union = get_origin(annotation) in (typing.Union, types.UnionType)
    members = (
        [allowed_type for member in get_args(annotation) for allowed_type in _allowed_types(member)]
        if is_union
        else [annotation]
    )
    plain = (bool, int, float, str)
    return tuple(
        allowed_type
        for allowed_type in members
        if allowed_type in plain or get_origin(allowed_type) in (tuple, Literal)
    )


def _convert(allowed: tuple[Any, ...], raw: object) -> Any:
    """The value, converted to the first type that accepts it; None where no type does."""
    for allowed_type in allowed:
        if get_origin(allowed_type) is tuple:
            element = _allowed_types(get_args(allowed_type)[0])
            parts = list(raw) if isinstance(raw, list | tuple) else _split(element, raw)
            values = [_convert(element, part) for part in parts]
            if values and None not in values:
                return tuple(values)
        elif not isinstance(raw, list | tuple | Mapping):
            value = _convert_scalar(allowed_type, raw)
            if value is not None:
                return value
    return None


def _split(element: tuple[Any, ...], raw: object) -> list[object]:
    """Split numbers and names at commas; free text may contain commas and is kept whole."""
    if isinstance(raw, str) and str not in element:
        return [part.strip() for part in raw.split(",")]
    return [raw]


def _convert_scalar(allowed_type: Any, raw: object) -> Any:
    text = str(raw).strip()
    if allowed_type is bool:
        return True if text.lower() in _TRUE_WORDS else False if text.lower() in _FALSE_WORDS else None
    if isinstance(raw, bool):
        return None
    if allowed_type in (int, float):
        try:
            return allowed_type(text)
        except (ValueError, OverflowError):
            return None
    return text if isinstance(raw, str | int | float) else None


def _describe_types(allowed: tuple[Any, ...]) -> str:
    names = {bool: "yes or no", int: "a whole number", float: "a number", str: "text"}
    descriptions = []
    for allowed_type in allowed:
        if get_origin(allowed_type) is tuple:
            descriptions.append(f"a list, each {_describe_types(_allowed_types(get_args(allowed_type)[0]))}")
        elif get_origin(allowed_type) is Literal:
            descriptions.append(f"one of {', '.join(map(str, get_args(allowed_type)))}")
        else:
            descriptions.append(names[allowed_type])
    return " or ".join(descriptions)
