"""The labels that a system gives to images, by its captions or as such, beside those that people gave."""

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
from portrayal.metrics.shared.mentions import labelled_images, without_people
from portrayal.results import HUMAN
from portrayal.study import Study
from portrayal.study.study import COMBINED


@dataclass(frozen=True)
class Named:
    """What one system says of labelled images, in the order of their names, and what is there."""

    images: tuple[str, ...]
    group: NDArray[np.int64]  # of the person shown
    captions: tuple[tuple[str, ...], ...]  # of each image; none where labels were not taken from captions
    said: Array  # (images, labels): the share of an image's captions that name the label
    truth: Array  # (images, labels): 0 or 1

    @cached_property
    def f1(self) -> float | None:
        return _micro_f1(self.said, self.truth)

    def lacking(self) -> str | None:
        """Why there is nothing to measure, if so."""
        if not self.images:
            return "no image with a label of its group has an output"
        if not self.said.any():
            return "none of the labels is named"
        return None if self.truth.any() else "people labelled no object in these images"


@dataclass(frozen=True)
class Labels:
    """Human labels of a study, but for people themselves: what is true."""

    study: Study
    group_of: Mapping[str, int]  # image -> group
    names: tuple[str, ...]
    annotated: frozenset[str]  # images that people labelled: what is in the others is not known

    @classmethod
    def of(cls, study: Study, group_of: Mapping[str, int], attribute: str) -> Labels:
        """A label that is itself a word for a group ("old") would be the answer, so it is left out, as people are."""
        words = {
            word
            for lexicon in map(find_lexicon, attribute.split(COMBINED))
            if lexicon is not None
            for some in lexicon.naming.values()
            for word in some
        }
        seen = without_people(_objects(study, HUMAN))["label"]
        found = {label for label in seen if label.lower() not in words}
        names = tuple(sorted(found))
        if not names:
            raise Undefined("Leakage needs objects that people labelled, other than people.")
        return cls(study, group_of, names, labelled_images(study))

    def of_captions(self, source: str, finder: ObjectFinder) -> Named:
        """The labels that a speaker's captions name."""
        told: dict[str, list[str]] = {}
        spoken = self.study.spoken(source).sort("image_id", "sample")
        for image, caption in spoken.select("image_id", "caption").iter_rows():
            if image in self.group_of and image in self.annotated:
                told.setdefault(image, []).append(caption)
        found = {caption: finder.labels(caption) for captions in told.values() for caption in captions}
        pairs = [
            (image, label, 1 / len(captions))
            for image, captions in told.items()
            for caption in captions
            for label in found[caption]
        ]
        return self._named(sorted(told), told, pairs)

    def of_source(self, source: str, confidence: float) -> Named:
        """The labels that a model gives, surely enough; a label without a confidence is given."""
        objects = _objects(self.study, source)
        sure = objects.filter(pl.col("confidence").is_null() | (pl.col("confidence") >= confidence))
        images = sorted(image for image in self.annotated if image in self.group_of)
        pairs = [(i, o, 1.0) for i, o in sure.select("image_id", "label").unique().iter_rows()]
        return self._named(images, {}, pairs)

    def _named(
        self,
        images: Sequence[str],
        told: Mapping[str, Sequence[str]],
        pairs: Sequence[tuple[str, str, float]],
    ) -> Named:
        human = _objects(self.study, HUMAN).select("image_id", "label").unique()
        return Named(
            tuple(images),
            np.array([self.group_of[image] for image in images], dtype=np.int64),
            tuple(tuple(told.get(image, ())) for image in images),
            # Shares of a few captions are added up: rounded, so that equal ones are equal whatever the order was.
            np.round(self._matrix(images, pairs), 9),
            self._matrix(images, [(image, label, 1.0) for image, label in human.iter_rows()]),
        )

    def _matrix(self, images: Sequence[str], pairs: Sequence[tuple[str, str, float]]) -> Array:
        row = {image: number for number, image in enumerate(images)}
        column = {label: number for number, label in enumerate(self.names)}
        made = np.zeros((len(images), len(self.names)))
        known = [(row[i], column[o], share) for i, o, share in pairs if i in row and o in column]
        if known:
            rows, columns, shares = zip(*known, strict=True)
            np.add.at(made, (np.array(rows), np.array(columns)), np.array(shares))
        return made


def _objects(study: Study, source: str) -> pl.DataFrame:
    return study.annotated.filter((pl.col("kind") == "object") & (pl.col("source") == source))
