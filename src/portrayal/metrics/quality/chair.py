"""CHAIR: objects that a caption names and that are not in the image (Rohrbach et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from portrayal.lexicon import ObjectFinder, tokenize
from portrayal.lexicon.people import count_person_mentions
from portrayal.metrics.quality.ngrams import Array

PERSON = "person"


class ObjectMentions:
    """Finds the mentions of objects in captions. Results are cached, since captions repeat.

    With `people`, all words for people mention one object: "person" for a woman is no more a hallucination than
    "woman".
    """

    def __init__(self, finder: ObjectFinder, people: bool):
        self._finder = finder
        self._people = people
        self._cache: dict[str, tuple[str, ...]] = {}

    def find(self, caption: str) -> tuple[str, ...]:
        """The mentioned objects, repeats included."""
        mentions = self._cache.get(caption)
        if mentions is None:
            tokens = tokenize(caption)
            mentions = tuple(match.value for match in self._finder.matches(tokens))
            if self._people:
                mentions += (PERSON,) * count_person_mentions(tokens)
            self._cache[caption] = mentions
        return mentions


def hallucinated_mentions(mentioned: Sequence[str], present: Iterable[str]) -> list[str]:
    """The mentions of objects that are not present, repeats included."""
    present_labels = set(present)
    return [label for label in mentioned if label not in present_labels]


def chair_counts(mentioned: Sequence[Sequence[str]], hallucinated: Sequence[Sequence[str]]) -> Array:
    """Counts that CHAIR sums, a row per caption: hallucinated mentions, mentions, and whether one is hallucinated."""
    rows = [
        (len(false_mentions), len(mentions), bool(false_mentions))
        for mentions, false_mentions in zip(mentioned, hallucinated, strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)
