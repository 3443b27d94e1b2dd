"""Putting a study together: the side tables are cut to the images the study is about, and it is said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from portrayal.errors import Problems
from portrayal.study import consistency, tables
from portrayal.study.formats import ENDINGS, read_raw
from portrayal.study.importers import Imported, Request
from portrayal.study.importers.sources import system_files
from portrayal.study.study import Study

_CHOOSE = "name the columns that are labels with --attribute NAME, which can be repeated"


def assemble(
    request: Request,
    problems: Problems,
    captions: pl.DataFrame,
    *,
    attributes: pl.DataFrame | None = None,
    references: pl.DataFrame | None = None,
    vocabularies: Mapping[str, tuple[str, ...]] | None = None,
) -> Imported:
    """A study about the images that were captioned or ranked.

    `attributes` and `references` are what the sources themselves held. Where the user names a file of references, it
    goes first, and the sources speak only of the images on which it is silent.
    """
    notes: list[str] = []
    rankings = _rankings(request, problems)
    about = [frame.select("image_id") for frame in (captions, rankings) if frame is not None]
    images = pl.concat(about).get_column("image_id").unique(maintain_order=True)
    if request.attributes is not None:
        raw = read_raw(request.attributes, problems)
        read = tables.attributes(raw, problems, request.named(raw.columns), request.meaning)
        matching = _matching(read, images, request.attributes, "attributes", problems, notes)
        chosen = bool(request.attribute_names)
        attributes = tables.without_singletons(
            matching,
            images,
            raw,
            request.attributes,
            problems,
            way_out="leave it out of those that --attribute names" if chosen else _CHOOSE,
            most=None if chosen else tables.MOST_GROUPS,
        )
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
        read = tables.objects(read_raw(request.objects, problems), problems, request.objects_source)
        made["objects"] = _matching(read, images, request.objects, "objects", problems, notes)
    if rankings is not None:
        made["rankings"] = consistency.one_label_an_item(
            rankings, attributes, ", ".join(request.rankings), problems
        )
    study = Study(name=request.name, vocabularies=vocabularies or {}, images=request.images, **made)
    return Imported(study, notes)


def _rankings(request: Request, problems: Problems) -> pl.DataFrame | None:
    """The lists of every system whose file was named."""
    if not request.rankings:
        return None
    parts = []
    files = system_files(request.rankings, ENDINGS)
    for system, path in files:
        raw = read_raw(path, problems)
        parts.append(tables.rankings(raw, system, problems, request.named(raw.columns), request.meaning))
    joined = pl.concat(consistency.one_spelling(parts, [path for _, path in files], problems), how="diagonal")
    consistency.refuse_repeats(joined, ", ".join(request.rankings), problems)
    return joined


def _matching(
    frame: pl.DataFrame, images: pl.Series, path: object, what: str, problems: Problems, notes: list[str]
) -> pl.DataFrame:
    """The rows about the study's images."""
    consistency.must_share_images(frame, images, path, what, problems)
    kept = frame.filter(pl.col("image_id").is_in(images.implode()))
    others = frame["image_id"].n_unique() - kept["image_id"].n_unique()
    if others:
        notes.append(f"{path}: {others:,} images have no caption in this study and were left out.")
    return kept
