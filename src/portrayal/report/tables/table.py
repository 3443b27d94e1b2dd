"""A table on its way to a reader: lines of numbers, each with what it is about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from portrayal.results import Measurement

_COLUMNS = 5  # beside names and n
SUMMARY = "summary"  # the part that shows the headlines of a metric with many terms


@dataclass(frozen=True)
class Row:
    """One line of a table: what its numbers are about, and the numbers by term."""

    system: str | None
    group: str | None
    item: str | None
    cells: dict[str, Measurement]
    beside: dict[str, Measurement] = field(
        default_factory=dict
    )  # the same as a count, where cells have shares

    @property
    def chance(self) -> tuple[str, str]:
        """p and q of the first number that has them, for scans over words or objects."""
        first = next((m for m in self.cells.values() if m.p is not None), None)
        p, q = (first.p, first.q) if first is not None else (None, None)
        return probability(p), probability(q)

    @property
    def n(self) -> str:
        """How much the row rests on: the n of its first number that has one."""
        first = next((m for m in self.cells.values() if m.n), next(iter(self.cells.values())))
        return "" if first.n is None else f"{first.n:,}"


@dataclass
class Section:
    """One metric, one attribute, one set of settings; or several sets side by side."""

    metric: str
    attribute: str | None
    settings: dict[str, Any]
    terms: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    hidden: int = 0  # rows that are not shown
    part: str | None = None  # what tells it from the metric's other sections
    second: str = "group"  # what the second column holds
    notes: list[str] = field(default_factory=list)
    first: str = "system"  # what the first column holds
    whole: bool = False  # whether all of its items are shown, and not the strongest alone

    @property
    def by_term(self) -> bool:
        """Whether its columns are systems, and its lines terms or their parts."""
        return self.first != "system"

    @property
    def grouped(self) -> bool:
        """Whether it has a column for groups, or whatever the second column holds; "" where it holds nothing."""
        return bool(self.second) and (not self.by_term or any(row.group is not None for row in self.rows))

    @property
    def tests(self) -> bool:
        """Whether it has columns for p and q: scans over words or objects of one system a line do."""
        return self.has_items and not self.by_term

    @property
    def has_items(self) -> bool:
        return any(row.item is not None for row in self.rows)

    @property
    def is_wide(self) -> bool:
        """Whether it has more columns than fit between the margins of a page."""
        return len(self.terms) + self.has_items + 2 * self.tests > _COLUMNS

    @property
    def side_by_side(self) -> bool:
        return self.second != "group"

    @property
    def is_first(self) -> bool:
        """Whether it is where a metric is explained."""
        return not self.side_by_side and (not self.by_term or self.part == SUMMARY)


def probability(value: float | None) -> str:
    """A p or q as papers print it: without the leading zero, and "< .0001" where it is smaller than that.

    >>> [probability(p) for p in (1.0, 0.0471, 0.00032, 1e-187, None)]
    ['1.000', '.047', '.0003', '< .0001', '']
    """
    if value is None:
        return ""
    if value < 0.0001:
        return "< .0001"
    return (f"{value:.3f}" if value >= 0.001 else f"{value:.4f}").removeprefix("0")
