"""Raw tables become the tables of a study; every value is checked and every bad row is named."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import polars as pl

from portrayal.errors import Problems, shown
from portrayal.results import HUMAN
from portrayal.study.formats.raw import VALUES, RawTable
from portrayal.study.identifiers import image_id, is_unicode

CAPTIONS = {"image_id": pl.String(), "system": pl.String(), "sample": pl.Int64(), "caption": pl.String()}
REFERENCES = {"image_id": pl.String(), "caption": pl.String()}
ATTRIBUTES = {"image_id": pl.String()}
BOX = {"x": pl.Float64(), "y": pl.Float64(), "width": pl.Float64(), "height": pl.Float64()}
PEOPLE = {"image_id": pl.String(), "person": pl.Int64()}
OBJECTS = {
    "image_id": pl.String(),
    "label": pl.String(),
    "kind": pl.String(),
    "source": pl.String(),
    "confidence": pl.Float64(),
    **BOX,
}
KINDS = ("object", "attribute", "relation")
CERTAINTY = "_certainty"  # the ending of a column that says how sure an attribute is

_IDS = ("image_id", "img_id", "id", "filename")
_CAPTION = ("caption", "pred", "text")
_CAPTION_LISTS = ("captions", VALUES)
_LABEL = ("label", "object")
_LABEL_LISTS = ("labels", "objects", VALUES)


def captions(raw: RawTable, system: str | None, problems: Problems) -> pl.DataFrame:
    """What systems said. `system` names the rows of a file that has no such column."""
    table = _Checked(_flat(raw, _CAPTION_LISTS, "caption", problems), problems)
    table.ids()
    # A system may say nothing: an empty caption is an answer, and it names nobody. A missing one is not.
    table.take("caption", _CAPTION, "a caption as text", _any_text)
    if "system" in table.raw.columns:
        table.text("system", ("system",), "a system's name")
    else:
        table.fill("system", system or raw.path.stem)
    if "sample" in table.raw.columns:
        table.take("sample", ("sample",), "a sample number, 0 or more", _count)
    else:
        table.fill("sample", 0)
    table.forbid("system", HUMAN, f"another name: '{HUMAN}' stands for people's captions")
    table.unique("image_id", "system", "sample")
    return table.frame(CAPTIONS)


def references(raw: RawTable, problems: Problems) -> pl.DataFrame:
    """What people said: several rows per image, in the order of the file."""
    table = _Checked(_flat(raw, _CAPTION_LISTS, "caption", problems), problems)
    table.ids()
    table.text("caption", _CAPTION, "a caption")
    return table.frame(REFERENCES)


def attributes(raw: RawTable, problems: Problems, only: Sequence[str] = ()) -> pl.DataFrame:
    """Who is shown: one row per image, one column per attribute; what is missing stays missing."""
    table = _Checked(raw, problems)
    table.ids()
    names = _attribute_columns(table, only, known=(*_CAPTION, *_CAPTION_LISTS, "system", "sample"))
    for name in names:
        if not name.endswith(CERTAINTY):
            table.one_spelling(name)
    table.merge_repeats("image_id", names)
    return table.frame(ATTRIBUTES | _attribute_types(names))


def without_singletons(
    labels: pl.DataFrame, images: pl.Series, raw: RawTable | None, path: object, problems: Problems
) -> pl.DataFrame:
    """The labels, less those of a group that holds one captioned image only, each of which is a problem.

    Such a group is a misspelt label, or one person whose single caption would be the group's score.
    """
    captioned = labels.filter(pl.col("image_id").is_in(images.implode()))
    places = {image_id(value): index for index, value in enumerate(_id_column(raw))} if raw else {}
    for name in labels.columns:
        if name == "image_id" or name.endswith(CERTAINTY):
            continue
        counts = captioned[name].drop_nulls().value_counts()
        alone = set(counts.filter(pl.col("count") == 1)[name])
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


def joined_attributes(
    parts: Sequence[pl.DataFrame], paths: Sequence[object], problems: Problems
) -> pl.DataFrame:
    """Several tables of labels as one row per image; where two speak of the same label they must agree."""
    joined = parts[0]
    for part, path in zip(parts[1:], paths[1:], strict=True):
        joined = joined.join(
            part, on="image_id", how="full", coalesce=True, suffix="_again", maintain_order="left_right"
        )
        for name in [column for column in part.columns if f"{column}_again" in joined.columns]:
            other = f"{name}_again"
            for image, first, second in (
                joined.filter(pl.col(name) != pl.col(other)).select("image_id", name, other).rows()
            ):
                problems.note(
                    path, f"{name} {first!r} of image {image}, as another file has it", shown(second)
                )
            joined = joined.with_columns(pl.coalesce(name, other).alias(name)).drop(other)
    return joined


def refuse_repeats(captions: pl.DataFrame, path: object, problems: Problems) -> None:
    """Within one file this was checked with its lines; here two files gave the same system's caption."""
    key = ["image_id", "system", "sample"]
    repeated = captions.filter(captions.select(key).is_duplicated())
    if repeated.height:
        row = repeated.row(0, named=True)
        found = f"image {row['image_id']} of system {row['system']!r} in more than one file"
        raise problems.stop(path, f"each ({', '.join(key)}) once", f"{found} (name the systems apart)")


