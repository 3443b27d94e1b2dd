"""Small studies for the measurements of harm, and what one of them counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from portrayal.metrics import harms
from portrayal.results import Measurement, Results
from portrayal.study import Study


def study_of(
    captions: Sequence[str | Sequence[str]],
    references: Sequence[Sequence[str]] | None = None,
    labels: Sequence[Sequence[str]] | None = None,
    **attributes: Sequence[str | None],
) -> Study:
    """One image a place: the system's caption (or several), people's, the labels, and the groups of the person."""
    images = [f"i{number:03}" for number in range(len(captions))]
    said = [
        (image, "s", sample, caption)
        for image, some in zip(images, captions, strict=True)
        for sample, caption in enumerate([some] if isinstance(some, str) else some)
    ]
    tables: dict[str, Any] = {
        "captions": pl.DataFrame(said, schema=["image_id", "system", "sample", "caption"], orient="row")
    }
    if references is not None:
        rows = [(image, c) for image, some in zip(images, references, strict=True) for c in some]
        tables["references"] = pl.DataFrame(rows, schema=["image_id", "caption"], orient="row")
    if labels is not None:
        rows = [(image, c) for image, some in zip(images, labels, strict=True) for c in some]
        tables["objects"] = pl.DataFrame(rows, schema=["image_id", "label"], orient="row")
    if attributes:
        tables["attributes"] = pl.DataFrame({"image_id": images, **attributes})
    return Study.from_frames(**tables)


def measured(study: Study, term: str, **options: Any) -> Results:
    return harms(study, **{"attribute": "gender", "bootstrap": 20, **options}, measurement=(term,))


def shares(results: Results, group: str | None = None) -> dict[str | None, float | None]:
    """Item to share."""
    return {m.item: m.value for m in results.measurements if m.unit == "share" and m.group == group}


def row(results: Results, **about: Any) -> Measurement:
    """The one row that is about this; by default the share for all people and items."""
    wanted = {"unit": "share", "group": None, "item": None, **about}
    found = [
        m for m in results.measurements if all(getattr(m, name) == value for name, value in wanted.items())
    ]
    assert len(found) == 1, found
    return found[0]


def counted(
    term: str,
    caption: str,
    people: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    person: Mapping[str, str] | None = None,
    **options: Any,
) -> set[str] | None:
    """The items that one caption of one image counts for; None where it does not count in all.

    A second image, about which nothing can be said, keeps the measurement defined.
    """
    study = study_of(
        [caption],
        None if people is None else [people],
        None if labels is None else [labels],
        **{name: [group] for name, group in (person or {}).items()},
    )
    found = shares(measured(study, term, **options))
    items = {item for item, share in found.items() if item is not None and share}
    return items if found[None] else None
