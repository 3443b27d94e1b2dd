"""Co-occurrence of objects and groups in captions, with a permutation test for each object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import ObjectFinder, tokenize
from portrayal.metrics.shared.caption_mentions import CaptionMentions, object_finder
from portrayal.results import TOO_FEW
from portrayal.stats import cluster_permutations, permutation_p


@dataclass(frozen=True)
class ObjectMatcher:
    """The objects of interest, and how the objects of a caption are found.

    Objects are found in the words of captions (`caption_finder`), or among the labels of each image. Objects that the
    user names are also found in the words of longer labels (`label_finder`: "a kitchen table").
    """

    labels: tuple[str, ...]
    labels_by_image: Mapping[str, Sequence[str]]
    caption_finder: ObjectFinder | None = None
    label_finder: ObjectFinder | None = None
    synonyms: str | None = None

    @classmethod
    def create(
        cls,
        labels_by_image: Mapping[str, Sequence[str]],
        by: str,
        requested: Sequence[str],
        synonyms: str | None,
    ) -> ObjectMatcher:
        """A matcher by labels or by words. `requested` names the objects, by default all labelled ones."""
        for name in requested:
            if not tokenize(name):
                raise PortrayalError(f"The name of an object must contain a word. Got {name!r} instead.")
        if synonyms is not None and by != "words" and not requested:
            raise PortrayalError("The option 'synonyms' is for objects found in words, and these are labels.")
        labels = tuple(
            sorted(
                set(requested)
                or {label for image_labels in labels_by_image.values() for label in image_labels}
            )
        )
        if by == "words":
            if not labels:
                raise Undefined("Objects cannot be found in captions: the study names no object to look for.")
            finder, synonyms_name = object_finder(labels, synonyms)
            return cls(labels, labels_by_image, caption_finder=finder, synonyms=synonyms_name)
        if not requested:
            return cls(labels, labels_by_image)
        finder, synonyms_name = object_finder(labels, synonyms)
        return cls(labels, labels_by_image, label_finder=finder, synonyms=synonyms_name)

    @property
    def method(self) -> str:
        """How objects are found, as settings record it."""
        return "words" if self.caption_finder else "words of labels" if self.label_finder else "labels"

    def cooccurring(self, mentions: CaptionMentions) -> sparse.csr_array:
        """Indicator matrix of the objects that each caption co-occurs with: (captions, labels)."""
        column_of = {label: index for index, label in enumerate(self.labels)}
        if self.caption_finder is not None:
            labels_per_caption = [self.caption_finder.labels(caption) for caption in mentions.captions]
        else:
            labels_of_image = [self._labels_of(image) for image in mentions.images]
            labels_per_caption = [labels_of_image[image] for image in mentions.image_index]
        column_lists = [
            sorted({column_of[label] for label in caption_labels}) for caption_labels in labels_per_caption
        ]
        rows = np.repeat(
            np.arange(len(column_lists)), [len(caption_labels) for caption_labels in column_lists]
        )
        columns = np.array(
            [label for caption_labels in column_lists for label in caption_labels], dtype=np.int64
        )
        ones = np.ones(len(columns))
        return sparse.csr_array((ones, (rows, columns)), shape=(len(column_lists), len(self.labels)))

    def _labels_of(self, image: str) -> tuple[str, ...]:
        labels = self.labels_by_image.get(image, ())
        if self.label_finder is None:
            return tuple(labels)
        return tuple(name for label in labels for name in self.label_finder.labels(label))


def permutation_p_values(
    mentions: CaptionMentions,
    cooccurring: sparse.csr_array,
    group_counts: NDArray[np.float64],
    value: NDArray[np.float64],
    n: NDArray[np.int64],
    seed: int,
    n_resamples: int,
) -> list[list[float | None]]:
    """Permutation p value of each group's share of each object: p[group][object].

    The share of a group is its part of the values of the captions that co-occur with the object. The statistic is the
    distance of this share from the share over all captions. The groups that captions name are permuted among the
    images whose captions name a group; captions of one image stay together. Objects in too few images are not tested.
    """
    tested_objects = np.flatnonzero(n >= TOO_FEW)
    p: list[list[float | None]] = [[None] * len(n) for _ in range(group_counts.shape[1])]
    used = np.flatnonzero((group_counts.sum(axis=1) > 0) & (value > 0))
    if not len(tested_objects) or not len(used):
        return p
    weight = (value * mentions.weight)[used]
    rows = cooccurring.tocsr()[used].tocsc()[:, tested_objects].T.tocsr() @ sparse.diags_array(weight)
    groups = group_counts[used]
    overall = weight @ groups / (weight @ groups).sum()

    def distance(order: NDArray[np.int64]) -> NDArray[np.float64]:
        sums_by_group = rows @ groups[order]
        sums = sums_by_group.sum(axis=1, keepdims=True)
        share = np.divide(sums_by_group, sums, out=np.tile(overall, (len(sums_by_group), 1)), where=sums > 0)
        return np.asarray(np.abs(share - overall).T.reshape(-1))

    null = cluster_permutations(distance, mentions.image_index[used], seed, n_resamples)
    p_values = permutation_p(distance(np.arange(len(used))), null).reshape(group_counts.shape[1], -1)
    for g in range(group_counts.shape[1]):
        for row, index in enumerate(tested_objects):
            p[g][index] = float(p_values[g, row])
    return p
