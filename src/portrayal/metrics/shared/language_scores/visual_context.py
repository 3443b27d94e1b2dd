"""What was seen in an image: the objects that captions are related to, and how sure their source was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from portrayal.errors import PortrayalError, Undefined
from portrayal.metrics.shared.mentions import without_people
from portrayal.study import Study


@dataclass(frozen=True)
class Context:
    """One thing, or all things of an image as one text."""

    text: str
    confidence: float


@dataclass(frozen=True)
class Visual:
    """What was seen in every image, the surest first, and who saw it."""

    things: Mapping[str, list[Context]]
    sources: str

    def of(self, image: str) -> list[Context]:
        return self.things.get(image, [])

    def joined(self, image: str) -> list[Context]:
        """All that was seen as one text with its mean confidence; several sources may see a thing, it is said once."""
        seen = self.of(image)
        if not seen:
            return []
        words = " ".join(dict.fromkeys(one.text for one in seen))
        return [Context(words, sum(one.confidence for one in seen) / len(seen))]


def visual_context(study: Study, confidence: float | None) -> Visual:
    """The objects of a study that have a confidence; with one said for them, also those that have none (people's)."""
    if confidence is not None and not 0 <= confidence <= 1:
        raise PortrayalError(f"The option 'confidence' must lie between 0 and 1. Got {confidence!r} instead.")
    objects = without_people(study.annotated.filter(pl.col("kind") == "object"))
    # Annotators mark every instance of a label; its confidence is said once.
    objects = objects.filter(
        pl.col("confidence").is_not_null() | pl.struct("image_id", "label", "source").is_first_distinct()
    )
    if not objects.height:
        raise Undefined("The study has labels of people, attributes or relations, and none of objects.")
    if confidence is None:
        objects = objects.filter(pl.col("confidence").is_not_null())
    if not objects.height:
        raise Undefined(
            "No object of this study has a confidence, which says how much seeing it tells: people's labels have none. "
            "Say what to take for it (--confidence 0.5), or bring a model's labels."
        )
    sources = ", ".join(sorted(set(objects["source"])))
    filled = objects.with_columns(pl.col("confidence").fill_null(0.0 if confidence is None else confidence))
    order = filled.sort("image_id", "confidence", "label", descending=[False, True, False])
    made: dict[str, list[Context]] = {}
    for image, label, sure in order.select("image_id", "label", "confidence").iter_rows():
        made.setdefault(image, []).append(Context(label, sure))
    return Visual(made, sources)
