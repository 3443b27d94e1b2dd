"""What is known of each image: what a speaker says of it, what people say, and what they labelled.

The paper tells stages apart: 1 are people's labels, 3 people's captions, 4 a system's captions. Images come one after
the other in the order of their names, so that counting them needs no memory for those that were seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import polars as pl

from portrayal.lexicon.person_labels import is_person_label
from portrayal.metrics.shared.mentions import labelled_images, labelled_objects
from portrayal.results import HUMAN
from portrayal.study import Study

PERSON = "person"  # how people label that somebody is there
_AT_ONCE = 4096  # images held as Python objects


class Box(NamedTuple):
    """Where an object is, in fractions of the picture."""

    x: float
    y: float
    width: float
    height: float


class Scene(NamedTuple):
    """One image."""

    image: str
    said: tuple[str, ...]  # the speaker's captions
    people: tuple[str, ...]  # people's captions; at stage 3 these are the speaker's
    labels: tuple[str, ...] | None  # the objects that people labelled; None where the image has no labels
    described: tuple[str, ...]  # what they labelled beside objects: attributes and relations
    boxes: Mapping[str, Box]  # the largest box of each label that has one
    group: str | None  # of the person shown
    person: Mapping[str, str]  # all that is known of the person: attribute to group
    shown: bool = False  # whether the study lists people of the image one by one

    @property
    def shows_person(self) -> bool | None:
        """Whether somebody is in the picture, as the labels have it; None where there are none."""
        if self.shown or self.person:
            return True
        if self.labels and any(is_person_label(label) for label in self.labels):
            return True
        return None if self.labels is None else False


def scenes(study: Study, source: str, attribute: str) -> Iterator[Scene]:
    """The images that a speaker captions, in the order of their names."""
    spoken = study.spoken(source).sort("image_id", "sample")
    table = spoken.group_by("image_id", maintain_order=True).agg(pl.col("caption").alias("said"))
    table = _beside(table, study.references, pl.col("caption").alias("people"))
    objects, _ = labelled_objects(study)
    boxed = pl.struct("label", "x", "y", "width", "height")
    known = objects.sort("image_id", "label", "x", "y", "width", "height")
    table = _beside(table, known, boxed.alias("labels"))
    described = pl.col("kind").is_in(["attribute", "relation"]) & (pl.col("source") == HUMAN)
    rest = study.annotated.filter(described).sort("image_id", "label")
    table = _beside(table, rest, pl.col("label").alias("described"))
    names = study.attribute_names
    if names:
        table = table.join(
            study.attributes.select("image_id", *names), on="image_id", how="left", maintain_order="left"
        )
    by_group = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    listed = set(study.people["image_id"])
    annotated = labelled_images(study)
    for part in table.iter_slices(_AT_ONCE):
        for row in part.iter_rows():
            scene = _scene(row, names, by_group)
            if scene.labels is None and scene.image in annotated:
                scene = scene._replace(labels=())  # people looked, and there is no object
            yield scene._replace(shown=True) if scene.image in listed else scene


def _beside(table: pl.DataFrame, other: pl.DataFrame, what: pl.Expr) -> pl.DataFrame:
    """Another table's rows about an image as one list beside it."""
    lists = other.group_by("image_id", maintain_order=True).agg(what)
    return table.join(lists, on="image_id", how="left", maintain_order="left")


def _scene(row: tuple[Any, ...], names: tuple[str, ...], by_group: Mapping[str, str]) -> Scene:
    image, said, people, labelled, described = row[:5]
    labels: tuple[str, ...] | None = None
    boxes: dict[str, Box] = {}
    if labelled is not None:
        labels = tuple(dict.fromkeys(one["label"] for one in labelled))
        for one in labelled:
            if None not in (one["x"], one["y"], one["width"], one["height"]):
                box = Box(one["x"], one["y"], one["width"], one["height"])
                old = boxes.get(one["label"])
                if old is None or box.width * box.height > old.width * old.height:
                    boxes[one["label"]] = box
    person = {name: group for name, group in zip(names, row[5:], strict=True) if group is not None}
    return Scene(
        image, tuple(said), tuple(people or ()), labels, tuple(described or ()), boxes,
        by_group.get(image), person,
    )  # fmt: skip
