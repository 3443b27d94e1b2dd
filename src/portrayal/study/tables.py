"""Raw tables become the tables of a study; every value is checked and every bad row is named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from portrayal.errors import Problems, shown
from portrayal.results import HUMAN
from portrayal.study.formats.raw_table import NOTHING, VALUES, RawTable
from portrayal.study.group_names import GroupNames
from portrayal.study.image_ids import image_id
from portrayal.study.validation import (
    BOX,
    IDS,
    KINDS,
    Checked,
    any_text,
    finite,
    fraction,
    full_text,
    group_name,
    kind_name,
    one_writing,
    whole_number,
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
    **BOX,
}
RANKINGS = {"query": pl.String(), "system": pl.String(), "image_id": pl.String(), "score": pl.Float64()}
FROM_CAPTIONS = "captions"  # the source of labels that are words found in captions: no ground truth
SEVERAL_LABELS = (
    "visual context"  # the source of lines that hold several labels each: french loaf conch person
)
CERTAINTY = "_certainty"  # the ending of a column that says how sure an attribute is

MOST_GROUPS = 50  # different values of a column that is taken for groups without being named
MANY_ALONE = 5  # groups of one image each, from which on most groups being such makes a column free text

_CAPTION = ("caption", "pred", "text")
_CAPTION_LISTS = ("captions", VALUES)
_LABEL = ("label", "object")
_ITEM = ("image_id", "item", *(name for name in IDS if name != "image_id"))
_LABEL_LISTS = ("labels", "objects", VALUES)


def captions(raw: RawTable, system: str | None, problems: Problems) -> pl.DataFrame:
    """What systems said. `system` names the rows of a file that has no such column."""
    table = Checked(_flat(raw, _CAPTION_LISTS, "caption", problems), problems)
    table.ids()
    # A system may say nothing: an empty caption is an answer, and it names nobody. A missing one is not.
    table.take("caption", _CAPTION, "a caption as text", any_text)
    if "system" in table.raw.columns:
        table.text("system", ("system",), "a system's name")
    else:
        table.fill("system", system or raw.path.stem)
    if "sample" in table.raw.columns:
        table.take("sample", ("sample",), "a sample number, 0 or more", whole_number)
    else:
        table.fill("sample", 0)
    table.forbid("system", HUMAN, f"another name: '{HUMAN}' stands for people's captions")
    table.unique("image_id", "system", "sample")
    return table.frame(CAPTIONS)


def references(raw: RawTable, problems: Problems) -> pl.DataFrame:
    """What people said: several rows per image, in the order of the file."""
    table = Checked(_flat(raw, _CAPTION_LISTS, "caption", problems), problems)
    table.ids()
    table.text("caption", _CAPTION, "a caption")
    return table.frame(REFERENCES)


def attributes(
    raw: RawTable, problems: Problems, only: Sequence[str] = (), meaning: GroupNames | None = None
) -> pl.DataFrame:
    """Who is shown: one row per image, one column per attribute; what is missing stays missing.

    `meaning` says which group a value stands for, where it is not the group's name.
    """
    table = Checked(raw, problems)
    table.ids()
    names = _attribute_columns(table, only, known=(*_CAPTION, *_CAPTION_LISTS, "system", "sample"))
    _name_groups(table, names, meaning)
    table.merge_repeats("image_id", names)
    return table.frame(ATTRIBUTES | _attribute_types(names))


def without_singletons(
    labels: pl.DataFrame,
    images: pl.Series,
    raw: RawTable | None,
    path: object,
    problems: Problems,
    way_out: str,
    most: int | None = None,
) -> pl.DataFrame:
    """The labels, less those of a group that holds one captioned image only, each of which is a problem.

    Such a group is a misspelt label, or one person whose single caption would be the group's score. A column in which
    most groups are such, or with more than `most` of them, is no label but free text: it is one problem, and left out
    whole. `way_out` says what to do about it.
    """
    captioned = labels.filter(pl.col("image_id").is_in(images.implode()))
    places = {image_id(value): index for index, value in enumerate(_id_column(raw))} if raw else {}
    for name in labels.columns:
        if name == "image_id" or name.endswith(CERTAINTY):
            continue
        counts = captioned[name].drop_nulls().value_counts()
        alone = set(counts.filter(pl.col("count") == 1)[name])
        mostly_alone = len(alone) >= MANY_ALONE and 2 * len(alone) > counts.height
        if mostly_alone or (most is not None and counts.height > most):
            found = (
                f"{counts.height:,} different values, {len(alone):,} of them of one image each ({way_out})"
            )
            problems.note(path, f"groups in the column '{name}'", found)
            labels = labels.drop(name, f"{name}{CERTAINTY}", strict=False)
            continue
        for image, group in captioned.select("image_id", name).iter_rows():
            if group in alone:
                place = raw.place(places[image]) if raw and image in places else None
                problems.note(
                    path,
                    f"groups of '{name}' with at least two images",
                    f"the group {shown(group)} with one",
                    place,
                )
        labels = labels.with_columns(pl.when(~pl.col(name).is_in(list(alone))).then(pl.col(name)).alias(name))
    return labels


def people(raw: RawTable, problems: Problems) -> pl.DataFrame:
    """Who is shown where an image shows several: one row per person, with a box as fractions if known."""
    table = Checked(raw, problems)
    table.ids()
    table.take("person", ("person",), "a person's number, 0 or more", whole_number)
    names = _attribute_columns(table, (), known=("person", *BOX))
    table.box()
    table.unique("image_id", "person")
    return table.frame(PEOPLE | _attribute_types(names) | BOX)


def objects(raw: RawTable, problems: Problems, source: str | None = None) -> pl.DataFrame:
    """What is in the image, as people or a model labelled it; `source` names who did where the file does not.

    An image with an empty list of labels was annotated, and nothing was found in it: a row of the kind `none`.
    """
    table = Checked(_flat(raw, _LABEL_LISTS, "label", problems), problems)
    table.ids()
    kinds = f"one of {', '.join((*KINDS, NOTHING))}"
    table.take("kind", ("kind",), kinds, kind_name, default="object")
    _labels(table)
    if source is not None and "source" in raw.columns:
        raise problems.stop(raw.path, "no column 'source' where the source is given by hand", "that column")
    default = source or _unnamed_source(raw, problems)
    table.take("source", ("source",), "who labelled it, as text", full_text, default=default)
    table.take("confidence", ("confidence",), "a confidence from 0 to 1", fraction, default=None)
    for index, (labeller, confidence) in enumerate(
        zip(table.columns["source"], table.columns["confidence"], strict=True)
    ):
        if labeller == HUMAN and confidence is not None:
            table.bad(index, "no confidence for a human label", shown(confidence))
    table.box()
    return table.frame(OBJECTS)


def _labels(table: Checked) -> None:
    """Every row needs a label, but for the kind `none`, which has none."""
    if not any(name in table.raw.columns for name in _LABEL):
        table.text("label", _LABEL, "a label")  # complains of the missing column
    table.take("label", _LABEL, "a label as text", full_text, default=None)
    for index, (label, kind) in enumerate(zip(table.columns["label"], table.columns["kind"], strict=True)):
        if label is None and kind != NOTHING:
            table.bad(index, "a label as text", "nothing")
        if label is not None and kind == NOTHING:
            table.bad(index, f"no label in a row of the kind '{NOTHING}'", shown(label))
    _one_writing_a_label(table)


def _one_writing_a_label(table: Checked) -> None:
    """'Dog', 'dog' and 'dog ' are one object, written as it was first: a caption could name but one of them."""
    first: dict[str, str] = {}
    labels = table.columns["label"]
    for index, label in enumerate(labels):
        if label is not None:
            written = " ".join(one_writing(label).split())
            labels[index] = first.setdefault(written.replace("_", " ").casefold(), written)


def _unnamed_source(raw: RawTable, problems: Problems) -> str:
    """A table with confidences and no source comes from a model; like a system, it is named by its file."""
    if "confidence" not in raw.columns:
        return HUMAN
    if raw.path.stem in (HUMAN, FROM_CAPTIONS):
        expected = "the model's name, in a column 'source' or as --objects-source NAME"
        raise problems.stop(raw.path, expected, f"a file named {raw.path.stem!r}, which means something else")
    return raw.path.stem


def rankings(
    raw: RawTable,
    system: str | None,
    problems: Problems,
    only: Sequence[str] = (),
    meaning: GroupNames | None = None,
) -> pl.DataFrame:
    """What a search gives: for every query its items, each with a score. Other columns say what group an item is of."""
    table = Checked(raw, problems)
    table.text("query", ("query",), "a query")
    if "system" in raw.columns:
        table.text("system", ("system",), "a system's name")
    else:
        table.fill("system", system or raw.path.stem)
    table.take("image_id", _ITEM, "an item or image id", image_id)
    table.take("score", ("score",), "a score as a finite number", finite)
    others = (*RANKINGS, *_ITEM, *_CAPTION, *_CAPTION_LISTS, "sample", "rank")
    named = [name for name in only if name in raw.columns]
    if not named:  # titles and addresses are no groups, and would be taken for hundreds of them
        others += tuple(name for name, some in raw.columns.items() if len(set(map(str, some))) > MOST_GROUPS)
    names = _attribute_columns(table, named, known=others, required=False) if named or not only else []
    _name_groups(table, names, meaning)
    table.forbid("system", HUMAN, f"another name: '{HUMAN}' stands for people's captions")
    table.unique("query", "system", "image_id")
    return table.frame(RANKINGS | _attribute_types(names))


def _attribute_columns(
    table: Checked, only: Sequence[str], known: Sequence[str], required: bool = True
) -> list[str]:
    """Take the attribute columns: those asked for, else every column that is not something else."""
    others = {VALUES, *IDS, *known}
    names = [name for name in table.raw.columns if name not in others]
    if only:
        for name in only:
            if name not in names:
                raise table.problems.stop(
                    table.raw.path, f"a column '{name}'", f"the columns {', '.join(names)}"
                )
        names = [name for name in names if name in only or name.removesuffix(CERTAINTY) in only]
    if not names and required:
        raise table.problems.stop(table.raw.path, "a column for at least one attribute", "image ids only")
    for name in names:
        if name.endswith(CERTAINTY):
            table.take(name, (name,), f"{name} from 0 to 1", fraction, default=None)
        else:
            table.take(name, (name,), f"a group of '{name}' as text", group_name, default=None)
    return names


def _name_groups(table: Checked, names: Sequence[str], meaning: GroupNames | None) -> None:
    for name in names:
        if not name.endswith(CERTAINTY):
            if meaning is not None:
                table.columns[name] = meaning.apply(name, table.columns[name], names)
            table.one_spelling(name)


def _attribute_types(names: Sequence[str]) -> dict[str, pl.DataType]:
    return {name: pl.Float64() if name.endswith(CERTAINTY) else pl.String() for name in names}


def _flat(raw: RawTable, lists: Sequence[str], single: str, problems: Problems) -> RawTable:
    """One row per element where a column holds lists; captions get their place in the list as sample."""
    column = next((name for name in lists if name in raw.columns), None)
    if column is None or single in raw.columns:
        return raw
    picked: list[int] = []
    values: list[Any] = []
    numbers: list[int] = []
    nothing: list[int] = []  # rows that stand for an empty list
    for index, value in enumerate(raw.columns[column]):
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or (single == "caption" and not value):
            problems.note(raw.path, f"a list of {single}s", shown(value), raw.place(index))
            continue
        if single == "label" and not value:
            nothing.append(len(picked))
            value = [None]
        picked.extend([index] * len(value))
        values.extend(value)
        numbers.extend(range(len(value)))
    columns = {name: [old[index] for index in picked] for name, old in raw.columns.items() if name != column}
    columns[single] = values
    if nothing:
        kinds = columns.setdefault("kind", [None] * len(picked))
        for place in nothing:
            kinds[place] = NOTHING
    if single == "caption":
        columns["sample"] = numbers
    return RawTable(raw.path, raw.unit, [raw.where[index] for index in picked], columns)


def _id_column(raw: RawTable) -> Sequence[Any]:
    return next((raw.columns[name] for name in IDS if name in raw.columns), ())
