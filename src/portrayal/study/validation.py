"""One table on its way in: every value is converted and checked, and every bad row is named."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import polars as pl

from portrayal.documents import is_unicode
from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import NOTHING, VALUES, RawTable
from portrayal.study.image_ids import image_id

IDS = ("image_id", "img_id", "id", "filename")  # what a column of image ids may be called
BOX: dict[str, pl.DataType] = {
    "x": pl.Float64(),
    "y": pl.Float64(),
    "width": pl.Float64(),
    "height": pl.Float64(),
}
KINDS = ("object", "attribute", "relation")


class Checked:
    """One table on its way in: takes columns out of the raw one and remembers which rows are bad."""

    def __init__(self, raw: RawTable, problems: Problems):
        self.raw = raw
        self.problems = problems
        self.good = [True] * len(raw.where)
        self.columns: dict[str, list[Any]] = {}

    def ids(self) -> None:
        self.take("image_id", IDS, "an image id", image_id)

    def text(self, name: str, accepted: Sequence[str], what: str) -> None:
        self.take(name, accepted, f"{what} as text", full_text)

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
            self.take(side, (side,), f"{side} of a box as a fraction from 0 to 1", fraction, default=None)
        if given:
            for index, sides in enumerate(zip(*(self.columns[side] for side in BOX), strict=True)):
                if 0 < sum(side is None for side in sides) < len(BOX):
                    self.bad(index, "x, y, width and height of a box, or none of them", shown(sides))

    def forbid(self, name: str, value: str, expected: str) -> None:
        for index, found in enumerate(self.columns[name]):
            if isinstance(found, str) and found.casefold() == value.casefold():
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
        """'Male' and 'male' would be two groups by accident. One problem for a column, however many rows have it."""
        first: dict[str, str] = {}
        others: list[int] = []
        for index, value in enumerate(self.columns[name]):
            if value is not None and first.setdefault(value.casefold(), value) != value:
                others.append(index)
        if not others:
            return
        value = self.columns[name][others[0]]
        self.problems.note(
            self.raw.path,
            f"the group {first[value.casefold()]!r} of '{name}' spelt one way",
            f"{shown(value)} ({len(others):,} such labels in all; "
            f"{mapped_by_import(name, value, first[value.casefold()])})",
            self.raw.place(others[0]),
            count=len(others),
        )
        for index in others:
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


def mapped_by_import(name: str, value: str, group: str) -> str:
    """What to do about a group that is spelt two ways."""
    return f"portrayal import --map {name}:{value}={group} makes them one"


def any_text(value: object) -> str | None:
    return value if isinstance(value, str) and is_unicode(value) else None


def full_text(value: object) -> str | None:
    text = any_text(value)
    return text if text and text.strip() else None


def group_name(value: object) -> str | None:
    """A group's name; numbers and booleans, which some tables use as labels, become text."""
    if isinstance(value, float) and value.is_integer():  # whole numbers in a column with gaps
        value = int(value)
    if isinstance(value, bool) or (isinstance(value, int) and value.bit_length() < 128):
        return str(value)
    text = full_text(value)
    return one_writing(text) or None if text else None


# Soft hyphen, space without width, word joiner, byte order mark, marks of direction; not what joins letters.
_UNSEEN = dict.fromkeys(
    (0xAD, 0x200B, 0x2060, 0xFEFF, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
)


def one_writing(name: str) -> str:
    """A name without what nobody sees: blanks around it, characters without width, and two ways to write one letter.

    >>> one_writing(" male\N{ZERO WIDTH SPACE} "), one_writing("ma\N{COMBINING DIAERESIS}nnlich") == "männlich"
    ('male', True)
    """
    return unicodedata.normalize("NFC", name.translate(_UNSEEN)).strip()


def kind_name(value: object) -> str | None:
    return value if isinstance(value, str) and value in (*KINDS, NOTHING) else None


def whole_number(value: object) -> int | None:
    number = finite(value)
    return int(number) if number is not None and 0 <= number < 2**31 and number.is_integer() else None


def fraction(value: object) -> float | None:
    number = finite(value)
    return number if number is not None and 0 <= number <= 1 else None


def finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
