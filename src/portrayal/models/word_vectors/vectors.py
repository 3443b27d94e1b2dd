"""Word vectors and what is asked of them. A word that is not there is unknown, never a vector of zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WordVectors:
    """A row of `matrix` for each word. `about` says what a reader must know of where they come from."""

    name: str
    digest: str
    place: Mapping[str, int]
    matrix: NDArray[np.float32]
    about: dict[str, str] = field(default_factory=dict)

    def vector(self, word: str) -> Vectors | None:
        """As it is written, else in lower case; None where it is unknown.

        >>> known = WordVectors("two", "", {"cat": 0}, np.array([[3.0, 4.0]], dtype=np.float32))
        >>> known.vector("Cat").tolist(), known.vector("dog")
        ([3.0, 4.0], None)
        """
        place = self.place.get(word, self.place.get(word.lower()))
        return None if place is None else self.matrix[place].astype(np.float64)

    def mean(self, words: Sequence[str]) -> Vectors | None:
        """The mean of the words; None where there is none, or one is unknown: half a name is another name.

        >>> known = WordVectors("two", "", {"cell": 0}, np.array([[3.0, 4.0]], dtype=np.float32))
        >>> known.mean(["cell"]).tolist(), known.mean(["cell", "phone"])
        ([3.0, 4.0], None)
        """
        vectors = [self.vector(word) for word in words]
        known = [vector for vector in vectors if vector is not None]
        return np.mean(known, axis=0) if known and len(known) == len(vectors) else None


def cosine(one: Vectors | None, other: Vectors | None) -> float | None:
    """Of two vectors; None where either is unknown or has no direction.

    >>> cosine(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    0.7071067811865475
    """
    if one is None or other is None:
        return None
    long = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(np.clip(one @ other / long, -1.0, 1.0)) if long > 0 else None
