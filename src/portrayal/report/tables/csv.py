"""Results and tables as CSV, with all digits of each number."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from portrayal.report.tables.table import Table
from portrayal.results import Measurement, Results

SETTING = "setting:"  # before the name of a setting in the head
_NAMES = ("metric", "attribute", "system", "group", "item", "term")
_NUMBERS = (
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
    """All measurements, one on each line."""
    return results.frame().write_csv()


def table_to_csv(table: Table) -> str:
    """The measurements of a table, one on each line, with a column for each setting. Undefined values are empty."""
    measurements = _measurements(table)
    settings = list(dict.fromkeys(name for m in measurements for name in m.settings))
    fields = (*_NAMES, *_NUMBERS)
    rows = [
        [*(getattr(m, name) for name in fields), *(_setting(m.settings.get(name)) for name in settings)]
        for m in measurements
    ]
    return _lines([*fields, *(SETTING + name for name in settings)], rows)


def _lines(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def _measurements(table: Table) -> list[Measurement]:
    """Each measurement once, in the order of the table; a count comes before its share."""
    measurements = [
        m
        for row in table.rows
        for column in table.columns
        for m in (row.counts.get(column), row.cells.get(column))
        if m is not None
    ]
    return list({m.id: m for m in measurements}.values())


def _setting(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
