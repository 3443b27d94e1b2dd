"""Iterate over the images of a study: captions of a source, human captions, labels and the group of the person.

Stages are those of the paper: 1 is human labels, 3 human captions, 4 captions of a system. Images come one by one,
sorted by id, so that counting needs no memory for images that were counted before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from portrayal.lexicon.person_labels import is_person_label
from portrayal.metrics.shared.caption_mentions import labelled_images, labelled_objects
from portrayal.results import HUMAN
from portrayal.study import Study

_SLICE_ROWS = 4096  # images held as Python objects at a time


class ObjectBox(NamedTuple):
    """Bounding box of an object, in fractions of the image's width and height."""

    x: float
    y: float
    width: float
    height: float


class ImageRecord(NamedTuple):
    """What the study holds about one image."""

    image_id: str
    captions: tuple[str, ...]  # of the source
    human_captions: tuple[str, ...]  # at stage 3 the source is `human`, and these are its captions
    labels: tuple[str, ...] | None  # human labels of objects; None where the image was not labelled
    other_labels: tuple[str, ...]  # human labels of attributes and relations
    boxes: Mapping[str, ObjectBox]  # the largest box of each label that has one
    group: str | None  # of the person shown
    attributes: Mapping[str, str]  # of the person shown: attribute -> group
    lists_people: bool = False  # whether the study has rows for the people in the image

    @property
    def shows_person(self) -> bool | None:
        """Whether the image shows a person according to its labels; None without labels."""
        if self.lists_people or self.attributes:
            return True
        if self.labels and any(is_person_label(label) for label in self.labels):
            return True
        return None if self.labels is None else False


def iter_image_records(study: Study, source: str, attribute: str) -> Iterator[ImageRecord]:
    """Yield the images that a source captions, sorted by image id."""
    captions = study.captions_of(source).sort("image_id", "sample")
    table = captions.group_by("image_id", maintain_order=True).agg(pl.col("caption").alias("captions"))
    table = _join_lists(table, study.references, pl.col("caption").alias("human_captions"))
    objects, _ = labelled_objects(study)
    label_and_box = pl.struct("label", "x", "y", "width", "height")
    sorted_objects = objects.sort("image_id", "label", "x", "y", "width", "height")
    table = _join_lists(table, sorted_objects, label_and_box.alias("labels"))
    is_other_label = pl.col("kind").is_in(["attribute", "relation"]) & (pl.col("source") == HUMAN)
    other_labels = study.annotations.filter(is_other_label).sort("image_id", "label")
    table = _join_lists(table, other_labels, pl.col("label").alias("other_labels"))
    names = study.attribute_names
    if names:
        table = table.join(
            study.attributes.select("image_id", *names), on="image_id", how="left", maintain_order="left"
        )
    group_of = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    images_with_people = set(study.people["image_id"])
    annotated = labelled_images(study)
    for rows in table.iter_slices(_SLICE_ROWS):
        for row in rows.iter_rows():
            record = _record(row, names, group_of)
            if record.labels is None and record.image_id in annotated:
                record = record._replace(labels=())  # it was annotated, and has no object
            yield record._replace(lists_people=True) if record.image_id in images_with_people else record


def _join_lists(table: pl.DataFrame, other: pl.DataFrame, column: pl.Expr) -> pl.DataFrame:
    """Join the rows that another table has about an image, as one list column."""
    word_lists = other.group_by("image_id", maintain_order=True).agg(column)
    return table.join(word_lists, on="image_id", how="left", maintain_order="left")


def _record(row: tuple[Any, ...], names: tuple[str, ...], group_of: Mapping[str, str]) -> ImageRecord:
    image_id, captions, human_captions, objects, other_labels = row[:5]
    labels: tuple[str, ...] | None = None
    boxes: dict[str, ObjectBox] = {}
    if objects is not None:
        labels = tuple(dict.fromkeys(item["label"] for item in objects))
        for item in objects:
            if None not in (item["x"], item["y"], item["width"], item["height"]):
                box = ObjectBox(item["x"], item["y"], item["width"], item["height"])
                largest = boxes.get(item["label"])
                if largest is None or box.width * box.height > largest.width * largest.height:
                    boxes[item["label"]] = box
    attributes = {name: group for name, group in zip(names, row[5:], strict=True) if group is not None}
    return ImageRecord(
        image_id, tuple(captions), tuple(human_captions or ()), labels, tuple(other_labels or ()), boxes,
        group_of.get(image_id), attributes,
    )  # fmt: skip
