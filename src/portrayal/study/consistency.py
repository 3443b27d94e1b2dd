"""What several tables or files of one study must agree on: spellings, labels, and the images they are about."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import polars as pl

from portrayal.errors import Problems, counted, shown
from portrayal.study.tables import CERTAINTY, RANKINGS
from portrayal.study.validation import mapped_by_import


def one_spelling(
    parts: Sequence[pl.DataFrame],
    paths: Sequence[object],
    problems: Problems,
    way_out: Callable[[str, str, str], str] = mapped_by_import,
) -> list[pl.DataFrame]:
    """The files of one table, less labels that an earlier file spells otherwise: one problem for a column of a file.

    Within each file this was checked with its lines. `way_out` says what to do, by column, value and group.
    """
    first: dict[tuple[str, str], str] = {}
    made = []
    for part, path in zip(parts, paths, strict=True):
        for name in part.columns:
            if name in RANKINGS or name.endswith(CERTAINTY):
                continue
            groups = part[name].drop_nulls().unique(maintain_order=True)
            others = [one for one in groups if first.setdefault((name, one.casefold()), one) != one]
            if others:
                group = first[name, others[0].casefold()]
                count = int(part[name].is_in(others).sum())
                problems.note(
                    path,
                    f"the group {group!r} of '{name}' spelt as in another file",
                    f"{shown(others[0])} ({count:,} such labels in all; {way_out(name, others[0], group)})",
                    count=count,
                )
                part = part.with_columns(pl.when(~pl.col(name).is_in(others)).then(pl.col(name)).alias(name))
        made.append(part)
    return made


def joined_attributes(
    parts: Sequence[pl.DataFrame], paths: Sequence[object], problems: Problems
) -> pl.DataFrame:
    """Several tables of labels as one row per image; where two speak of the same label they must agree."""
    joined = parts[0]
    for part, path in zip(parts[1:], paths[1:], strict=True):
        again = {name: f"{name}\N{NULL}again" for name in part.columns if name in joined.columns}
        del again["image_id"]
        joined = joined.join(
            part.rename(again), on="image_id", how="full", coalesce=True, maintain_order="left_right"
        )
        for name, other in again.items():
            for image, first, second in (
                joined.filter(pl.col(name) != pl.col(other)).select("image_id", name, other).rows()
            ):
                problems.note(
                    path, f"{name} {first!r} of image {image}, as another file has it", shown(second)
                )
            joined = joined.with_columns(pl.coalesce(name, other).alias(name)).drop(other)
    return joined


def one_label_an_item(
    rankings: pl.DataFrame, attributes: pl.DataFrame | None, path: object, problems: Problems
) -> pl.DataFrame:
    """The rankings, less labels that say of an item what another row, or the table of labels, says otherwise.

    Else one audit would count an image as one group in a search and as another in its captions. One problem a column.
    """
    for name in rankings.columns:
        if name in RANKINGS or name.endswith(CERTAINTY):
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


def refuse_repeats(frame: pl.DataFrame, path: object, problems: Problems) -> None:
    """Within one file this was checked with its lines; here two files gave the same system's caption, or ranked the
    same item for the same query.
    """
    key = ["query", "system", "image_id"] if "query" in frame.columns else ["image_id", "system", "sample"]
    repeated = frame.filter(frame.select(key).is_duplicated())
    if repeated.height:
        row = repeated.row(0, named=True)
        found = f"image {row['image_id']} of system {row['system']!r} in more than one file"
        raise problems.stop(path, f"each ({', '.join(key)}) once", f"{found} (name the systems apart)")


def must_share_images(
    frame: pl.DataFrame, images: pl.Series, path: object, what: str, problems: Problems
) -> None:
    """A table of which no row is about an image of the study is a mistake, most often in how ids are written."""
    if frame.height and images.len() and not frame.get_column("image_id").is_in(images.implode()).any():
        raise problems.stop(
            path,
            f"{what} of the captioned images, such as {images[0]!r}",
            f"other ids only, such as {frame['image_id'][0]!r}",
        )
