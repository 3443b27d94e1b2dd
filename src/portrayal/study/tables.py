"""Parse raw tables into the tables of a study. Every value is validated and every bad row is reported."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from portrayal.errors import Problems, shown
from portrayal.results import HUMAN
from portrayal.study.formats.raw_table import NO_LABEL, VALUES_COLUMN, RawTable
from portrayal.study.group_names import GroupNames
from portrayal.study.image_ids import image_id
from portrayal.study.validation import (
    BOX_COLUMNS,
    ID_COLUMNS,
    LABEL_KINDS,
    TableValidator,
    normalize_name,
    parse_count,
    parse_finite,
    parse_fraction,
    parse_group_name,
    parse_kind,
    parse_nonempty_text,
    parse_text,
)

CAPTIONS = {"image_id": pl.String(), "system": pl.String(), "sample": pl.Int64(), "caption": pl.String()}
REFERENCES = {"image_id": pl.String(), "caption": pl.String()}
ATTRIBUTES = {"image_id": pl.String()}
PEOPLE = {"image_id": pl.String(), "person": pl.Int64()}
OBJECTS = {
    "image_id": pl.String(),
    "label": pl.String(),
    "kind": pl.String(),
    "source": pl.String(),
    "confidence": pl.Float64(),
    **BOX_COLUMNS,
}
RANKINGS = {"query": pl.String(), "system": pl.String(), "image_id": pl.String(), "score": pl.Float64()}
FROM_CAPTIONS = "captions"  # source of labels that are words found in captions, which are not ground truth
SEVERAL_LABELS = "visual context"  # source of lines that contain several labels: french loaf conch person
CERTAINTY_SUFFIX = "_certainty"  # suffix of a column with the confidence of an attribute

MAX_GROUPS = 50  # distinct values of a column that is used as an attribute without being named
MIN_SINGLETONS = 5  # minimum number of one-image groups for a column to count as free text

_CAPTION_COLUMNS = ("caption", "pred", "text")
_CAPTION_LIST_COLUMNS = ("captions", VALUES_COLUMN)
_LABEL_COLUMNS = ("label", "object")
_ITEM_COLUMNS = ("image_id", "item", *(name for name in ID_COLUMNS if name != "image_id"))
_LABEL_LIST_COLUMNS = ("labels", "objects", VALUES_COLUMN)


def parse_captions(raw: RawTable, system: str | None, problems: Problems) -> pl.DataFrame:
    """Parse captions of systems. `system` is the name for a file without that column."""
    table = TableValidator(_explode_lists(raw, _CAPTION_LIST_COLUMNS, "caption", problems), problems)
    table.read_ids()
    # An empty caption is valid output and names nobody. A missing caption is an error.
    table.read_column("caption", _CAPTION_COLUMNS, "a caption as text", parse_text)
    if "system" in table.raw.columns:
        table.read_text_column("system", ("system",), "a system's name")
    else:
        table.fill_column("system", system or raw.path.stem)
    if "sample" in table.raw.columns:
        table.read_column("sample", ("sample",), "a sample number, 0 or more", parse_count)
    else:
        table.fill_column("sample", 0)
    table.reject_value("system", HUMAN, f"another name: '{HUMAN}' is reserved for human captions")
    table.reject_duplicates("image_id", "system", "sample")
    return table.to_frame(CAPTIONS)


def parse_references(raw: RawTable, problems: Problems) -> pl.DataFrame:
    """Parse human captions: several rows per image, in the order of the file."""
    table = TableValidator(_explode_lists(raw, _CAPTION_LIST_COLUMNS, "caption", problems), problems)
    table.read_ids()
    table.read_text_column("caption", _CAPTION_COLUMNS, "a caption")
    return table.to_frame(REFERENCES)


def parse_attributes(
    raw: RawTable, problems: Problems, only: Sequence[str] = (), group_names: GroupNames | None = None
) -> pl.DataFrame:
    """Parse attributes of the person shown: one row per image, one column per attribute, missing values as null.

    Parameters
    ----------
    raw : RawTable
        The table as read.
    problems : Problems
        Collects bad rows.
    only : sequence of str
        Attribute columns to keep. Default: all columns that are not something else.
    group_names : GroupNames, optional
        Maps values to groups.
    """
    table = TableValidator(raw, problems)
    table.read_ids()
    names = _attribute_columns(
        table, only, known=(*_CAPTION_COLUMNS, *_CAPTION_LIST_COLUMNS, "system", "sample")
    )
    _map_groups(table, names, group_names)
    table.merge_duplicates("image_id", names)
    return table.to_frame(ATTRIBUTES | _attribute_types(names))


def drop_singleton_groups(
    labels: pl.DataFrame,
    images: pl.Series,
    raw: RawTable | None,
    path: object,
    problems: Problems,
    suggestion: str,
    max_groups: int | None = None,
) -> pl.DataFrame:
    """Drop labels of groups with a single captioned image. Each is a problem.

    Such a group is a misspelt label, or one person whose only caption would be the group's score. A column with mostly
    such groups, or with more than `max_groups` groups, is free text: it is one problem and is dropped as a whole.
    `suggestion` is the advice in its message.
    """
    captioned = labels.filter(pl.col("image_id").is_in(images.implode()))
    row_of_image = {image_id(value): index for index, value in enumerate(_id_column(raw))} if raw else {}
    for name in labels.columns:
        if name == "image_id" or name.endswith(CERTAINTY_SUFFIX):
            continue
        counts = captioned[name].drop_nulls().value_counts()
        singletons = set(counts.filter(pl.col("count") == 1)[name])
        mostly_singletons = len(singletons) >= MIN_SINGLETONS and 2 * len(singletons) > counts.height
        if mostly_singletons or (max_groups is not None and counts.height > max_groups):
            found = f"{counts.height:,} different values, {len(singletons):,} of them of one image each ({suggestion})"
            problems.note(path, f"groups in the column '{name}'", found)
            labels = labels.drop(name, f"{name}{CERTAINTY_SUFFIX}", strict=False)
            continue
        for image, group in captioned.select("image_id", name).iter_rows():
            if group in singletons:
                location = raw.location(row_of_image[image]) if raw and image in row_of_image else None
                problems.note(
                    path,
                    f"groups of '{name}' with at least two images",
                    f"the group {shown(group)} with one",
                    location,
                )
        labels = labels.with_columns(
            pl.when(~pl.col(name).is_in(list(singletons))).then(pl.col(name)).alias(name)
        )
    return labels


def parse_people(raw: RawTable, problems: Problems) -> pl.DataFrame:
    """Parse attributes of each person of an image: one row per person, with a box in fractions if known."""
    table = TableValidator(raw, problems)
    table.read_ids()
    table.read_column("person", ("person",), "a person's number, 0 or more", parse_count)
    names = _attribute_columns(table, (), known=("person", *BOX_COLUMNS))
    table.read_boxes()
    table.reject_duplicates("image_id", "person")
    return table.to_frame(PEOPLE | _attribute_types(names) | BOX_COLUMNS)


def parse_objects(raw: RawTable, problems: Problems, source: str | None = None) -> pl.DataFrame:
    """Parse object labels by humans or a model. `source` is the labeller of a file without that column.

    An image with an empty list of labels was annotated and contains no object: a row of the kind `none`.
    """
    table = TableValidator(_explode_lists(raw, _LABEL_LIST_COLUMNS, "label", problems), problems)
    table.read_ids()
    kinds = f"one of {', '.join((*LABEL_KINDS, NO_LABEL))}"
    table.read_column("kind", ("kind",), kinds, parse_kind, default="object")
    _check_labels(table)
    if source is not None and "source" in raw.columns:
        raise problems.stop(raw.path, "no column 'source' where the source is given by hand", "that column")
    default = source or _default_source(raw, problems)
    table.read_column("source", ("source",), "who labelled it, as text", parse_nonempty_text, default=default)
    table.read_column("confidence", ("confidence",), "a confidence from 0 to 1", parse_fraction, default=None)
    for index, (labeller, confidence) in enumerate(
        zip(table.columns["source"], table.columns["confidence"], strict=True)
    ):
        if labeller == HUMAN and confidence is not None:
            table.reject_row(index, "no confidence for a human label", shown(confidence))
    table.read_boxes()
    return table.to_frame(OBJECTS)


def _check_labels(table: TableValidator) -> None:
    """Check that all rows have a label, except those of the kind `none`."""
    if not any(name in table.raw.columns for name in _LABEL_COLUMNS):
        table.read_text_column("label", _LABEL_COLUMNS, "a label")  # raises an error about the missing column
    table.read_column("label", _LABEL_COLUMNS, "a label as text", parse_nonempty_text, default=None)
    for index, (label, kind) in enumerate(zip(table.columns["label"], table.columns["kind"], strict=True)):
        if label is None and kind != NO_LABEL:
            table.reject_row(index, "a label as text", "nothing")
        if label is not None and kind == NO_LABEL:
            table.reject_row(index, f"no label in a row of the kind '{NO_LABEL}'", shown(label))
    _unify_labels(table)


def _unify_labels(table: TableValidator) -> None:
    """Unify the spellings of a label ('Dog', 'dog' and 'dog ') to the first one, because captions name one object."""
    first: dict[str, str] = {}
    labels = table.columns["label"]
    for index, label in enumerate(labels):
        if label is not None:
            normalized = " ".join(normalize_name(label).split())
            labels[index] = first.setdefault(normalized.replace("_", " ").casefold(), normalized)


def _default_source(raw: RawTable, problems: Problems) -> str:
    """The labeller of a table without sources: a model named by the file if it has confidences, otherwise humans."""
    if "confidence" not in raw.columns:
        return HUMAN
    if raw.path.stem in (HUMAN, FROM_CAPTIONS):
        expected = "the model's name, in a column 'source' or as --objects-source NAME"
        raise problems.stop(raw.path, expected, f"a file named {raw.path.stem!r}, which is a reserved name")
    return raw.path.stem


def parse_rankings(
    raw: RawTable,
    system: str | None,
    problems: Problems,
    only: Sequence[str] = (),
    group_names: GroupNames | None = None,
) -> pl.DataFrame:
    """Parse search results: the scored items of every query. Other columns are attributes of the items."""
    table = TableValidator(raw, problems)
    table.read_text_column("query", ("query",), "a query")
    if "system" in raw.columns:
        table.read_text_column("system", ("system",), "a system's name")
    else:
        table.fill_column("system", system or raw.path.stem)
    table.read_column("image_id", _ITEM_COLUMNS, "an item or image id", image_id)
    table.read_column("score", ("score",), "a score as a finite number", parse_finite)
    others = (*RANKINGS, *_ITEM_COLUMNS, *_CAPTION_COLUMNS, *_CAPTION_LIST_COLUMNS, "sample", "rank")
    named = [name for name in only if name in raw.columns]
    if not named:  # titles and addresses are not groups, but would look like hundreds of them
        others += tuple(
            name for name, values in raw.columns.items() if len(set(map(str, values))) > MAX_GROUPS
        )
    names = _attribute_columns(table, named, known=others, required=False) if named or not only else []
    _map_groups(table, names, group_names)
    table.reject_value("system", HUMAN, f"another name: '{HUMAN}' is reserved for human captions")
    table.reject_duplicates("query", "system", "image_id")
    return table.to_frame(RANKINGS | _attribute_types(names))


def _attribute_columns(
    table: TableValidator, only: Sequence[str], known: Sequence[str], required: bool = True
) -> list[str]:
    """Read the attribute columns: the requested ones, or all columns that are not something else."""
    others = {VALUES_COLUMN, *ID_COLUMNS, *known}
    names = [name for name in table.raw.columns if name not in others]
    if only:
        for name in only:
            if name not in names:
                raise table.problems.stop(
                    table.raw.path, f"a column '{name}'", f"the columns {', '.join(names)}"
                )
        names = [name for name in names if name in only or name.removesuffix(CERTAINTY_SUFFIX) in only]
    if not names and required:
        raise table.problems.stop(table.raw.path, "a column for at least one attribute", "image ids only")
    for name in names:
        if name.endswith(CERTAINTY_SUFFIX):
            table.read_column(name, (name,), f"{name} from 0 to 1", parse_fraction, default=None)
        else:
            table.read_column(name, (name,), f"a group of '{name}' as text", parse_group_name, default=None)
    return names


def _map_groups(table: TableValidator, names: Sequence[str], group_names: GroupNames | None) -> None:
    for name in names:
        if not name.endswith(CERTAINTY_SUFFIX):
            if group_names is not None:
                table.columns[name] = group_names.apply(name, table.columns[name], names)
            table.check_spelling(name)


def _attribute_types(names: Sequence[str]) -> dict[str, pl.DataType]:
    return {name: pl.Float64() if name.endswith(CERTAINTY_SUFFIX) else pl.String() for name in names}


def _explode_lists(raw: RawTable, list_columns: Sequence[str], element: str, problems: Problems) -> RawTable:
    """Explode a list column into one row per element. The index of a caption in its list becomes its sample."""
    column = next((name for name in list_columns if name in raw.columns), None)
    if column is None or element in raw.columns:
        return raw
    source_rows: list[int] = []
    values: list[Any] = []
    samples: list[int] = []
    empty_rows: list[int] = []  # rows of empty lists
    for index, value in enumerate(raw.columns[column]):
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or (element == "caption" and not value):
            problems.note(raw.path, f"a list of {element}s", shown(value), raw.location(index))
            continue
        if element == "label" and not value:
            empty_rows.append(len(source_rows))
            value = [None]
        source_rows.extend([index] * len(value))
        values.extend(value)
        samples.extend(range(len(value)))
    columns = {
        name: [old[index] for index in source_rows] for name, old in raw.columns.items() if name != column
    }
    columns[element] = values
    if empty_rows:
        kinds = columns.setdefault("kind", [None] * len(source_rows))
        for row in empty_rows:
            kinds[row] = NO_LABEL
    if element == "caption":
        columns["sample"] = samples
    return RawTable(raw.path, raw.unit, [raw.row_numbers[index] for index in source_rows], columns)


def _id_column(raw: RawTable) -> Sequence[Any]:
    return next((raw.columns[name] for name in ID_COLUMNS if name in raw.columns), ())
