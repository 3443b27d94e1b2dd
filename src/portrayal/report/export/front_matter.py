"""The YAML front matter of model cards: mappings, lists and scalars. All texts are quoted.

Written by hand, since PyYAML is no dependency of the core.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_PLAIN_KEY = re.compile("[a-z][a-z_-]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # which YAML does not read as text
_INDENT = "  "


def front_matter(values: Mapping[str, object], flat: Sequence[str] = ()) -> str:
    """The front matter. Values of keys in `flat` are written on one line."""
    return "\n".join(["---", *_mapping(values, "", flat), "---"]) + "\n"


def _mapping(values: Mapping[str, object], indent: str, flat: Sequence[str]) -> list[str]:
    lines = []
    for name, value in values.items():
        start = f"{indent}{_key(name)}:"
        lines += [f"{start} {_flat(value)}"] if name in flat else _after(start, value, indent + _INDENT, flat)
    return lines


def _sequence(values: Sequence[object], indent: str, flat: Sequence[str]) -> list[str]:
    lines = []
    for value in values:
        if isinstance(value, Mapping) and value:
            first, *rest = _mapping(value, indent + _INDENT, flat)
            lines += [f"{indent}- {first.lstrip(' ')}", *rest]
        else:
            lines += _after(f"{indent}-", value, indent + _INDENT, flat)
    return lines


def _after(start: str, value: object, indent: str, flat: Sequence[str]) -> list[str]:
    if isinstance(value, Mapping) and value:
        return [start, *_mapping(value, indent, flat)]
    if isinstance(value, list | tuple) and value:
        return [start, *_sequence(value, indent, flat)]
    return [f"{start} {_flat(value)}"]


def _flat(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(name)}: {_flat(inner)}" for name, inner in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_flat, value)) + "]"
    return _scalar(value)


def _key(name: object) -> str:
    text = str(name)
    return text if _PLAIN_KEY.fullmatch(text) and text not in _WORDS else quoted(text)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # YAML 1.1 reads 1e-07 without a point as text.
        return re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
    return quoted(str(value))


def quoted(text: str) -> str:
    """The text in double quotes with all unprintable characters escaped.

    >>> quoted('a "b"\\n')
    '"a \\\\"b\\\\"\\\\x0a"'
    """
    return '"' + "".join(_letter(letter) for letter in text) + '"'


def _letter(letter: str) -> str:
    if letter in '"\\':
        return "\\" + letter
    if letter.isprintable():
        return letter
    number = ord(letter)
    return (
        f"\\x{number:02x}"
        if number < 0x100
        else f"\\u{number:04x}"
        if number < 0x10000
        else f"\\U{number:08x}"
    )
