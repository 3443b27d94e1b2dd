"""CHAIR: mentions of objects that are not in the image (Rohrbach et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from portrayal.lexicon import ObjectFinder, tokenize
from portrayal.lexicon.people import count_person_mentions
from portrayal.metrics.quality.ngrams import Array

PERSON = "person"


class ObjectMentionFinder:
    """Finds mentions of objects in captions. Results are cached, since captions repeat.

    With `include_people`, all words for people are mentions of the object "person", so that "person" for a woman is no
    more a hallucination than "woman".
    """

    def __init__(self, finder: ObjectFinder, include_people: bool):
        self._object_finder = finder
        self._include_people = include_people
        self._mentions_by_caption: dict[str, tuple[str, ...]] = {}

    def find(self, caption: str) -> tuple[str, ...]:
        """The object of each mention in a caption, repeats included."""
        mentions = self._mentions_by_caption.get(caption)
        if mentions is None:
            tokens = tokenize(caption)
            mentions = tuple(match.value for match in self._object_finder.matches(tokens))
            if self._include_people:
                mentions += (PERSON,) * count_person_mentions(tokens)
            self._mentions_by_caption[caption] = mentions
        return mentions


def hallucinated_mentions(mentioned: Sequence[str], present: Iterable[str]) -> list[str]:
    """The mentions of objects that are not in the image, repeats included."""
    present_labels = set(present)
    return [label for label in mentioned if label not in present_labels]


def chair_counts(mentioned: Sequence[Sequence[str]], hallucinated: Sequence[Sequence[str]]) -> Array:
    """The counts that CHAIR sums, with a row for each caption.

    Columns are hallucinated mentions, all mentions, and 1 if any mention is hallucinated.
    """
    counts = [
        (len(caption_hallucinations), len(caption_mentions), bool(caption_hallucinations))
        for caption_mentions, caption_hallucinations in zip(mentioned, hallucinated, strict=True)
    ]
    return np.array(counts, dtype=np.float64).reshape(-1, 3)
