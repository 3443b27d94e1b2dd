"""Find objects in captions by their labels, plurals and synonyms."""

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
    """Finds object labels in captions. The longest name matches: "hot dog" is not a dog.

    Parameters
    ----------
    labels : iterable of str
        Labels to find.
    synonyms : mapping of str to iterable of str, optional
        Other words for each label. Default: the shipped synonyms.
    """

    def __init__(self, labels: Iterable[str], synonyms: Mapping[str, Iterable[str]] | None = None):
        known = shipped_synonyms() if synonyms is None else synonyms
        entries: dict[str, str] = {}
        for label in labels:
            spaced = label.replace("_", " ")
            for name in (spaced, *known.get(spaced.lower(), ())):
                for form in (name, plural(name)):
                    entries.setdefault(form.lower(), label)  # a word of two labels belongs to the first
        self._table = PhraseTable(entries.items())

    def labels(self, caption: str) -> tuple[str, ...]:
        """The distinct labels that a caption names, in the order of their first mention.

        >>> ObjectFinder(["dog", "hot dog", "dining table"]).labels("two dogs at a table with a hot dog")
        ('dog', 'dining table', 'hot dog')
        """
        return tuple(dict.fromkeys(match.value for match in self.matches(tokenize(caption))))

    def matches(self, tokens: Sequence[str]) -> list[Match]:
        """All matches in the tokens of a caption. The value of a match is its label."""
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
    """Synonyms of common objects, written for Portrayal."""
    text = (resources.files("portrayal.lexicon") / "words" / "synonyms" / "objects.toml").read_text(
        encoding="utf-8"
    )
    return {label: tuple(words) for label, words in tomllib.loads(text)["synonyms"].items()}


def synonyms_label(synonyms: Mapping[str, Iterable[str]], path: Path) -> str:
    """Label of a user's list in result settings: its file name and a hash of its words, without the folder."""
    words = json.dumps({label: list(others) for label, others in synonyms.items()}, sort_keys=True)
    return f"{path.name}@{hashlib.sha256(words.encode()).hexdigest()[:8]}"


def read_synonyms(path: Path) -> dict[str, tuple[str, ...]]:
    """Read a user's synonyms: one line per object with its label and then its synonyms, separated by commas."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError:
        raise PortrayalError(f"There is no file {path}.") from None
    except UnicodeDecodeError:
        raise InputError([Problem(str(path), "UTF-8 text", "other bytes")]) from None
    synonyms: dict[str, tuple[str, ...]] = {}
    for line in lines:
        words = [word.strip().lower() for word in line.split(",") if tokenize(word)]
        if words:
            synonyms[words[0]] = (*synonyms.get(words[0], ()), *words[1:])
    if not synonyms:
        raise InputError([Problem(str(path), "lines of a label and its synonyms", "none")])
    return synonyms
