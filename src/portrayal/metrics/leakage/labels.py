"""Labels of a source, from its captions or given as such, with the human labels of the same images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.errors import Undefined
from portrayal.lexicon import ObjectFinder, find_lexicon
from portrayal.metrics.leakage.label_noise import Array
from portrayal.metrics.leakage.label_noise import micro_f1 as _micro_f1
from portrayal.metrics.shared.caption_mentions import labelled_images, without_people
from portrayal.results import HUMAN
from portrayal.study import Study
from portrayal.study.study import COMBINED


@dataclass(frozen=True)
class SourceLabels:
    """Labels that a source gives to labelled images, sorted by image name, and the true labels."""

    images: tuple[str, ...]
    group: NDArray[np.int64]  # of the person shown
    captions: tuple[tuple[str, ...], ...]  # of each image; empty where labels do not come from captions
    outputs: Array  # (images, labels): share of an image's captions that name the label
    truth: Array  # (images, labels): 0 or 1

    @cached_property
    def f1(self) -> float | None:
        return _micro_f1(self.outputs, self.truth)

    def missing_reason(self) -> str | None:
        """Why there is nothing to measure, or None."""
        if not self.images:
            return "no image with a label of its group has an output"
        if not self.outputs.any():
            return "none of the labels is named"
        return None if self.truth.any() else "humans labelled no object in these images"


@dataclass(frozen=True)
class HumanLabels:
    """Human labels of a study (the ground truth), without labels of people."""

    study: Study
    group_of: Mapping[str, int]  # image -> index of the group
    names: tuple[str, ...]
    annotated_images: frozenset[str]  # images with human labels; labels of other images are unknown

    @classmethod
    def of(cls, study: Study, group_of: Mapping[str, int], attribute: str) -> HumanLabels:
        """Collect human labels. A label that is a word for a group ("old") would be the answer and is left
        out, as labels of people are.
        """
        words = {
            word
            for lexicon in map(find_lexicon, attribute.split(COMBINED))
            if lexicon is not None
            for group_words in lexicon.naming_words.values()
            for word in group_words
        }
        labels = without_people(_objects(study, HUMAN))["label"]
        names_found = {label for label in labels if label.lower() not in words}
        names = tuple(sorted(names_found))
        if not names:
            raise Undefined("Leakage needs objects labelled by humans, other than people.")
        return cls(study, group_of, names, labelled_images(study))

    def from_captions(self, source: str, finder: ObjectFinder) -> SourceLabels:
        """Return the labels named in a source's captions."""
        captions_of: dict[str, list[str]] = {}
        table = self.study.captions_of(source).sort("image_id", "sample")
        for image, caption in table.select("image_id", "caption").iter_rows():
            if image in self.group_of and image in self.annotated_images:
                captions_of.setdefault(image, []).append(caption)
        labels_of = {
            caption: finder.labels(caption) for captions in captions_of.values() for caption in captions
        }
        label_shares = [
            (image, label, 1 / len(captions))
            for image, captions in captions_of.items()
            for caption in captions
            for label in labels_of[caption]
        ]
        return self._source_labels(sorted(captions_of), captions_of, label_shares)

    def from_source(self, source: str, confidence: float) -> SourceLabels:
        """Return the labels of a model with enough confidence; a label without a confidence counts."""
        objects = _objects(self.study, source)
        confident = objects.filter(pl.col("confidence").is_null() | (pl.col("confidence") >= confidence))
        images = sorted(image for image in self.annotated_images if image in self.group_of)
        label_shares = [(i, o, 1.0) for i, o in confident.select("image_id", "label").unique().iter_rows()]
        return self._source_labels(images, {}, label_shares)

    def _source_labels(
        self,
        images: Sequence[str],
        captions_of: Mapping[str, Sequence[str]],
        label_shares: Sequence[tuple[str, str, float]],
    ) -> SourceLabels:
        human = _objects(self.study, HUMAN).select("image_id", "label").unique()
        return SourceLabels(
            tuple(images),
            np.array([self.group_of[image] for image in images], dtype=np.int64),
            tuple(tuple(captions_of.get(image, ())) for image in images),
            # Rounded, so that sums of the same shares are equal in any order.
            np.round(self._matrix(images, label_shares), 9),
            self._matrix(images, [(image, label, 1.0) for image, label in human.iter_rows()]),
        )

    def _matrix(self, images: Sequence[str], label_shares: Sequence[tuple[str, str, float]]) -> Array:
        row = {image: index for index, image in enumerate(images)}
        column = {label: index for index, label in enumerate(self.names)}
        matrix = np.zeros((len(images), len(self.names)))
        entries = [(row[i], column[o], share) for i, o, share in label_shares if i in row and o in column]
        if entries:
            rows, columns, shares = zip(*entries, strict=True)
            np.add.at(matrix, (np.array(rows), np.array(columns)), np.array(shares))
        return matrix


def _objects(study: Study, source: str) -> pl.DataFrame:
    return study.annotations.filter((pl.col("kind") == "object") & (pl.col("source") == source))
