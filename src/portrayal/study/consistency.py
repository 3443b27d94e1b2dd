"""Consistency between tables and files of a study: spellings, labels and images."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from portrayal.errors import Problems, counted, shown
from portrayal.study.tables import CERTAINTY_SUFFIX, RANKINGS
from portrayal.study.validation import suggest_import_map


def drop_inconsistent_spellings(
    parts: Sequence[pl.DataFrame],
    paths: Sequence[object],
    problems: Problems,
    suggest: Callable[[str, str, str], str] = suggest_import_map,
) -> list[pl.DataFrame]:
    """Drop labels that an earlier file of the table spells differently. One problem per column and file.

    Spellings within a file were checked before, with line numbers. `suggest` returns the advice for a column, value and
    group.
    """
    first: dict[tuple[str, str], str] = {}
    unified = []
    for part, path in zip(parts, paths, strict=True):
        for name in part.columns:
            if name in RANKINGS or name.endswith(CERTAINTY_SUFFIX):
                continue
            groups = part[name].drop_nulls().unique(maintain_order=True)
            deviating = [
                value for value in groups if first.setdefault((name, value.casefold()), value) != value
            ]
            if deviating:
                group = first[name, deviating[0].casefold()]
                count = int(part[name].is_in(deviating).sum())
                problems.note(
                    path,
                    f"the group {group!r} of '{name}' spelt as in another file",
                    f"{shown(deviating[0])} ({count:,} such labels in all; {suggest(name, deviating[0], group)})",
                    count=count,
                )
                part = part.with_columns(
                    pl.when(~pl.col(name).is_in(deviating)).then(pl.col(name)).alias(name)
                )
        unified.append(part)
    return unified


def join_attributes(
    parts: Sequence[pl.DataFrame], paths: Sequence[object], problems: Problems
) -> pl.DataFrame:
    """Join tables of labels into one row per image. Labels in several tables must agree."""
    joined = parts[0]
    for part, path in zip(parts[1:], paths[1:], strict=True):
        repeated = {name: f"{name}\N{NULL}again" for name in part.columns if name in joined.columns}
        del repeated["image_id"]
        joined = joined.join(
            part.rename(repeated), on="image_id", how="full", coalesce=True, maintain_order="left_right"
        )
        for name, other in repeated.items():
            for image, first, second in (
                joined.filter(pl.col(name) != pl.col(other)).select("image_id", name, other).rows()
            ):
                problems.note(
                    path, f"{name} {first!r} of image {image}, as another file has it", shown(second)
                )
            joined = joined.with_columns(pl.coalesce(name, other).alias(name)).drop(other)
    return joined


def drop_conflicting_labels(
    rankings: pl.DataFrame, attributes: pl.DataFrame | None, path: object, problems: Problems
) -> pl.DataFrame:
    """Drop labels of ranked items that contradict another row or the table of labels. One problem per column.

    Otherwise an audit would count an image as one group in rankings and as another in captions.
    """
    for name in rankings.columns:
        if name in RANKINGS or name.endswith(CERTAINTY_SUFFIX):
            continue
        labelled = [rankings.select("image_id", name)]
        if attributes is not None and name in attributes.columns:
            labelled.insert(0, attributes.select("image_id", name))
        labels = pl.concat(labelled).drop_nulls().unique(maintain_order=True)
        several = labels.filter(pl.col("image_id").is_duplicated())
        if not several.height:
            continue
        image = several["image_id"][0]
        first, second, *_ = several.filter(pl.col("image_id") == image)[name]
        items = several["image_id"].unique()
        problems.note(
            path,
            f"{name} {first!r} of item {image} wherever it is labelled",
            f"{shown(second)} ({counted(items.len(), 'such item')} in all)",
            count=items.len(),
        )
        agreed = pl.when(~pl.col("image_id").is_in(items.implode())).then(pl.col(name)).alias(name)
        rankings = rankings.with_columns(agreed)
    return rankings


def refuse_duplicates(frame: pl.DataFrame, path: object, problems: Problems) -> None:
    """Raise an error if two files have the same caption of a system, or the same item of a query.

    Duplicates within a file were checked before, with line numbers.
    """
    key = ["query", "system", "image_id"] if "query" in frame.columns else ["image_id", "system", "sample"]
    duplicates = frame.filter(frame.select(key).is_duplicated())
    if duplicates.height:
        row = duplicates.row(0, named=True)
        found = f"image {row['image_id']} of system {row['system']!r} in more than one file"
        raise problems.stop(path, f"each ({', '.join(key)}) once", f"{found} (name the systems apart)")


def require_shared_images(
    frame: pl.DataFrame, images: pl.Series, path: object, what: str, problems: Problems
) -> None:
    """Raise an error if no row is about an image of the study, most often because ids are written differently."""
    if frame.height and images.len() and not frame.get_column("image_id").is_in(images.implode()).any():
        raise problems.stop(
            path,
            f"{what} of the captioned images, such as {images[0]!r}",
            f"other ids only, such as {frame['image_id'][0]!r}",
        )