def people(raw: RawTable, problems: Problems) -> pl.DataFrame:
    """Who is shown where an image shows several: one row per person, with a box as fractions if known."""
    table = _Checked(raw, problems)
    table.ids()
    table.take("person", ("person",), "a person's number, 0 or more", _count)
    names = _attribute_columns(table, (), known=("person", *BOX))
    table.box()
    table.unique("image_id", "person")
    return table.frame(PEOPLE | _attribute_types(names) | BOX)


def objects(raw: RawTable, problems: Problems) -> pl.DataFrame:
    """What is in the image, as people or a model labelled it."""
    table = _Checked(_flat(raw, _LABEL_LISTS, "label", problems), problems)
    table.ids()
    table.text("label", _LABEL, "a label")
    table.take("kind", ("kind",), f"one of {', '.join(KINDS)}", _kind, default="object")
    # A table with confidences and no source comes from a model; like a system, it is named by its file.
    unsaid = raw.path.stem if "confidence" in raw.columns else HUMAN
    table.take("source", ("source",), "who labelled it, as text", _text, default=unsaid)
    table.take("confidence", ("confidence",), "a confidence from 0 to 1", _fraction, default=None)
    for index, (source, confidence) in enumerate(
        zip(table.columns["source"], table.columns["confidence"], strict=True)
    ):
        if source == HUMAN and confidence is not None:
            table.bad(index, "no confidence for a human label", shown(confidence))
    table.box()
    return table.frame(OBJECTS)


def must_share_images(
    frame: pl.DataFrame, images: pl.Series, path: object, what: str, problems: Problems
) -> None:
    """A table of which no row is about a captioned image is a mistake, most often in how ids are written."""
    if frame.height and images.len() and not frame.get_column("image_id").is_in(images.implode()).any():
        raise problems.stop(
            path,
            f"{what} of the captioned images, such as {images[0]!r}",
            f"other ids only, such as {frame['image_id'][0]!r}",
        )


