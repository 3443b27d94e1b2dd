"""Validation of one table: every value is converted and checked, and every bad row is reported."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import polars as pl

from portrayal.documents import is_unicode
from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import NO_LABEL, VALUES_COLUMN, RawTable
from portrayal.study.image_ids import image_id

ID_COLUMNS = ("image_id", "img_id", "id", "filename")  # accepted names of the image id column
BOX_COLUMNS: dict[str, pl.DataType] = {
    "x": pl.Float64(),
    "y": pl.Float64(),
    "width": pl.Float64(),
    "height": pl.Float64(),
}
LABEL_KINDS = ("object", "attribute", "relation")


class TableValidator:
    """Reads columns of a raw table and records which rows are bad."""

    def __init__(self, raw: RawTable, problems: Problems):
        self.raw = raw
        self.problems = problems
        self.is_valid = [True] * len(raw.row_numbers)
        self.columns: dict[str, list[Any]] = {}

    def read_ids(self) -> None:
        self.read_column("image_id", ID_COLUMNS, "an image id", image_id)

    def read_text_column(self, name: str, accepted: Sequence[str], what: str) -> None:
        self.read_column(name, accepted, f"{what} as text", parse_nonempty_text)

    def fill_column(self, name: str, value: object) -> None:
        self.columns[name] = [value] * len(self.is_valid)

    _REQUIRED = object()

    def read_column(
        self,
        name: str,
        accepted: Sequence[str],
        expected: str,
        convert: Callable[[Any], Any],
        default: object = _REQUIRED,
    ) -> None:
        """Read the column `name` from the first of the `accepted` columns. `convert` returns None for bad values.

        With a default, the column and its values are optional; otherwise they are required.
        """
        column_name = next((column for column in accepted if column in self.raw.columns), None)
        if column_name is None:
            if default is self._REQUIRED:
                has = ", ".join(column for column in self.raw.columns if column != VALUES_COLUMN) or "none"
                raise self.problems.stop(
                    self.raw.path, f"a column {' or '.join(map(repr, accepted))}", f"the columns {has}"
                )
            self.fill_column(name, default)
            return
        converted_values = []
        for index, value in enumerate(self.raw.columns[column_name]):
            if value in (None, "") and default is not self._REQUIRED:
                converted_values.append(default)
                continue
            converted = convert(value)
            if converted is None:
                self.reject_row(index, expected, "nothing" if value in (None, "") else shown(value))
            converted_values.append(converted)
        self.columns[name] = converted_values

    def read_boxes(self) -> None:
        given = [side for side in BOX_COLUMNS if side in self.raw.columns]
        for side in BOX_COLUMNS:
            self.read_column(
                side, (side,), f"{side} of a box as a fraction from 0 to 1", parse_fraction, default=None
            )
        if given:
            for index, sides in enumerate(zip(*(self.columns[side] for side in BOX_COLUMNS), strict=True)):
                if 0 < sum(side is None for side in sides) < len(BOX_COLUMNS):
                    self.reject_row(index, "x, y, width and height of a box, or none of them", shown(sides))

    def reject_value(self, name: str, value: str, expected: str) -> None:
        for index, found in enumerate(self.columns[name]):
            if isinstance(found, str) and found.casefold() == value.casefold():
                self.reject_row(index, expected, shown(found))

    def reject_duplicates(self, *key: str) -> None:
        """Reject all rows of a key except the first."""
        first: dict[Hashable, int] = {}
        for index, values in enumerate(zip(*(self.columns[name] for name in key), strict=True)):
            if not self.is_valid[index]:
                continue
            before = first.setdefault(values, index)
            if before != index:
                described = ", ".join(f"{name} {value}" for name, value in zip(key, values, strict=True))
                self.reject_row(
                    index,
                    f"each ({', '.join(key)}) once",
                    f"{described} again (first at {self.raw.location(before)})",
                )

    def merge_duplicates(self, key: str, names: Sequence[str]) -> None:
        """Keep one row per key. Rows of a key must agree (a table with a row per caption repeats its labels)."""
        first: dict[Hashable, int] = {}
        for index, value in enumerate(self.columns[key]):
            before = first.setdefault(value, index) if self.is_valid[index] else index
            if before == index:
                continue
            differing = [name for name in names if self.columns[name][index] != self.columns[name][before]]
            if differing:
                name = differing[0]
                expected = f"{name} {self.columns[name][before]!r} of image {value} as at {self.raw.location(before)}"
                self.reject_row(index, expected, shown(self.columns[name][index]))
            self.is_valid[index] = False

    def check_spelling(self, name: str) -> None:
        """Drop labels that differ in case from the first spelling ('Male' and 'male'). One problem per column."""
        first: dict[str, str] = {}
        deviating: list[int] = []
        for index, value in enumerate(self.columns[name]):
            if value is not None and first.setdefault(value.casefold(), value) != value:
                deviating.append(index)
        if not deviating:
            return
        value = self.columns[name][deviating[0]]
        self.problems.note(
            self.raw.path,
            f"the group {first[value.casefold()]!r} of '{name}' spelt one way",
            f"{shown(value)} ({len(deviating):,} such labels in all; "
            f"{suggest_import_map(name, value, first[value.casefold()])})",
            self.raw.location(deviating[0]),
            count=len(deviating),
        )
        for index in deviating:
            self.columns[name][index] = None

    def reject_row(self, index: int, expected: str, found: str) -> None:
        """Mark a row as bad. Only its first problem is reported."""
        if self.is_valid[index]:
            self.is_valid[index] = False
            self.note(index, expected, found)

    def note(self, index: int, expected: str, found: str) -> None:
        self.problems.note(self.raw.path, expected, found, self.raw.location(index))

    def to_frame(self, schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
        if all(self.is_valid):
            columns = self.columns
        else:
            columns = {
                name: [value for value, is_valid in zip(values, self.is_valid, strict=True) if is_valid]
                for name, values in self.columns.items()
            }
        return pl.DataFrame(columns, schema=schema)


def suggest_import_map(name: str, value: str, group: str) -> str:
    """The import option that unifies two spellings of a group."""
    return f"portrayal import --map {name}:{value}={group} makes them one"


def parse_text(value: object) -> str | None:
    return value if isinstance(value, str) and is_unicode(value) else None


def parse_nonempty_text(value: object) -> str | None:
    text = parse_text(value)
    return text if text and text.strip() else None


def parse_group_name(value: object) -> str | None:
    """A group name. Numbers and booleans, which some tables use as labels, become text."""
    if isinstance(value, float) and value.is_integer():  # integers of a column with missing values
        value = int(value)
    if isinstance(value, bool) or (isinstance(value, int) and value.bit_length() < 128):
        return str(value)
    text = parse_nonempty_text(value)
    return normalize_name(text) or None if text else None


# Soft hyphen, zero-width space, word joiner, byte order mark, direction marks; not the zero-width joiners of letters.
_INVISIBLE = dict.fromkeys(
    (0xAD, 0x200B, 0x2060, 0xFEFF, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)


def normalize_name(name: str) -> str:
    """Normalise the spelling of a name: surrounding blanks, invisible characters and Unicode composition.

    >>> normalize_name(" male\N{ZERO WIDTH SPACE} "), normalize_name("ma\N{COMBINING DIAERESIS}nnlich") == "männlich"
    ('male', True)
    """
    return unicodedata.normalize("NFC", name.translate(_INVISIBLE)).strip()


def parse_kind(value: object) -> str | None:
    return value if isinstance(value, str) and value in (*LABEL_KINDS, NO_LABEL) else None


def parse_count(value: object) -> int | None:
    number = parse_finite(value)
    return int(number) if number is not None and 0 <= number < 2**31 and number.is_integer() else None


def parse_fraction(value: object) -> float | None:
    number = parse_finite(value)
    return number if number is not None and 0 <= number <= 1 else None


def parse_finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
