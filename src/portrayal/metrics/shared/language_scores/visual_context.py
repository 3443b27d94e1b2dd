"""Visual context: the objects of each image, with the confidence of their detection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from portrayal.errors import PortrayalError, Undefined
from portrayal.metrics.shared.caption_mentions import without_people
from portrayal.study import Study


@dataclass(frozen=True)
class ContextItem:
    """One object, or all objects of an image joined to one text."""

    text: str
    confidence: float


@dataclass(frozen=True)
class VisualContext:
    """The objects of every image, in order of decreasing confidence, and their source."""

    items_by_image: Mapping[str, list[ContextItem]]
    sources: str

    def items_of(self, image: str) -> list[ContextItem]:
        """The objects of an image."""
        return self.items_by_image.get(image, [])

    def joined(self, image: str) -> list[ContextItem]:
        """The objects joined to one text, without duplicates, with their mean confidence."""
        items = self.items_of(image)
        if not items:
            return []
        words = " ".join(dict.fromkeys(item.text for item in items))
        return [ContextItem(words, sum(item.confidence for item in items) / len(items))]


def visual_context(study: Study, confidence: float | None) -> VisualContext:
    """The objects of a study that have a confidence; `confidence` is that of labels without one (human labels)."""
    if confidence is not None and not 0 <= confidence <= 1:
        raise PortrayalError(f"The option 'confidence' must lie between 0 and 1. Got {confidence!r} instead.")
    objects = without_people(study.annotations.filter(pl.col("kind") == "object"))
    # Human labels exist for every instance; each label counts once.
    objects = objects.filter(
        pl.col("confidence").is_not_null() | pl.struct("image_id", "label", "source").is_first_distinct()
    )
    if not objects.height:
        raise Undefined("The study has labels of people, attributes or relations, and none of objects.")
    if confidence is None:
        objects = objects.filter(pl.col("confidence").is_not_null())
    if not objects.height:
        raise Undefined(
            "No object of this study has a confidence, which the score needs: human labels have none. "
            "Give a confidence for them (--confidence 0.5), or add labels of a model."
        )
    sources = ", ".join(sorted(set(objects["source"])))
    filled = objects.with_columns(pl.col("confidence").fill_null(0.0 if confidence is None else confidence))
    order = filled.sort("image_id", "confidence", "label", descending=[False, True, False])
    items_by_image: dict[str, list[ContextItem]] = {}
    for image, label, item_confidence in order.select("image_id", "label", "confidence").iter_rows():
        items_by_image.setdefault(image, []).append(ContextItem(label, item_confidence))
    return VisualContext(items_by_image, sources)