class _Checked:
    """One table on its way in: takes columns out of the raw one and remembers which rows are bad."""

    def __init__(self, raw: RawTable, problems: Problems):
        self.raw = raw
        self.problems = problems
        self.good = [True] * len(raw.where)
        self.columns: dict[str, list[Any]] = {}

    def ids(self) -> None:
        self.take("image_id", _IDS, "an image id", image_id)

    def text(self, name: str, accepted: Sequence[str], what: str) -> None:
        self.take(name, accepted, f"{what} as text", _text)

    def fill(self, name: str, value: object) -> None:
        self.columns[name] = [value] * len(self.good)

    _REQUIRED = object()

    def take(
        self,
        name: str,
        accepted: Sequence[str],
        expected: str,
        convert: Callable[[Any], Any],
        default: object = _REQUIRED,
    ) -> None:
        """Our column `name` from the first of the `accepted` ones; `convert` gives None for what is bad.

        With a default, a column or a value may be missing; without one it may not.
        """
        found = next((column for column in accepted if column in self.raw.columns), None)
        if found is None:
            if default is self._REQUIRED:
                has = ", ".join(column for column in self.raw.columns if column != VALUES) or "none"
                raise self.problems.stop(
                    self.raw.path, f"a column {' or '.join(map(repr, accepted))}", f"the columns {has}"
                )
            self.fill(name, default)
            return
        made = []
        for index, value in enumerate(self.raw.columns[found]):
            if value in (None, "") and default is not self._REQUIRED:
                made.append(default)
                continue
            converted = convert(value)
            if converted is None:
                self.bad(index, expected, "nothing" if value in (None, "") else shown(value))
            made.append(converted)
        self.columns[name] = made

    def box(self) -> None:
        given = [side for side in BOX if side in self.raw.columns]
        for side in BOX:
            self.take(side, (side,), f"{side} of a box as a fraction from 0 to 1", _fraction, default=None)
        if given:
            for index, sides in enumerate(zip(*(self.columns[side] for side in BOX), strict=True)):
                if 0 < sum(side is None for side in sides) < len(BOX):
                    self.bad(index, "x, y, width and height of a box, or none of them", shown(sides))

    def forbid(self, name: str, value: object, expected: str) -> None:
        for index, found in enumerate(self.columns[name]):
            if found == value:
                self.bad(index, expected, shown(found))

    def unique(self, *key: str) -> None:
        """Rows that share their key: the first counts, the others are bad."""
        first: dict[Hashable, int] = {}
        for index, values in enumerate(zip(*(self.columns[name] for name in key), strict=True)):
            if not self.good[index]:
                continue
            before = first.setdefault(values, index)
            if before != index:
                what = ", ".join(f"{name} {value}" for name, value in zip(key, values, strict=True))
                self.bad(
                    index,
                    f"each ({', '.join(key)}) once",
                    f"{what} again (first at {self.raw.place(before)})",
                )

    def merge_repeats(self, key: str, names: Sequence[str]) -> None:
        """Rows that share their key must agree (a table with a row per caption repeats its labels); one is kept."""
        first: dict[Hashable, int] = {}
        for index, value in enumerate(self.columns[key]):
            before = first.setdefault(value, index) if self.good[index] else index
            if before == index:
                continue
            differing = [name for name in names if self.columns[name][index] != self.columns[name][before]]
            if differing:
                name = differing[0]
                expected = (
                    f"{name} {self.columns[name][before]!r} of image {value} as at {self.raw.place(before)}"
                )
                self.bad(index, expected, shown(self.columns[name][index]))
            self.good[index] = False

    def one_spelling(self, name: str) -> None:
        """'Male' and 'male' would be two groups by accident; the first spelling is the group's name."""
        first: dict[str, str] = {}
        for index, value in enumerate(self.columns[name]):
            if value is not None and first.setdefault(value.casefold(), value) != value:
                self.note(
                    index, f"the group {first[value.casefold()]!r} of '{name}' spelt one way", shown(value)
                )
                self.columns[name][index] = None

    def bad(self, index: int, expected: str, found: str) -> None:
        """The row cannot be used; only its first problem is told."""
        if self.good[index]:
            self.good[index] = False
            self.note(index, expected, found)

    def note(self, index: int, expected: str, found: str) -> None:
        self.problems.note(self.raw.path, expected, found, self.raw.place(index))

    def frame(self, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        if all(self.good):
            kept = self.columns
        else:
            kept = {
                name: [value for value, good in zip(values, self.good, strict=True) if good]
                for name, values in self.columns.items()
            }
        return pl.DataFrame(kept, schema=schema)


def _attribute_columns(table: _Checked, only: Sequence[str], known: Sequence[str]) -> list[str]:
    """Take the attribute columns: those asked for, else every column that is not something else."""
    others = {VALUES, *_IDS, *known}
    names = [name for name in table.raw.columns if name not in others]
    if only:
        for name in only:
            if name not in names:
                raise table.problems.stop(
                    table.raw.path, f"a column '{name}'", f"the columns {', '.join(names)}"
                )
        names = [name for name in names if name in only or name.removesuffix(CERTAINTY) in only]
    if not names:
        raise table.problems.stop(table.raw.path, "a column for at least one attribute", "image ids only")
    for name in names:
        if name.endswith(CERTAINTY):
            table.take(name, (name,), f"{name} from 0 to 1", _fraction, default=None)
        else:
            table.take(name, (name,), f"a group of '{name}' as text", _group, default=None)
    return names


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
    for index, value in enumerate(raw.columns[column]):
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list | tuple) or (single == "caption" and not value):
            problems.note(raw.path, f"a list of {single}s", shown(value), raw.place(index))
            continue
        picked.extend([index] * len(value))
        values.extend(value)
        numbers.extend(range(len(value)))
    columns = {name: [old[index] for index in picked] for name, old in raw.columns.items() if name != column}
    columns[single] = values
    if single == "caption":
        columns["sample"] = numbers
    return RawTable(raw.path, raw.unit, [raw.where[index] for index in picked], columns)


def _id_column(raw: RawTable) -> Sequence[Any]:
    return next((raw.columns[name] for name in _IDS if name in raw.columns), ())


def _any_text(value: object) -> str | None:
    return value if isinstance(value, str) and is_unicode(value) else None


def _text(value: object) -> str | None:
    text = _any_text(value)
    return text if text and text.strip() else None


def _group(value: object) -> str | None:
    """A group's name; numbers and booleans, which some tables use as labels, become text."""
    if isinstance(value, float) and value.is_integer():  # whole numbers in a column with gaps
        value = int(value)
    if isinstance(value, bool) or (isinstance(value, int) and value.bit_length() < 128):
        return str(value)
    text = _text(value)
    return text.strip() if text else None


def _kind(value: object) -> str | None:
    return value if isinstance(value, str) and value in KINDS else None


def _count(value: object) -> int | None:
    number = _number(value)
    return int(number) if number is not None and 0 <= number < 2**31 and number.is_integer() else None


def _fraction(value: object) -> float | None:
    number = _number(value)
    return number if number is not None and 0 <= number <= 1 else None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
