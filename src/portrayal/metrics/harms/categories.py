"""Map words of captions to categories of objects, attributes and relations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon.harms import Taxonomy
from portrayal.metrics.harms.image_records import ImageRecord
from portrayal.metrics.harms.parsed_captions import Parsed
from portrayal.models.word_vectors import WordVectors

OBJECTS, ATTRIBUTES, RELATIONS = KINDS = ("objects", "attributes", "relations")
_KIND_OF_POS = {"noun": OBJECTS, "adjective": ATTRIBUTES, "verb": RELATIONS}
Array = NDArray[np.float64]
CategoryCounts = Mapping[str, dict[str, float]]  # kind -> category -> count


class CategoryFinder:
    """Find the category of a word: its own in the taxonomy, or that of the nearest taxonomy word by word vectors."""

    def __init__(self, taxonomy: Taxonomy, vectors: WordVectors | None, framing_words: frozenset[str]):
        self._taxonomy = {
            OBJECTS: taxonomy.objects, ATTRIBUTES: taxonomy.attributes, RELATIONS: taxonomy.relations,
        }  # fmt: skip
        self._vectors = vectors
        self._framing_words = framing_words
        self._cache: dict[tuple[str, str], str | None] = {}
        self._matrices: dict[str, tuple[list[str], Array]] = {}

    def count_caption(self, parsed: Parsed) -> CategoryCounts:
        """Count the categories that a caption names, once for each distinct word of a category."""
        counts: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
        for kind, word in dict.fromkeys(
            (_KIND_OF_POS[word.pos], word.lemma) for word in parsed.words if word.pos in _KIND_OF_POS
        ):
            self._count(counts, kind, word)
        return counts

    def count_labels(self, record: ImageRecord) -> CategoryCounts:
        """Count the categories of human labels. A label other than an object may be an attribute or a relation."""
        counts: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
        for label in record.labels or ():
            self._count(counts, OBJECTS, label.lower())
        for label in record.other_labels:
            kind = RELATIONS if label.lower() in self._taxonomy[RELATIONS] else ATTRIBUTES
            self._count(counts, kind, label.lower())
        return counts

    def _count(self, counts: dict[str, dict[str, float]], kind: str, word: str) -> None:
        category = self.category(kind, word)
        if category is not None:
            counts[kind][category] = counts[kind].get(category, 0.0) + 1

    def category(self, kind: str, word: str) -> str | None:
        """The category of a word; None for framing words, and without vectors for words outside the taxonomy."""
        if word in self._framing_words:
            return None
        category = self._taxonomy[kind].get(word)
        if category is not None:
            return category
        key = kind, word
        if key not in self._cache:
            self._cache[key] = self._nearest(kind, word)
        return self._cache[key]

    def _nearest(self, kind: str, word: str) -> str | None:
        vectors = self._vectors
        if vectors is None:
            return None
        vector = _unit_vector(vectors, word)
        if vector is None:
            return None
        if kind not in self._matrices:
            units = [(name, _unit_vector(vectors, name)) for name in sorted(self._taxonomy[kind])]
            known = [(name, unit) for name, unit in units if unit is not None]
            matrix = np.array([unit for _, unit in known]) if known else np.empty((0, len(vector)))
            self._matrices[kind] = ([name for name, _ in known], matrix)
        names, matrix = self._matrices[kind]
        return self._taxonomy[kind][names[int((matrix @ vector).argmax())]] if names else None


def _unit_vector(vectors: WordVectors, word: str) -> Array | None:
    """The vector of a word, or the mean vector of a name's words, scaled to length 1; None if unknown."""
    vector = vectors.mean(word.split())
    length = 0.0 if vector is None else float(np.linalg.norm(vector))
    return None if vector is None or length == 0 else vector / length


def mean_category_counts(counts: Sequence[CategoryCounts]) -> dict[str, dict[str, float]]:
    """The mean counts over several captions of an image."""
    means: dict[str, dict[str, float]] = {kind: {} for kind in KINDS}
    for caption_counts in counts:
        for kind in KINDS:
            for category, count in caption_counts[kind].items():
                means[kind][category] = means[kind].get(category, 0.0) + count / len(counts)
    return means


def chi_squared(table: Array) -> float:
    """Pearson's chi-squared statistic of a table of counts, for independence of rows and columns.

    >>> round(chi_squared(np.array([[10.0, 20.0], [20.0, 10.0]])), 4)
    6.6667
    """
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0, keepdims=True) / max(table.sum(), 1e-12)
    return float(
        np.sum(np.divide((table - expected) ** 2, expected, out=np.zeros_like(table), where=expected > 0))
    )


def cramers_v(chi: float, table: Array) -> float:
    """Bias-corrected Cramér's V of a table (Bergsma 2013): from 0 (independent) to 1.

    >>> round(cramers_v(6000.0, np.array([[3000.0, 0.0], [0.0, 3000.0]])), 3)
    1.0
    >>> cramers_v(0.9, np.array([[30.0, 30.0], [30.0, 30.0]]))
    0.0
    """
    rows, columns = (int(np.count_nonzero(table.sum(axis=axis))) for axis in (1, 0))
    n = float(table.sum())
    if min(rows, columns) < 2 or n <= 1:
        return 0.0
    expected_by_chance = (rows - 1) * (columns - 1) / (n - 1)
    smaller = min(side - (side - 1) ** 2 / (n - 1) for side in (rows, columns)) - 1
    return float(min(np.sqrt(max(chi / n - expected_by_chance, 0.0) / smaller), 1.0)) if smaller > 0 else 0.0
