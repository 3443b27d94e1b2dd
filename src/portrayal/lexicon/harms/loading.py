"""Load a word list from the package or from a user's file, validate it, and label it by its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from portrayal.documents import DocumentError, parse_toml
from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.lexicon.tokens import tokenize

PARTS_OF_SPEECH = ("noun", "verb", "adjective", "adverb")
_METADATA = {"name", "version", "source", "licence", "note"}
_WordListT = TypeVar("_WordListT")


class WordListReader:
    """Reads the content of a file, and collects all problems, to raise them together."""

    def __init__(self, data: dict[str, Any], file: str, keys: set[str]):
        self.data = data
        self.file = file
        self.problems: list[Problem] = []
        for key in sorted(set(data) - keys - _METADATA):
            self.note(f"the keys {', '.join(sorted(keys | _METADATA))}", repr(key))
        if not isinstance(data.get("name"), str) or not data["name"].strip():
            self.note("a name", shown(data.get("name")))

    def note(self, expected: str, found: str) -> None:
        self.problems.append(Problem(self.file, expected, found))

    def words(self, what: str, value: Any) -> tuple[str, ...]:
        """A list of words, lower case, each once."""
        if not isinstance(value, list) or not value:
            self.note(f"{what} as a list of words", shown(value))
            return ()
        words: dict[str, None] = {}
        for word in value:
            if not isinstance(word, str) or not tokenize(word):
                self.note(f"words in {what}", shown(word))
            else:
                words[" ".join(word.casefold().split())] = None
        return tuple(words)

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
        words = {key: value for key, value in self.data.items() if key not in _METADATA}
        digest = hashlib.sha256(json.dumps(words, sort_keys=True, default=str).encode()).hexdigest()[:8]
        version = self.data.get("version")
        return "@".join(filter(None, (self.data["name"], None if version is None else str(version), digest)))


def load_word_list(
    name: str, path: str | Path | None, keys: set[str], build: Callable[[WordListReader], _WordListT]
) -> _WordListT:
    """Load a word list.

    Parameters
    ----------
    name
        The name of the shipped file, without its suffix.
    path
        A user's TOML file; None for the shipped list.
    keys
        The keys that a file may have, beside its name, version, source, licence and note.
    build
        Makes the word list from the reader of a file.
    """
    if path is None:
        shipped: _WordListT = _load_shipped(name, frozenset(keys), build)
        return shipped
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise PortrayalError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "UTF-8 text", "other bytes")]) from None
    return _parse(text, str(path), keys, build)


@cache
def _load_shipped(name: str, keys: frozenset[str], build: Callable[[WordListReader], Any]) -> Any:
    file = resources.files("portrayal.lexicon") / "words" / "harms" / f"{name}.toml"
    return _parse(file.read_text(encoding="utf-8"), file.name, set(keys), build)


def _parse(text: str, file: str, keys: set[str], build: Callable[[WordListReader], _WordListT]) -> _WordListT:
    try:
        data = parse_toml(text)
    except DocumentError as error:
        raise InputError([Problem(file, "TOML", error.found)]) from None
    reader = WordListReader(data, file, keys)
    if reader.problems:
        raise InputError(reader.problems)
    word_list = build(reader)
    if reader.problems:
        raise InputError(reader.problems)
    return word_list
