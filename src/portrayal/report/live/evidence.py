"""Pages of evidence, read from its file on request.

Kept in memory: for every measurement the first and last index of its rows and their number, and the row orders of the
latest searches and sorts (4 bytes per row, at most MAX_CACHED_ROWS rows in total, or a single longer order). The
largest measurements are sorted at the start, in the background. Everything else stays in the file: a page is read by
row index, and a search or sort reads one column of its measurement's rows and frees it.
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
MAX_CACHED_ROWS = 8_000_000  # 32 MB
LARGE = 100_000  # rows; of a larger measurement, the first pages are found without a full sort
_ROW = "row"


@dataclass(frozen=True)
class EvidenceQuery:
    """Which rows, and in which order. Ties keep the order of the file."""

    id: str
    search: str = ""
    system: str | None = None
    sort: str = ""


@dataclass(frozen=True)
class EvidencePage:
    total: int  # matching rows on all pages
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class _RowSpan:
    first: int
    last: int
    count: int

    @property
    def contiguous(self) -> bool:
        return self.last - self.first + 1 == self.count


class EvidenceStore:
    """The evidence of one results file."""

    def __init__(self, results: ResultsFile) -> None:
        self._path = results.files.get("evidence", results.path.parent / EVIDENCE_FILE)
        self._scan = results.scan("evidence")
        self._spans = self._find_spans()
        self._cache: OrderedDict[EvidenceQuery, pl.Series] = OrderedDict()
        self._systems: dict[str, list[str]] = {}
        self._lock = threading.Lock()
        self.presort_thread = threading.Thread(target=self._presort, daemon=True)
        self.presort_thread.start()

    def count(self, identifier: str) -> int:
        span = self._spans.get(identifier)
        return 0 if span is None else span.count

    def systems(self, identifier: str) -> list[str]:
        """The systems with captions behind a number."""
        if identifier not in self._systems:
            if identifier not in self._spans:
                return []
            frame = self._collect(self._rows_of(identifier, "system").select(pl.col("system").unique()))
            self._systems[identifier] = sorted(frame.get_column("system").drop_nulls())
        return self._systems[identifier]

    def page(self, query: EvidenceQuery, number: int, size: int) -> EvidencePage:
        """The rows of a page, counted from 1; none after the last page."""
        span = self._spans.get(query.id)
        start = (number - 1) * size
        if span is None:
            return EvidencePage(0, [])
        if not (query.search or query.system is not None or query.sort) and span.contiguous:
            length = max(0, min(size, span.count - start))
            rows = self._collect(self._scan.slice(span.first + start, length)) if length else None
            return EvidencePage(span.count, [] if rows is None else rows.to_dicts())
        if (
            _is_plain_sort(query)
            and span.count > LARGE
            and start + size <= LARGE
            and not self._is_cached(query)
        ):
            positions = self._sort_rows(query, limit=start + size)
            return EvidencePage(span.count, self._read_rows(positions[start:].to_list()))
        order = self._cached_order(query)
        return EvidencePage(order.len(), self._read_rows(order.slice(start, size).to_list()))

    def _presort(self) -> None:
        """Sort the largest measurements in advance, as far as the cache holds them.

        Sorting a million rows takes longer than a reader should wait.
        """
        room = MAX_CACHED_ROWS
        sort_keys = [name for name, column in SORTS.items() if column is not None]
        for identifier, span in sorted(self._spans.items(), key=lambda item: -item[1].count):
            room -= span.count * len(sort_keys)
            if span.count <= LARGE or room < 0:
                return
            for sort in sort_keys:
                try:
                    self._cached_order(EvidenceQuery(identifier, sort=sort))
                except PortrayalError:  # the request that needs it reports the error
                    return

    def _find_spans(self) -> dict[str, _RowSpan]:
        row = pl.col(_ROW)
        spans = (
            self._scan.select("id")
            .with_row_index(_ROW)
            .drop_nulls()
            .group_by("id")
            .agg(row.min().alias("first"), row.max().alias("last"), pl.len().alias("count"))
        )
        frame = self._collect(spans, streaming=True)
        return {identifier: _RowSpan(*numbers) for identifier, *numbers in frame.iter_rows()}

    def _rows_of(self, identifier: str, *columns: str) -> pl.LazyFrame:
        """The rows of a measurement with their indices in the file.

        They are usually contiguous; otherwise they are collected first, so that a search does not read other rows.
        """
        span = self._spans[identifier]
        rows = self._scan.slice(span.first, span.last - span.first + 1).with_row_index(
            _ROW, offset=span.first
        )
        if span.contiguous:
            return rows.select(_ROW, *columns)
        return self._collect(rows.filter(pl.col("id") == identifier).select(_ROW, *columns)).lazy()

    def _is_cached(self, query: EvidenceQuery) -> bool:
        with self._lock:
            return query in self._cache

    def _cached_order(self, query: EvidenceQuery) -> pl.Series:
        """The indices of the matching rows in their order, from the cache if they are there."""
        with self._lock:
            if query in self._cache:
                self._cache.move_to_end(query)
                return self._cache[query]
        order = self._sort_rows(query).rechunk()
        with self._lock:
            self._cache[query] = order
            while (
                len(self._cache) > 1
                and sum(cached.len() for cached in self._cache.values()) > MAX_CACHED_ROWS
            ):
                self._cache.popitem(last=False)
        return order

    def _sort_rows(self, query: EvidenceQuery, limit: int | None = None) -> pl.Series:
        column = SORTS[query.sort]
        used = {
            "system": query.system is not None,
            "caption": bool(query.search) or column == "caption",
            "image_id": column == "image_id",
        }
        rows = self._rows_of(query.id, *(name for name, yes in used.items() if yes))
        if query.system is not None:
            rows = rows.filter(pl.col("system") == query.system)
        if query.search:
            pattern = "(?i)" + pl.escape_regex(query.search)
            rows = rows.filter(pl.col("caption").str.contains(pattern))
        if column is not None:
            rows = rows.select(_ROW, column).sort(column, _ROW)
        if limit is not None:
            rows = rows.head(limit)
        return self._collect(rows.select(_ROW), streaming=column is not None).get_column(_ROW)

    def _read_rows(self, positions: Sequence[int]) -> list[dict[str, Any]]:
        """The rows at these indices, in this order."""
        if not positions:
            return []
        first, last = min(positions), max(positions)
        rows = self._scan.slice(first, last - first + 1).with_row_index(_ROW, offset=first)
        frame = self._collect(rows.filter(pl.col(_ROW).is_in(positions)))
        by_position = {row.pop(_ROW): row for row in frame.to_dicts()}
        return [by_position[position] for position in positions]

    def _collect(self, rows: pl.LazyFrame, streaming: bool = False) -> pl.DataFrame:
        """Streaming needs less memory for whole columns and sorts; collecting a few rows at once is faster."""
        try:
            return rows.collect(engine="streaming" if streaming else "in-memory")
        except FileNotFoundError:
            raise PortrayalError(f"{self._path.name} is gone; restart the command.") from None
        except (pl.exceptions.PolarsError, OSError) as error:
            raise InputError([Problem(str(self._path), "a Parquet file", shown(str(error)))]) from None


def _is_plain_sort(query: EvidenceQuery) -> bool:
    return bool(query.sort) and not query.search and query.system is None
