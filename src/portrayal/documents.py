"""Reading JSON and TOML that may come from anyone: what cannot be read is said, and nothing ends in a traceback."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from portrayal.errors import InputError, Problem, shown

MOST_DEEP = 100  # lists and objects inside one another; a file of ours has about ten
MOST_BITS = 1024  # of a whole number: what a float can hold, and what Python still writes out
_HALF = re.compile(r"\\u[dD][89a-fA-F]")  # how JSON names half of a surrogate pair


class Unreadable(Exception):
    """What was found instead of a document, and where: in which line, and how far into it."""

    def __init__(self, found: str, line: int | None = None, character: int | None = None, cut: bool = False):
        super().__init__(found)
        self.found = found + (" (is the file cut short?)" if cut else "")
        self.fault = found  # without what may be the reason
        self.place = None if line is None else f"line {line:,}"
        self.character = character


def parse_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Like json.loads; every way in which it can fail is `Unreadable`."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) - 1
        raise Unreadable(error.msg, error.lineno, error.colno, cut) from None
    except ValueError as error:
        raise Unreadable(_too_many_digits(error)) from None
    except RecursionError:
        raise Unreadable("lists or objects nested too deeply") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Like tomllib.loads; every way in which it can fail is `Unreadable`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(str(error)) from None
    except ValueError as error:
        raise Unreadable(_too_many_digits(error)) from None
    except RecursionError:
        raise Unreadable("lists or tables nested too deeply") from None


def read_json(path: Path) -> Any:
    """The document in a file of JSON, all of which can be written again."""
    text = _text(path)
    try:
        found = parse_json(text)
    except Unreadable as error:
        raise InputError([Problem(str(path), "JSON", error.found, error.place)]) from None
    fault = unwritable(found) if _HALF.search(text) else None  # only an escape can bring half a character
    if fault:
        raise InputError([Problem(str(path), "text in Unicode", fault)])
    return found


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a file of TOML, all of which can be written again."""
    try:
        found = parse_toml(_text(path))
    except Unreadable as error:
        raise InputError([Problem(str(path), "TOML", error.found, error.place)]) from None
    fault = unwritable(found)  # hexadecimal numbers may have any length, and a float may be nan
    if fault:
        raise InputError([Problem(str(path), "TOML", fault)])
    return found


def json_object(text: str | None) -> dict[str, Any] | None:
    """The JSON object that a text spells, such as the detail of evidence; None where it spells none."""
    try:
        found = parse_json(text or "")
    except Unreadable:
        return None
    return found if isinstance(found, dict) else None


def unwritable(document: Any) -> str | None:
    """What in a document that was read cannot be written again, in words: the first such thing, or None.

    >>> unwritable({"a": [1, "b", None]}), unwritable({"a": [float("nan")]}), unwritable(["\\ud800"])
    (None, 'nan, which is no finite number', "half of a character in '\\\\ud800'")
    """
    waiting: list[tuple[Any, int]] = [(document, 0)]
    while waiting:  # a loop, not a recursion: a document may be as deep as Python's own limit
        value, depth = waiting.pop()
        if isinstance(value, dict | list):
            if depth >= MOST_DEEP:
                return f"lists or objects more than {MOST_DEEP} deep"
            inner = value if isinstance(value, list) else [*value.keys(), *value.values()]
            waiting.extend((one, depth + 1) for one in reversed(inner))
        elif isinstance(value, str):
            if not is_unicode(value):
                return f"half of a character in {shown(value)}"
        elif isinstance(value, float):
            if not math.isfinite(value):
                return f"{value}, which is no finite number"
        elif isinstance(value, int) and value.bit_length() > MOST_BITS:
            return "a whole number with hundreds of digits"
    return None


def too_deep(value: list[Any] | dict[str, Any]) -> bool:
    """Whether lists and objects stand inside one another more often than anything of ours does."""
    level: list[Any] = [value]
    for _ in range(MOST_DEEP):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def is_unicode(text: str) -> bool:
    """Whether text can be written at all: JSON and file names can hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def writable(text: str) -> str:
    """The same text, with a replacement character for whatever cannot be written.

    >>> writable("caf\\udce9")
    'caf\ufffd'
    """
    return text if is_unicode(text) else re.sub("[\ud800-\udfff]", "\ufffd", text)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            [Problem(str(path), "UTF-8 text", f"byte 0x{error.object[error.start]:02x}")]
        ) from None


def _too_many_digits(error: ValueError) -> str:
    """Python's own sentence, without the advice to change Python's settings."""
    return str(error).partition(";")[0]
