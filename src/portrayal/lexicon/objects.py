"""Finding objects in captions: a label, its plural, and the other words people use for it."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from portrayal.errors import InputError, PortrayalError, Problem
from portrayal.lexicon.phrases import Match, PhraseTable
from portrayal.lexicon.tokens import tokenize


class ObjectFinder:
    """Which of some labels a caption names. Longer names win: "hot dog" names no dog."""

    def __init__(self, labels: Iterable[str], synonyms: Mapping[str, Iterable[str]] | None = None):
        known = shipped_synonyms() if synonyms is None else synonyms
        entries: dict[str, str] = {}
        for label in labels:
            spaced = label.replace("_", " ")
            for name in (spaced, *known.get(spaced.lower(), ())):
                for form in (name, plural(name)):
                    entries.setdefault(form.lower(), label)  # where two labels share a word, the first has it
        self._table = PhraseTable(entries.items())

    def labels(self, caption: str) -> tuple[str, ...]:
        """The labels a caption names, each once, in the order of their first mention.

        >>> ObjectFinder(["dog", "hot dog", "dining table"]).labels("two dogs at a table with a hot dog")
        ('dog', 'dining table', 'hot dog')
        """
        return tuple(dict.fromkeys(match.value for match in self.matches(tokenize(caption))))

    def matches(self, tokens: Sequence[str]) -> list[Match]:
        """Where labels are named in the tokens of a caption; a match's value is the label."""
        return list(self._table.find(tokens))


def plural(name: str) -> str:
    """The regular English plural of a noun.

    >>> [plural(word) for word in ("dog", "bus", "sandwich", "berry", "toy", "knife")]
    ['dogs', 'buses', 'sandwiches', 'berries', 'toys', 'knives']
    """
    if name.endswith(("s", "x", "ch", "sh")):
        return name + "es"
    if name.endswith("y") and name[-2:-1] not in "aeiou":
        return name[:-1] + "ies"
    if name.endswith("fe"):
        return name[:-2] + "ves"
    return name + "s"


@cache
def shipped_synonyms() -> dict[str, tuple[str, ...]]:
    """Other words for common objects, written for Portrayal."""
    text = (resources.files("portrayal.lexicon") / "words" / "synonyms" / "objects.toml").read_text(
        encoding="utf-8"
    )
    return {label: tuple(words) for label, words in tomllib.loads(text)["synonyms"].items()}


def synonyms_label(synonyms: Mapping[str, Iterable[str]], path: Path) -> str:
    """How settings name a user's list: by its file and its words, not by where it lies."""
    words = json.dumps({label: list(others) for label, others in synonyms.items()}, sort_keys=True)
    return f"{path.name}@{hashlib.sha256(words.encode()).hexdigest()[:8]}"


def read_synonyms(path: Path) -> dict[str, tuple[str, ...]]:
    """A user's list: a line per object, its label first, then other words for it, separated by commas."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError:
        raise PortrayalError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "UTF-8 text", "other bytes")]) from None
    made: dict[str, tuple[str, ...]] = {}
    for line in lines:
        words = [word.strip().lower() for word in line.split(",") if tokenize(word)]
        if words:
            made[words[0]] = (*made.get(words[0], ()), *words[1:])
    if not made:
        raise InputError([Problem(str(path), "lines of a label and its synonyms", "none")])
    return made
