"""Assemble a study: filter all tables to its images, and note what was left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from portrayal.errors import Problems
from portrayal.study import consistency, tables
from portrayal.study.formats import SUFFIXES, read_raw
from portrayal.study.importers import ImportRequest, ImportResult
from portrayal.study.importers.sources import system_files
from portrayal.study.study import Study

_SUGGESTION = "name the columns that are labels with --attribute NAME, which can be repeated"


def assemble(
    request: ImportRequest,
    problems: Problems,
    captions: pl.DataFrame,
    *,
    attributes: pl.DataFrame | None = None,
    references: pl.DataFrame | None = None,
    vocabularies: Mapping[str, tuple[str, ...]] | None = None,
) -> ImportResult:
    """Assemble a study of the images that were captioned or ranked.

    `attributes` and `references` are from the caption files. If the user names a file of references, it takes
    precedence, and references of the caption files are used for its missing images only.
    """
    notes: list[str] = []
    rankings = _rankings(request, problems)
    image_columns = [frame.select("image_id") for frame in (captions, rankings) if frame is not None]
    images = pl.concat(image_columns).get_column("image_id").unique(maintain_order=True)
    if request.attributes is not None:
        raw = read_raw(request.attributes, problems)
        parsed = tables.parse_attributes(
            raw, problems, request.attribute_columns(raw.columns), request.group_names
        )
        matching = _rows_of_images(parsed, images, request.attributes, "attributes", problems, notes)
        chosen = bool(request.attribute_names)
        attributes = tables.drop_singleton_groups(
            matching,
            images,
            raw,
            request.attributes,
            problems,
            suggestion="leave it out of those that --attribute names" if chosen else _SUGGESTION,
            max_groups=None if chosen else tables.MAX_GROUPS,
        )
    if request.references is not None:
        parsed = tables.parse_references(read_raw(request.references, problems), problems)
        listed = _rows_of_images(parsed, images, request.references, "references", problems, notes)
        if references is not None:
            references = pl.concat(
                [listed, references.join(listed, on="image_id", how="anti", maintain_order="left")]
            )
        else:
            references = listed
    frames: dict[str, Any] = {"captions": captions}
    if attributes is not None:
        frames["attributes"] = attributes
    if references is not None:
        frames["references"] = references
    if request.objects is not None:
        parsed = tables.parse_objects(read_raw(request.objects, problems), problems, request.objects_source)
        frames["objects"] = _rows_of_images(parsed, images, request.objects, "objects", problems, notes)
    if rankings is not None:
        frames["rankings"] = consistency.drop_conflicting_labels(
            rankings, attributes, ", ".join(request.rankings), problems
        )
    study = Study(name=request.name, vocabularies=vocabularies or {}, images=request.images, **frames)
    return ImportResult(study, notes)


def _rankings(request: ImportRequest, problems: Problems) -> pl.DataFrame | None:
    """The rankings of all named files."""
    if not request.rankings:
        return None
    parts = []
    files = system_files(request.rankings, SUFFIXES)
    for system, path in files:
        raw = read_raw(path, problems)
        parts.append(
            tables.parse_rankings(
                raw, system, problems, request.attribute_columns(raw.columns), request.group_names
            )
        )
    joined = pl.concat(
        consistency.drop_inconsistent_spellings(parts, [path for _, path in files], problems), how="diagonal"
    )
    consistency.refuse_duplicates(joined, ", ".join(request.rankings), problems)
    return joined


def _rows_of_images(
    frame: pl.DataFrame, images: pl.Series, path: object, what: str, problems: Problems, notes: list[str]
) -> pl.DataFrame:
    """The rows about the study's images. Adds a note about the others."""
    consistency.require_shared_images(frame, images, path, what, problems)
    kept = frame.filter(pl.col("image_id").is_in(images.implode()))
    others = frame["image_id"].n_unique() - kept["image_id"].n_unique()
    if others:
        notes.append(f"{path}: {others:,} images have no caption in this study and were left out.")
    return kept
