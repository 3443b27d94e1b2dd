"""Evidence page by page, read from its file as it is asked for.

What is kept in memory: for every measurement the first and last place of its rows and how many there are, and
the order of rows of the last searches and sorts (4 bytes a row, at most MOST_KEPT rows in all, or one order if that
alone is longer). The longest measurements are sorted at the start, in the background. The rest stays in the file: a
page is read by its place, a search or a sort reads one column of the rows of its measurement and gives it back.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.results import EVIDENCE_FILE, ResultsFile

SORTS = {"": None, "image": "image_id", "caption": "caption"}
MOST_KEPT = 8_000_000  # rows of which the order is kept: 32 MB
LARGE = 100_000  # rows; of more than these the first pages are found without sorting all
_ROW = "row"


@dataclass(frozen=True)
class Wanted:
    """Which rows, and in which order; within equal ones, as they stand in the file."""

    id: str
    search: str = ""
    system: str | None = None
    sort: str = ""


@dataclass(frozen=True)
class EvidencePage:
    total: int  # rows that are wanted, on all pages
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class _Span:
    first: int
    last: int
    count: int

    @property
    def unbroken(self) -> bool:
        return self.last - self.first + 1 == self.count


class Evidence:
    """The evidence of one results file."""

    def __init__(self, results: ResultsFile) -> None:
        self._path = results.beside.get("evidence", results.path.parent / EVIDENCE_FILE)
        self._scan = results.scan("evidence")
        self._spans = self._find_spans()
        self._kept: OrderedDict[Wanted, pl.Series] = OrderedDict()
        self._systems: dict[str, list[str]] = {}
        self._lock = threading.Lock()
        self.ahead = threading.Thread(target=self._order_ahead, daemon=True)
        self.ahead.start()

    def count(self, identifier: str) -> int:
        span = self._spans.get(identifier)
        return 0 if span is None else span.count

    def systems(self, identifier: str) -> list[str]:
        """Whose captions stand behind a number."""
        if identifier not in self._systems:
            if identifier not in self._spans:
                return []
            found = self._collect(self._rows_of(identifier, "system").select(pl.col("system").unique()))
            self._systems[identifier] = sorted(found.get_column("system").drop_nulls())
        return self._systems[identifier]

    def page(self, wanted: Wanted, number: int, size: int) -> EvidencePage:
        """Rows of a page; the first page is 1, and behind the last one there are none."""
        span = self._spans.get(wanted.id)
        start = (number - 1) * size
        if span is None:
            return EvidencePage(0, [])
        if not (wanted.search or wanted.system is not None or wanted.sort) and span.unbroken:
            length = max(0, min(size, span.count - start))
            found = self._collect(self._scan.slice(span.first + start, length)) if length else None
            return EvidencePage(span.count, [] if found is None else found.to_dicts())
        if _is_plain_sort(wanted) and span.count > LARGE and start + size <= LARGE and not self._has(wanted):
            places = self._ordered(wanted, most=start + size)
            return EvidencePage(span.count, self._read(places[start:].to_list()))
        order = self._order(wanted)
        return EvidencePage(order.len(), self._read(order.slice(start, size).to_list()))

    def _order_ahead(self) -> None:
        """Sorting a million rows takes longer than a reader should wait: the longest are sorted before they are asked
        for, as far as orders are kept.
        """
        room = MOST_KEPT
        sorts = [name for name, column in SORTS.items() if column is not None]
        for identifier, span in sorted(self._spans.items(), key=lambda item: -item[1].count):
            room -= span.count * len(sorts)
            if span.count <= LARGE or room < 0:
                return
            for sort in sorts:
                try:
                    self._order(Wanted(identifier, sort=sort))
                except PortrayalError:  # said to whoever asks for it
                    return

    def _find_spans(self) -> dict[str, _Span]:
        row = pl.col(_ROW)
        spans = (
            self._scan.select("id")
            .with_row_index(_ROW)
            .drop_nulls()
            .group_by("id")
            .agg(row.min().alias("first"), row.max().alias("last"), pl.len().alias("count"))
        )
        found = self._collect(spans, in_pieces=True)
        return {identifier: _Span(*numbers) for identifier, *numbers in found.iter_rows()}

    def _rows_of(self, identifier: str, *columns: str) -> pl.LazyFrame:
        """The rows of a measurement with their places in the file. Mostly they stand together there; those that do
        not are taken out first, so that a search is not made in everybody's.
        """
        span = self._spans[identifier]
        rows = self._scan.slice(span.first, span.last - span.first + 1).with_row_index(
            _ROW, offset=span.first
        )
        if span.unbroken:
            return rows.select(_ROW, *columns)
        return self._collect(rows.filter(pl.col("id") == identifier).select(_ROW, *columns)).lazy()

    def _has(self, wanted: Wanted) -> bool:
        with self._lock:
            return wanted in self._kept

    def _order(self, wanted: Wanted) -> pl.Series:
        """The places of the wanted rows, from memory if they were asked for lately."""
        with self._lock:
            if wanted in self._kept:
                self._kept.move_to_end(wanted)
                return self._kept[wanted]
        order = self._ordered(wanted).rechunk()
        with self._lock:
            self._kept[wanted] = order
            while len(self._kept) > 1 and sum(kept.len() for kept in self._kept.values()) > MOST_KEPT:
                self._kept.popitem(last=False)
        return order

    def _ordered(self, wanted: Wanted, most: int | None = None) -> pl.Series:
        column = SORTS[wanted.sort]
        used = {
            "system": wanted.system is not None,
            "caption": bool(wanted.search) or column == "caption",
            "image_id": column == "image_id",
        }
        rows = self._rows_of(wanted.id, *(name for name, yes in used.items() if yes))
        if wanted.system is not None:
            rows = rows.filter(pl.col("system") == wanted.system)
        if wanted.search:
            pattern = "(?i)" + pl.escape_regex(wanted.search)
            rows = rows.filter(pl.col("caption").str.contains(pattern))
        if column is not None:
            rows = rows.select(_ROW, column).sort(column, _ROW)
        if most is not None:
            rows = rows.head(most)
        return self._collect(rows.select(_ROW), in_pieces=column is not None).get_column(_ROW)

    def _read(self, places: Sequence[int]) -> list[dict[str, Any]]:
        """The rows at these places, in this order."""
        if not places:
            return []
        first, last = min(places), max(places)
        rows = self._scan.slice(first, last - first + 1).with_row_index(_ROW, offset=first)
        found = self._collect(rows.filter(pl.col(_ROW).is_in(places)))
        by_place = {row.pop(_ROW): row for row in found.to_dicts()}
        return [by_place[place] for place in places]

    def _collect(self, rows: pl.LazyFrame, in_pieces: bool = False) -> pl.DataFrame:
        """In pieces it takes less memory; that suits whole columns and sorting. Reading some rows is faster at once."""
        try:
            return rows.collect(engine="streaming" if in_pieces else "in-memory")
        except FileNotFoundError:
            raise PortrayalError(f"{self._path.name} is gone; start the command again.") from None
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError([Problem(str(self._path), "a Parquet file", shown(str(error)))]) from None


def _is_plain_sort(wanted: Wanted) -> bool:
    return bool(wanted.sort) and not wanted.search and wanted.system is None
