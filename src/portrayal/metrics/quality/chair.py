"""CHAIR: objects that a caption names and that nobody saw in the image."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from portrayal.lexicon import ObjectFinder, tokenize
from portrayal.lexicon.people import mentions_of_people
from portrayal.metrics.quality.ngrams import Array

PERSON = "person"


class Mentions:
    """The objects that captions name, each mention by itself. Captions repeat, so each is read once.

    Where `people` are looked for, whoever is named is one object: a caption that says "person" of a woman makes up no
    more than one that says "woman".
    """

    def __init__(self, finder: ObjectFinder, people: bool):
        self._finder = finder
        self._people = people
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, caption: str) -> tuple[str, ...]:
        found = self._known.get(caption)
        if found is None:
            tokens = tokenize(caption)
            found = tuple(match.value for match in self._finder.matches(tokens))
            if self._people:
                found += (PERSON,) * mentions_of_people(tokens)
            self._known[caption] = found
        return found


def hallucinated(said: Sequence[str], there: Iterable[str]) -> list[str]:
    """The mentions of what is not there, repeats included."""
    seen = set(there)
    return [label for label in said if label not in seen]


def chair_parts(said: Sequence[Sequence[str]], false: Sequence[Sequence[str]]) -> Array:
    """What CHAIR adds up, a row per caption: false mentions, mentions, and whether one is false."""
    rows = [(len(bad), len(some), bool(bad)) for some, bad in zip(said, false, strict=True)]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)
