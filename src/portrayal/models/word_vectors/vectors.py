"""Word vectors and their similarity. The vector of an unknown word is None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A matrix with a row for each word, and facts about its source (`about`) that are stored with results."""

    name: str
    digest: str
    index: Mapping[str, int]
    matrix: NDArray[np.float32]
    metadata: dict[str, str] = field(default_factory=dict)

    def vector(self, word: str) -> Vectors | None:
        """Return the vector of a word as written, else in lower case; None if unknown.

        >>> known = WordVectors("two", "", {"cat": 0}, np.array([[3.0, 4.0]], dtype=np.float32))
        >>> known.vector("Cat").tolist(), known.vector("dog")
        ([3.0, 4.0], None)
        """
        row = self.index.get(word, self.index.get(word.lower()))
        return None if row is None else self.matrix[row].astype(np.float64)

    def mean(self, words: Sequence[str]) -> Vectors | None:
        """Return the mean vector of the words; None if there are no words or one is unknown.

        >>> known = WordVectors("two", "", {"cell": 0}, np.array([[3.0, 4.0]], dtype=np.float32))
        >>> known.mean(["cell"]).tolist(), known.mean(["cell", "phone"])
        ([3.0, 4.0], None)
        """
        vectors = [self.vector(word) for word in words]
        known = [vector for vector in vectors if vector is not None]
        return np.mean(known, axis=0) if known and len(known) == len(vectors) else None


def cosine(first: Vectors | None, second: Vectors | None) -> float | None:
    """Return the cosine similarity of two vectors; None if either is unknown or all zeros.

    >>> cosine(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    0.7071067811865475
    """
    if first is None or second is None:
        return None
    norm = float(np.linalg.norm(first) * np.linalg.norm(second))
    return float(np.clip(first @ second / norm, -1.0, 1.0)) if norm > 0 else None
