"""Tables of metrics with many terms: a row per term and a column per system, then a table for each term's items, or
one of groups if no term has items.

A metric's card declares this layout. A term with a count and a share has both in one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from portrayal.report.tables.table import SUMMARY, Table, TableRow
from portrayal.results import Measurement, Results

STAGE = "stage"
GROUPS = "by group"


def split_by_term(results: Results) -> tuple[list[Measurement], list[Table]]:
    """The measurements of metrics with the usual layout, and the tables of the others."""
    cards = results.provenance.get("cards")
    cards = cards if isinstance(cards, dict) else {}
    by_term = {name for name, card in cards.items() if isinstance(card, dict) and card.get("by_term") is True}
    others = [m for m in results.measurements if m.metric not in by_term]
    by_settings: dict[str, list[Measurement]] = {}
    for m in results.measurements:
        if m.metric in by_term:
            settings = {name: value for name, value in m.settings.items() if name != STAGE}
            by_settings.setdefault(
                f"{m.metric}|{m.attribute}|{sorted(settings.items(), key=str)}", []
            ).append(m)
    return others, [section for measurements in by_settings.values() for section in _tables(measurements)]


def _tables(measurements: Sequence[Measurement]) -> list[Table]:
    stages = list(dict.fromkeys(m.settings.get(STAGE) for m in measurements))
    first = measurements[0]
    settings = {name: value for name, value in first.settings.items() if name != STAGE or len(stages) == 1}

    def column(m: Measurement) -> str:
        stage = m.settings.get(STAGE)
        return m.system or "" if len(stages) == 1 else f"{m.system} ({stage})"

    ordered = sorted(
        measurements, key=lambda m: str(m.settings.get(STAGE))
    )  # stable: keeps the order of systems
    columns = list(dict.fromkeys(column(m) for m in ordered))
    summary = Table(
        first.metric, first.attribute, settings, columns, subtitle=SUMMARY, first_column="measurement"
    )
    tables: dict[str, Table] = {}
    rows: dict[tuple[Any, ...], TableRow] = {}
    has_items = any(m.item is not None for m in measurements)  # else one table holds all groups
    for m in measurements:
        overall = m.group is None and m.item is None
        table, label = summary, m.term
        if not overall:
            part = m.term if has_items else GROUPS
            if part not in tables:
                about = "unit" if has_items else summary.first_column
                tables[part] = Table(
                    first.metric, first.attribute, settings, columns, subtitle=part, first_column=about
                )
            table = tables[part]
            if has_items:
                label = "share" if m.unit == "count" else m.unit or ""
        key = (table.subtitle, label, m.group, m.item)
        if key not in rows:
            rows[key] = TableRow(label, m.group, m.item, {})
            table.rows.append(rows[key])
        # A count stands in the cell of its share.
        cells = rows[key].counts if m.unit == "count" else rows[key].cells
        cells[column(m)] = m
    for row in rows.values():  # counts without a share
        for name, m in row.counts.items():
            row.cells.setdefault(name, m)
    return [summary, *tables.values()]


def limit_items(table: Table, limit: int) -> Table:
    """The table with the first `limit` items of each kind ("gender: man" is of the kind gender). Items are ranked."""
    counts: dict[tuple[Any, ...], int] = {}
    kept = []
    for row in table.rows:
        if row.item is not None:
            kind, colon, _ = row.item.partition(": ")
            key = (row.system, row.group, kind if colon else None)
            counts[key] = counts.get(key, 0) + 1
            if counts[key] > limit:
                continue
        kept.append(row)
    return Table(
        table.metric, table.attribute, table.settings, table.columns, kept, len(table.rows) - len(kept),
        table.subtitle, table.second_column, table.notes, table.first_column,
    )  # fmt: skip
