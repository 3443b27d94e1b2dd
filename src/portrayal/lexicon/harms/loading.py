"""A word list on its way in: read from the package or from a user's file, checked, and named by what it holds."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from portrayal.documents import Unreadable, parse_toml
from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.lexicon.tokens import tokenize

PARTS = ("noun", "verb", "adjective", "adverb")
_ABOUT = {"name", "version", "source", "licence", "note"}
_Made = TypeVar("_Made")


class Checked:
    """The content of a file while it is read: what is wrong is collected, and told all at once."""

    def __init__(self, data: dict[str, Any], file: str, keys: set[str]):
        self.data = data
        self.file = file
        self.problems: list[Problem] = []
        for key in sorted(set(data) - keys - _ABOUT):
            self.note(f"the keys {', '.join(sorted(keys | _ABOUT))}", repr(key))
        if not isinstance(data.get("name"), str) or not data["name"].strip():
            self.note("a name", shown(data.get("name")))

    def note(self, expected: str, found: str) -> None:
        self.problems.append(Problem(self.file, expected, found))

    def words(self, what: str, value: Any) -> tuple[str, ...]:
        """A list of words, lower case, each once."""
        if not isinstance(value, list) or not value:
            self.note(f"{what} as a list of words", shown(value))
            return ()
        made: dict[str, None] = {}
        for word in value:
            if not isinstance(word, str) or not tokenize(word):
                self.note(f"words in {what}", shown(word))
            else:
                made[" ".join(word.casefold().split())] = None
        return tuple(made)

    def table(self, key: str) -> dict[str, Any]:
        value = self.data.get(key, {})
        if isinstance(value, dict):
            return value
        self.note(f"a table [{key}]", shown(value))
        return {}

    def lists(self, key: str) -> dict[str, tuple[str, ...]]:
        """A table of lists of words."""
        return {name: self.words(f"'{name}' in [{key}]", value) for name, value in self.table(key).items()}

    @property
    def label(self) -> str:
        words = {key: value for key, value in self.data.items() if key not in _ABOUT}
        digest = hashlib.sha256(json.dumps(words, sort_keys=True, default=str).encode()).hexdigest()[:8]
        version = self.data.get("version")
        return "@".join(filter(None, (self.data["name"], None if version is None else str(version), digest)))


def loaded(name: str, path: str | Path | None, keys: set[str], make: Callable[[Checked], _Made]) -> _Made:
    if path is None:
        made: _Made = _shipped(name, frozenset(keys), make)
        return made
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise PortrayalError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "UTF-8 text", "other bytes")]) from None
    return _parsed(text, str(path), keys, make)


@cache
def _shipped(name: str, keys: frozenset[str], make: Callable[[Checked], Any]) -> Any:
    file = resources.files("portrayal.lexicon") / "words" / "harms" / f"{name}.toml"
    return _parsed(file.read_text(encoding="utf-8"), file.name, set(keys), make)


def _parsed(text: str, file: str, keys: set[str], make: Callable[[Checked], _Made]) -> _Made:
    try:
        data = parse_toml(text)
    except Unreadable as error:
        raise InputError([Problem(file, "TOML", error.found)]) from None
    checked = Checked(data, file, keys)
    if checked.problems:
        raise InputError(checked.problems)
    made = make(checked)
    if checked.problems:
        raise InputError(checked.problems)
    return made
