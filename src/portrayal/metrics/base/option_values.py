"""Values of a metric's options as a user writes them: text on a command line, or TOML in a file."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin

from portrayal.errors import PortrayalError, shown, unknown_name
from portrayal.metrics.base.metric import Metric

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def option_name(metric: Metric, written: str) -> str:
    """The option that a user means: hyphens and underscores are one.

    >>> from portrayal.metrics import find_metric
    >>> option_name(find_metric("gender-score"), "language-model")
    'language_model'
    """
    name = written.replace("-", "_")
    if name not in metric.options:
        known = [option.replace("_", "-") for option in metric.options]
        raise unknown_name(f"option of the metric '{metric.name}'", written, known)
    return name


def option_value(metric: Metric, name: str, written: object) -> Any:
    """The value of an option, of the type that the metric's signature gives it.

    >>> from portrayal.metrics import find_metric
    >>> option_value(find_metric("lic"), "folds", "4"), option_value(find_metric("lic"), "split", "paper")
    (4, ('paper',))
    """
    kinds = _kinds(metric.options[name].annotation)
    value = _converted(kinds, written)
    if value is None:
        raise PortrayalError(
            f"The option '{name.replace('_', '-')}' of the metric '{metric.name}' must be {_expected(kinds)}. "
            f"Got {shown(written)} instead."
        )
    metric.checked({name: value})
    return value


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """The types that an annotation allows, without None and what only Python can pass."""
    if get_origin(annotation) is typing.Annotated:
        annotation = get_args(annotation)[0]
    union = get_origin(annotation) in (typing.Union, types.UnionType)
    members = [kind for member in get_args(annotation) for kind in _kinds(member)] if union else [annotation]
    plain = (bool, int, float, str)
    return tuple(kind for kind in members if kind in plain or get_origin(kind) in (tuple, Literal))


def _converted(kinds: tuple[Any, ...], written: object) -> Any:
    """The value by the first type that takes it; None when none does."""
    for kind in kinds:
        if get_origin(kind) is tuple:
            element = _kinds(get_args(kind)[0])
            parts = list(written) if isinstance(written, list | tuple) else _split(element, written)
            values = [_converted(element, part) for part in parts]
            if values and None not in values:
                return tuple(values)
        elif not isinstance(written, list | tuple | Mapping):
            value = _scalar(kind, written)
            if value is not None:
                return value
    return None


def _split(element: tuple[Any, ...], written: object) -> list[object]:
    """Numbers and names are separated by commas; a free text may hold commas itself."""
    if isinstance(written, str) and str not in element:
        return [part.strip() for part in written.split(",")]
    return [written]


def _scalar(kind: Any, written: object) -> Any:
    text = str(written).strip()
    if kind is bool:
        return True if text.lower() in _YES else False if text.lower() in _NO else None
    if isinstance(written, bool):
        return None
    if kind in (int, float):
        try:
            return kind(text)
        except (ValueError, OverflowError):
            return None
    return text if isinstance(written, str | int | float) else None


def _expected(kinds: tuple[Any, ...]) -> str:
    names = {bool: "yes or no", int: "a whole number", float: "a number", str: "text"}
    told = []
    for kind in kinds:
        if get_origin(kind) is tuple:
            told.append(f"a list, each {_expected(_kinds(get_args(kind)[0]))}")
        elif get_origin(kind) is Literal:
            told.append(f"one of {', '.join(map(str, get_args(kind)))}")
        else:
            told.append(names[kind])
    return " or ".join(told)
