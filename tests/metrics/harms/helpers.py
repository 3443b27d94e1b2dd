"""Helpers of these tests: small studies, and the items that a measurement counts."""

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
    """A study with an image for each entry: captions of the system, human captions, labels, groups of the person."""
    images = [f"i{number:03}" for number in range(len(captions))]
    caption_rows = [
        (image, "s", sample, caption)
        for image, texts in zip(images, captions, strict=True)
        for sample, caption in enumerate([texts] if isinstance(texts, str) else texts)
    ]
    tables: dict[str, Any] = {
        "captions": pl.DataFrame(
            caption_rows, schema=["image_id", "system", "sample", "caption"], orient="row"
        )
    }
    if references is not None:
        rows = [(image, c) for image, texts in zip(images, references, strict=True) for c in texts]
        tables["references"] = pl.DataFrame(rows, schema=["image_id", "caption"], orient="row")
    if labels is not None:
        rows = [(image, c) for image, texts in zip(images, labels, strict=True) for c in texts]
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
    """The only row with these values; by default the share over all images and items."""
    expected = {"unit": "share", "group": None, "item": None, **about}
    rows = [
        m for m in results.measurements if all(getattr(m, name) == value for name, value in expected.items())
    ]
    assert len(rows) == 1, rows
    return rows[0]


def counted(
    term: str,
    caption: str,
    human: Sequence[str] | None = None,
    labels: Sequence[str] | None = None,
    person: Mapping[str, str] | None = None,
    **options: Any,
) -> set[str] | None:
    """The items that one caption of one image counts for; None if it does not count at all."""
    study = study_of(
        [caption],
        None if human is None else [human],
        None if labels is None else [labels],
        **{name: [group] for name, group in (person or {}).items()},
    )
    share_by_item = shares(measured(study, term, **options))
    items = {item for item, share in share_by_item.items() if item is not None and share}
    return items if share_by_item[None] else None
