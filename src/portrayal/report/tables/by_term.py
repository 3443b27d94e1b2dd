"""Tables of metrics with many terms, whose rows are terms and whose columns are systems.

A metric's card declares this layout. After the table with all terms comes one for the items of each term, or one for
groups if no term has items. If a term has a count and a share, both are in one cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from portrayal.report.cards import metric_cards
from portrayal.report.tables.table import SUMMARY, Table, TableRow
from portrayal.results import Measurement, Results

STAGE_SETTING = "stage"
GROUPS_SUBTITLE = "by group"


def split_by_term(results: Results) -> tuple[list[Measurement], list[Table]]:
    """The measurements of metrics with the default layout, and the tables of metrics with a row per term."""
    by_term_metrics = {name for name, card in metric_cards(results).items() if card.get("by_term") is True}
    other_measurements = [m for m in results.measurements if m.metric not in by_term_metrics]
    measurements_by_settings: dict[str, list[Measurement]] = {}
    for m in results.measurements:
        if m.metric in by_term_metrics:
            settings = {name: value for name, value in m.settings.items() if name != STAGE_SETTING}
            measurements_by_settings.setdefault(
                f"{m.metric}|{m.attribute}|{sorted(settings.items(), key=str)}", []
            ).append(m)
    return other_measurements, [
        table for measurements in measurements_by_settings.values() for table in _metric_tables(measurements)
    ]


def _metric_tables(measurements: Sequence[Measurement]) -> list[Table]:
    """The tables of one metric, attribute and set of settings."""
    stages = list(dict.fromkeys(m.settings.get(STAGE_SETTING) for m in measurements))
    first_measurement = measurements[0]
    settings = {
        setting: value
        for setting, value in first_measurement.settings.items()
        if setting != STAGE_SETTING or len(stages) == 1
    }

    def column_name(m: Measurement) -> str:
        stage = m.settings.get(STAGE_SETTING)
        return m.system or "" if len(stages) == 1 else f"{m.system} ({stage})"

    # The sort is stable, so that systems keep their order.
    sorted_by_stage = sorted(measurements, key=lambda m: str(m.settings.get(STAGE_SETTING)))
    columns = list(dict.fromkeys(column_name(m) for m in sorted_by_stage))
    summary = Table(
        first_measurement.metric,
        first_measurement.attribute,
        settings,
        columns,
        subtitle=SUMMARY,
        first_column="measurement",
    )
    table_by_subtitle: dict[str, Table] = {}
    row_by_key: dict[tuple[Any, ...], TableRow] = {}
    has_items = any(m.item is not None for m in measurements)  # without items, one table holds all groups
    for m in measurements:
        is_overall = m.group is None and m.item is None
        table, label = summary, m.term
        if not is_overall:
            subtitle = m.term if has_items else GROUPS_SUBTITLE
            if subtitle not in table_by_subtitle:
                first_column = "unit" if has_items else summary.first_column
                table_by_subtitle[subtitle] = Table(
                    first_measurement.metric,
                    first_measurement.attribute,
                    settings,
                    columns,
                    subtitle=subtitle,
                    first_column=first_column,
                )
            table = table_by_subtitle[subtitle]
            if has_items:
                label = "share" if m.unit == "count" else m.unit or ""
        key = (table.subtitle, label, m.group, m.item)
        if key not in row_by_key:
            row_by_key[key] = TableRow(label, m.group, m.item, {})
            table.rows.append(row_by_key[key])
        # A count is printed in the cell of its share.
        cells = row_by_key[key].counts if m.unit == "count" else row_by_key[key].cells
        cells[column_name(m)] = m
    # Counts without a share have cells of their own.
    for row in row_by_key.values():
        for column, m in row.counts.items():
            row.cells.setdefault(column, m)
    return [summary, *table_by_subtitle.values()]


def limit_items(table: Table, limit: int) -> Table:
    """The table with the first `limit` items of each kind, which are the highest ranked.

    The kind of the item "gender: man" is "gender".
    """
    n_items_by_key: dict[tuple[Any, ...], int] = {}
    kept_rows = []
    for row in table.rows:
        if row.item is not None:
            kind, colon, _ = row.item.partition(": ")
            key = (row.system, row.group, kind if colon else None)
            n_items_by_key[key] = n_items_by_key.get(key, 0) + 1
            if n_items_by_key[key] > limit:
                continue
        kept_rows.append(row)
    return replace(table, rows=kept_rows, n_hidden=len(table.rows) - len(kept_rows))
