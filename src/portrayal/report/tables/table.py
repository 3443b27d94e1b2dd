"""The table of measurements that all output formats share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from portrayal.results import Measurement

_MAX_NARROW_COLUMNS = 5  # not counting system, group and n
SUMMARY = "summary"  # the subtitle of the table with the overall numbers of a metric with many terms


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its names, and its measurements by column.

    `counts` are the counts that belong to shares in `cells`, by column.
    """

    system: str | None
    group: str | None
    item: str | None
    cells: dict[str, Measurement]
    counts: dict[str, Measurement] = field(default_factory=dict)

    @property
    def p_and_q(self) -> tuple[str, str]:
        """p and q of the first measurement that has p, as text; for tables of items (words or objects)."""
        tested = next((m for m in self.cells.values() if m.p is not None), None)
        p, q = (tested.p, tested.q) if tested is not None else (None, None)
        return format_p(p), format_p(q)

    @property
    def n(self) -> str:
        """n of the first measurement that has it, as text."""
        counted = next((m for m in self.cells.values() if m.n), next(iter(self.cells.values())))
        return "" if counted.n is None else f"{counted.n:,}"


@dataclass
class Table:
    """The measurements of one metric and attribute under one set of settings, or under several side by side.

    `subtitle` distinguishes the tables of one metric. `first_column` and `second_column` are the headers of the row
    names; an empty `second_column` is not shown. `n_hidden` counts rows that are not shown. With `show_all_items`, all
    items (words or objects) are shown, else only the strongest. `headline` are the terms that stand for the metric.
    With `items_drawn_elsewhere`, charts of the page other than the table's draw its items.
    """

    metric: str
    attribute: str | None
    settings: dict[str, Any]
    columns: list[str] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    n_hidden: int = 0
    subtitle: str | None = None
    second_column: str = "group"
    notes: list[str] = field(default_factory=list)
    first_column: str = "system"
    show_all_items: bool = False
    headline: tuple[str, ...] = ()
    items_drawn_elsewhere: bool = False

    @property
    def heading(self) -> str:
        """The metric, attribute and subtitle as one title."""
        return " · ".join(filter(None, (self.metric, self.attribute, self.subtitle)))

    @property
    def by_term(self) -> bool:
        """Whether its columns are systems and its rows terms."""
        return self.first_column != "system"

    @property
    def has_second_column(self) -> bool:
        """Whether it has a second column of names, such as groups."""
        return bool(self.second_column) and (
            not self.by_term or any(row.group is not None for row in self.rows)
        )

    @property
    def has_p_values(self) -> bool:
        """Whether it has columns for p and q, as tables of items have."""
        return self.has_items and not self.by_term

    @property
    def has_items(self) -> bool:
        """Whether it has rows of items (words or objects)."""
        return any(row.item is not None for row in self.rows)

    @property
    def is_wide(self) -> bool:
        """Whether it has more columns than fit into the text width of a page."""
        return len(self.columns) + self.has_items + 2 * self.has_p_values > _MAX_NARROW_COLUMNS

    @property
    def side_by_side(self) -> bool:
        """Whether the second column of names is not the group but, for example, the setting."""
        return self.second_column != "group"

    @property
    def explains_metric(self) -> bool:
        """Whether the metric is explained below this table."""
        return not self.side_by_side and (not self.by_term or self.subtitle == SUMMARY)


def format_p(value: float | None) -> str:
    """A p or q as papers print it: without a leading zero, and "< .0001" below that.

    >>> [format_p(p) for p in (1.0, 0.0471, 0.00032, 1e-187, None)]
    ['1.000', '.047', '.0003', '< .0001', '']
    """
    if value is None:
        return ""
    if value < 0.0001:
        return "< .0001"
    return (f"{value:.3f}" if value >= 0.001 else f"{value:.4f}").removeprefix("0")
