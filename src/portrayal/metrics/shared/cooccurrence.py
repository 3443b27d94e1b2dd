"""Which objects captions go with, and whether an object goes with a group more often than chance would have it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import ObjectFinder, tokenize
from portrayal.metrics.shared.mentions import CaptionMentions, object_finder
from portrayal.results import TOO_FEW
from portrayal.stats import permutation_p, permuted


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
        for name in asked:
            if not tokenize(name):
                raise PortrayalError(f"An object that is asked for must have a name. Got {name!r} instead.")
        if synonyms is not None and by != "words" and not asked:
            raise PortrayalError("The option 'synonyms' is for objects found in words, and these are labels.")
        labels = tuple(sorted(set(asked) or {label for some in seen.values() for label in some}))
        if by == "words":
            if not labels:
                raise Undefined("Objects cannot be found in captions: the study names no object to look for.")
            finder, known = object_finder(labels, synonyms)
            return cls(labels, seen, in_captions=finder, synonyms=known)
        if not asked:
            return cls(labels, seen)
        finder, known = object_finder(labels, synonyms)
        return cls(labels, seen, in_labels=finder, synonyms=known)

    @property
    def how(self) -> str:
        """How settings tell where objects are found."""
        return "words" if self.in_captions else "words of labels" if self.in_labels else "labels"

    def beside(self, mentions: CaptionMentions) -> sparse.csr_array:
        """Which objects a caption goes with: (captions, labels)."""
        place = {label: index for index, label in enumerate(self.labels)}
        if self.in_captions is not None:
            said = [self.in_captions.labels(caption) for caption in mentions.captions]
        else:
            of_image = [self._of_image(image) for image in mentions.images]
            said = [of_image[image] for image in mentions.image]
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
    mentions: CaptionMentions,
    beside: sparse.csr_array,
    counted: NDArray[np.float64],
    value: NDArray[np.float64],
    n: NDArray[np.int64],
    seed: int,
    n_resamples: int,
) -> list[list[float | None]]:
    """Per group and object, how often its share would be as far from that of all objects by chance.

    A share is the part of a group in the values of captions that go with the object. By chance: what captions of images
    that name a group count for is dealt to such images anew, those of an image together. Objects in too few images are
    not tested.
    """
    tested = np.flatnonzero(n >= TOO_FEW)
    p: list[list[float | None]] = [[None] * len(n) for _ in range(counted.shape[1])]
    use = np.flatnonzero((counted.sum(axis=1) > 0) & (value > 0))
    if not len(tested) or not len(use):
        return p
    weight = (value * mentions.weight)[use]
    rows = beside.tocsr()[use].tocsc()[:, tested].T.tocsr() @ sparse.diags_array(weight)
    groups = counted[use]
    base = weight @ groups / (weight @ groups).sum()

    def distance(order: NDArray[np.int64]) -> NDArray[np.float64]:
        dealt = rows @ groups[order]
        sums = dealt.sum(axis=1, keepdims=True)
        share = np.divide(dealt, sums, out=np.tile(base, (len(dealt), 1)), where=sums > 0)
        return np.asarray(np.abs(share - base).T.reshape(-1))

    null = permuted(distance, mentions.image[use], seed, n_resamples)
    found = permutation_p(distance(np.arange(len(use))), null).reshape(counted.shape[1], -1)
    for g in range(counted.shape[1]):
        for place, index in enumerate(tested):
            p[g][index] = float(found[g, place])
    return p
