"""Putting a study together: the side tables are cut to the images the study is about, and it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from portrayal.errors import Problems
from portrayal.study import tables
from portrayal.study.formats import read_raw
from portrayal.study.importers import Imported, Request
from portrayal.study.study import Study


def assemble(
    request: Request,
    problems: Problems,
    captions: pl.DataFrame,
    *,
    attributes: pl.DataFrame | None = None,
    references: pl.DataFrame | None = None,
    vocabularies: Mapping[str, tuple[str, ...]] | None = None,
) -> Imported:
    """A study about the images that were captioned.

    `attributes` and `references` are what the sources themselves held. Where the user names a file of references, it
    goes first, and the sources speak only of the images on which it is silent.
    """
    notes: list[str] = []
    images = captions.get_column("image_id").unique(maintain_order=True)
    if request.attributes is not None:
        raw = read_raw(request.attributes, problems)
        read = tables.attributes(raw, problems, request.attribute_names)
        matching = _matching(read, images, request.attributes, "attributes", problems, notes)
        attributes = tables.without_singletons(matching, images, raw, request.attributes, problems)
    if request.references is not None:
        read = tables.references(read_raw(request.references, problems), problems)
        named = _matching(read, images, request.references, "references", problems, notes)
        if references is not None:
            references = pl.concat(
                [named, references.join(named, on="image_id", how="anti", maintain_order="left")]
            )
        else:
            references = named
    made: dict[str, Any] = {"captions": captions}
    if attributes is not None:
        made["attributes"] = attributes
    if references is not None:
        made["references"] = references
    if request.objects is not None:
        read = tables.objects(read_raw(request.objects, problems), problems)
        made["objects"] = _matching(read, images, request.objects, "objects", problems, notes)
    study = Study(name=request.name, vocabularies=vocabularies or {}, images=request.images, **made)
    return Imported(study, notes)


def _matching(
    frame: pl.DataFrame, images: pl.Series, path: object, what: str, problems: Problems, notes: list[str]
) -> pl.DataFrame:
    """The rows about the study's images."""
    tables.must_share_images(frame, images, path, what, problems)
    kept = frame.filter(pl.col("image_id").is_in(images.implode()))
    others = frame["image_id"].n_unique() - kept["image_id"].n_unique()
    if others:
        notes.append(f"{path}: {others:,} images have no caption in this study and were left out.")
    return kept
