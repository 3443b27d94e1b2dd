"""Words of captions as categories: of objects, attributes and relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon.harms import Taxonomy
from portrayal.metrics.harms.image_records import Scene
from portrayal.metrics.harms.parsed_captions import Telling
from portrayal.models.word_vectors import WordVectors

OBJECTS, ATTRIBUTES, RELATIONS = KINDS = ("objects", "attributes", "relations")
_PARTS = {"noun": OBJECTS, "adjective": ATTRIBUTES, "verb": RELATIONS}
Array = NDArray[np.float64]
Told = Mapping[str, dict[str, float]]  # kind -> category -> how often


class Categories:
    """The category of a word: its own, or that of the nearest word in the taxonomy; none where nothing is near."""

    def __init__(self, taxonomy: Taxonomy, vectors: WordVectors | None, framing: frozenset[str]):
        self._known = {
            OBJECTS: taxonomy.objects, ATTRIBUTES: taxonomy.attributes, RELATIONS: taxonomy.relations,
        }  # fmt: skip
        self._vectors = vectors
        self._framing = framing
        self._found: dict[tuple[str, str], str | None] = {}
        self._near: dict[str, tuple[list[str], Array]] = {}

    def of(self, telling: Telling) -> Told:
        """The categories that captions name: a category counts once for each word that is in it."""
        told: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
        for kind, word in dict.fromkeys(
            (_PARTS[word.part], word.lemma) for word in telling.words if word.part in _PARTS
        ):
            self._add(told, kind, word)
        return told

    def of_labels(self, scene: Scene) -> Told:
        """The categories of people's labels. Those of attributes and relations are taken for either."""
        told: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
        for label in scene.labels or ():
            self._add(told, OBJECTS, label.lower())
        for label in scene.described:
            kind = RELATIONS if label.lower() in self._known[RELATIONS] else ATTRIBUTES
            self._add(told, kind, label.lower())
        return told

    def _add(self, told: dict[str, dict[str, float]], kind: str, word: str) -> None:
        category = self.category(kind, word)
        if category is not None:
            told[kind][category] = told[kind].get(category, 0.0) + 1

    def category(self, kind: str, word: str) -> str | None:
        if word in self._framing:
            return None
        own = self._known[kind].get(word)
        if own is not None:
            return own
        key = kind, word
        if key not in self._found:
            self._found[key] = self._nearest(kind, word)
        return self._found[key]

    def _nearest(self, kind: str, word: str) -> str | None:
        vectors = self._vectors
        if vectors is None:
            return None
        vector = _direction(vectors, word)
        if vector is None:
            return None
        if kind not in self._near:
            named = [(name, _direction(vectors, name)) for name in sorted(self._known[kind])]
            known = [(name, unit) for name, unit in named if unit is not None]
            matrix = np.array([unit for _, unit in known]) if known else np.empty((0, len(vector)))
            self._near[kind] = ([name for name, _ in known], matrix)
        names, matrix = self._near[kind]
        return self._known[kind][names[int((matrix @ vector).argmax())]] if names else None


def _direction(vectors: WordVectors, word: str) -> Array | None:
    """The vector of a word, or the mean of those of a name's words, of length 1; None where it is unknown."""
    vector = vectors.mean(word.split())
    length = 0.0 if vector is None else float(np.linalg.norm(vector))
    return None if vector is None or length == 0 else vector / length


def category_shares(told: Sequence[Told]) -> dict[str, dict[str, float]]:
    """The mean over several captions of an image."""
    made: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for one in told:
        for kind in KINDS:
            for category, times in one[kind].items():
                made[kind][category] = made[kind].get(category, 0.0) + times / len(told)
    return made


def chi_squared(table: Array) -> float:
    """Of a table of counts: how far it is from rows and columns that do not depend on each other.

    >>> round(chi_squared(np.array([[10.0, 20.0], [20.0, 10.0]])), 4)
    6.6667
    """
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / max(table.sum(), 1e-12)
    return float(
        np.sum(np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0))
    )


def cramers_v(chi: float, table: Array) -> float:
    """Chi-squared as a number from 0 (no dependence) to 1, less what chance alone would give (Bergsma 2013).

    >>> round(cramers_v(6000.0, np.array([[3000.0, 0.0], [0.0, 3000.0]])), 3)
    1.0
    >>> cramers_v(0.9, np.array([[30.0, 30.0], [30.0, 30.0]]))
    0.0
    """
    rows, columns = (int(np.count_nonzero(table.sum(axis=axis))) for axis in (1, 0))
    n = float(table.sum())
    if min(rows, columns) < 2 or n <= 1:
        return 0.0
    by_chance = (rows - 1) * (columns - 1) / (n - 1)
    smaller = min(side - (side - 1) ** 2 / (n - 1) for side in (rows, columns)) - 1
    return float(min(np.sqrt(max(chi / n - by_chance, 0.0) / smaller), 1.0)) if smaller > 0 else 0.0
