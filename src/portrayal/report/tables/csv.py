"""Results and tables as CSV, with all digits of each number."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from portrayal.report.tables.table import Table
from portrayal.results import Measurement, Results

SETTING_PREFIX = "setting:"  # before the name of a setting in the header
_KEY_FIELDS = ("metric", "attribute", "system", "group", "item", "term")
_VALUE_FIELDS = (
    "value",
    "low",
    "high",
    "n",
    "n_unit",
    "p",
    "q",
    "unit",
    "ideal",
    "better",
    "reason",
    "caution",
    "id",
)


def to_csv(results: Results) -> str:
    """All measurements as CSV, one on each line."""
    return results.to_polars().write_csv()


def table_to_csv(table: Table) -> str:
    """The measurements of a table as CSV, one on each line. Each setting has a column. Undefined values are empty."""
    measurements = _unique_measurements(table)
    setting_names = list(dict.fromkeys(name for m in measurements for name in m.settings))
    fields = (*_KEY_FIELDS, *_VALUE_FIELDS)
    rows = [
        [
            *(getattr(m, field) for field in fields),
            *(_format_setting(m.settings.get(name)) for name in setting_names),
        ]
        for m in measurements
    ]
    return _csv_text([*fields, *(SETTING_PREFIX + name for name in setting_names)], rows)


def _csv_text(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue()


def _unique_measurements(table: Table) -> list[Measurement]:
    """Each measurement of a table once, in the order of the table. A count comes before its share."""
    measurements = [
        m
        for row in table.rows
        for column in table.columns
        for m in (row.counts.get(column), row.cells.get(column))
        if m is not None
    ]
    return list({m.id: m for m in measurements}.values())


def _format_setting(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
