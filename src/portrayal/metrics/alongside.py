"""Which objects captions go with, and whether an object goes with a group more often than chance would have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.errors import Undefined
from portrayal.lexicon import ObjectFinder
from portrayal.metrics.speech import Speech, object_finder
from portrayal.results import TOO_FEW
from portrayal.stats import permutation_p, permutations


@dataclass(frozen=True)
class Objects:
    """The objects that are told apart, and where captions' objects are found.

    By the words of captions (`in_captions`), or among the labels of each image; where objects were asked for by name,
    in the words of the labels too, which may say more ("a kitchen table").
    """

    labels: tuple[str, ...]
    seen: Mapping[str, Sequence[str]]  # image to labels
    in_captions: ObjectFinder | None = None
    in_labels: ObjectFinder | None = None
    synonyms: str | None = None  # which other words for objects are known

    @classmethod
    def of(
        cls, seen: Mapping[str, Sequence[str]], by: str, asked: Sequence[str], synonyms: str | None
    ) -> Objects:
        """`by` is labels or words; `asked` names the objects, by default all that were seen."""
        labels = tuple(sorted(set(asked) or {label for some in seen.values() for label in some}))
        if by == "words":
            if not labels:
                raise Undefined("Objects cannot be found in captions: the study names no object to look for.")
            finder, known = object_finder(labels, synonyms)
            return cls(labels, seen, in_captions=finder, synonyms=known)
        return cls(labels, seen, in_labels=ObjectFinder(labels) if asked else None)

    def beside(self, speech: Speech) -> sparse.csr_array:
        """Which objects a caption goes with: (captions, labels)."""
        place = {label: index for index, label in enumerate(self.labels)}
        if self.in_captions is not None:
            said = [self.in_captions.labels(caption) for caption in speech.captions]
        else:
            of_image = [self._of_image(image) for image in speech.images]
            said = [of_image[image] for image in speech.image]
        found = [sorted({place[label] for label in some}) for some in said]
        rows = np.repeat(np.arange(len(found)), [len(some) for some in found])
        columns = np.array([label for some in found for label in some], dtype=np.int64)
        ones = np.ones(len(columns))
        return sparse.csr_array((ones, (rows, columns)), shape=(len(found), len(self.labels)))

    def _of_image(self, image: str) -> tuple[str, ...]:
        labels = self.seen.get(image, ())
        if self.in_labels is None:
            return tuple(labels)
        return tuple(name for label in labels for name in self.in_labels.labels(label))


def dealt_p(
    objects: sparse.csr_array, named: NDArray[np.float64], n: NDArray[np.int64], seed: int, draws: int
) -> list[list[float | None]]:
    """Per group and object, from dealing the images' groups out anew; objects in too few images are not tested."""
    present = (objects > 0).astype(np.float64).T.tocsr()
    tested = np.flatnonzero(n >= TOO_FEW)
    p: list[list[float | None]] = [[None] * len(n) for _ in range(named.shape[1])]
    if not len(tested):
        return p
    rows = present[tested]
    base = named.sum(axis=0) / named.sum()

    def distance(order: NDArray[np.int64]) -> NDArray[np.float64]:
        dealt = rows @ named[order]
        sums = dealt.sum(axis=1, keepdims=True)
        share = np.divide(dealt, sums, out=np.tile(base, (len(dealt), 1)), where=sums > 0)
        return np.asarray(np.abs(share - base).T.reshape(-1))

    observed = distance(np.arange(len(named)))
    found = permutation_p(observed, permutations(distance, len(named), seed, draws)).reshape(
        named.shape[1], -1
    )
    for g in range(named.shape[1]):
        for place, index in enumerate(tested):
            p[g][index] = float(found[g, place])
    return p
