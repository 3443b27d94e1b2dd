"""Reading untrusted JSON and TOML: every failure is one clear error, never a traceback."""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from portrayal.errors import InputError, Problem, shown

MAX_DEPTH = 100  # of nested lists and objects; our files have about ten levels
MAX_BITS = 1024  # of an integer: what a float can hold and Python converts to text
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")  # how JSON escapes half of a surrogate pair


class DocumentError(Exception):
    """A document cannot be parsed: what was found, with line and column."""

    def __init__(self, found: str, line: int | None = None, character: int | None = None, cut: bool = False):
        super().__init__(found)
        self.found = found + (" (is the file cut short?)" if cut else "")
        self.fault = found  # without the guess at the reason
        self.location = None if line is None else f"line {line:,}"
        self.character = character


def parse_json(text: str, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Like json.loads; every failure raises `DocumentError`."""
    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        cut = error.pos >= len(text.rstrip()) - 1
        raise DocumentError(error.msg, error.lineno, error.colno, cut) from None
    except ValueError as error:
        raise DocumentError(_too_many_digits(error)) from None
    except RecursionError:
        raise DocumentError("lists or objects nested too deeply") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Like tomllib.loads; every failure raises `DocumentError`."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(str(error)) from None
    except ValueError as error:
        raise DocumentError(_too_many_digits(error)) from None
    except RecursionError:
        raise DocumentError("lists or tables nested too deeply") from None


def read_json(path: Path) -> Any:
    """The document in a JSON file; everything in it can be written again."""
    text = _read_text(path)
    try:
        document = parse_json(text)
    except DocumentError as error:
        raise InputError([Problem(str(path), "JSON", error.found, error.location)]) from None
    # Only an escape can produce half of a surrogate pair.
    problem = unwritable_part(document) if _SURROGATE.search(text) else None
    if problem:
        raise InputError([Problem(str(path), "text in Unicode", problem)])
    return document


def read_toml(path: Path) -> dict[str, Any]:
    """The document in a TOML file; everything in it can be written again."""
    try:
        document = parse_toml(_read_text(path))
    except DocumentError as error:
        raise InputError([Problem(str(path), "TOML", error.found, error.location)]) from None
    problem = unwritable_part(document)  # hexadecimal integers have any length, and a float can be nan
    if problem:
        raise InputError([Problem(str(path), "TOML", problem)])
    return document


def json_object(text: str | None) -> dict[str, Any] | None:
    """The JSON object in a text, such as the detail of evidence; None if it is not one."""
    try:
        document = parse_json(text or "")
    except DocumentError:
        return None
    return document if isinstance(document, dict) else None


def unwritable_part(document: Any) -> str | None:
    """The first part of a document that cannot be written again, in words; None if there is none.

    >>> unwritable_part({"a": [1, "b", None]}), unwritable_part({"a": [float("nan")]}), unwritable_part(["\\ud800"])
    (None, 'nan, which is no finite number', "half of a character in '\\\\ud800'")
    """
    stack: list[tuple[Any, int]] = [(document, 0)]
    while stack:  # not recursive: a document can be as deep as Python's recursion limit
        value, depth = stack.pop()
        if isinstance(value, dict | list):
            if depth >= MAX_DEPTH:
                return f"lists or objects more than {MAX_DEPTH} deep"
            inner = value if isinstance(value, list) else [*value.keys(), *value.values()]
            stack.extend((child, depth + 1) for child in reversed(inner))
        elif isinstance(value, str):
            if not is_unicode(value):
                return f"half of a character in {shown(value)}"
        elif isinstance(value, float):
            if not math.isfinite(value):
                return f"{value}, which is no finite number"
        elif isinstance(value, int) and value.bit_length() > MAX_BITS:
            return "a whole number with hundreds of digits"
    return None


def too_deep(value: list[Any] | dict[str, Any]) -> bool:
    """Whether lists and objects are nested more than MAX_DEPTH deep."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for parent in level
            for inner in (parent.values() if isinstance(parent, dict) else parent)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def is_unicode(text: str) -> bool:
    """Whether text can be encoded: JSON and file names can hold half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def writable(text: str) -> str:
    """The text, with a replacement character for whatever cannot be encoded.

    >>> writable("caf\\udce9")
    'caf\ufffd'
    """
    return text if is_unicode(text) else re.sub("[\ud800-\udfff]", "\ufffd", text)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            [Problem(str(path), "UTF-8 text", f"byte 0x{error.object[error.start]:02x}")]
        ) from None


def _too_many_digits(error: ValueError) -> str:
    """Python's message, without the advice to change Python's settings."""
    return str(error).partition(";")[0]
