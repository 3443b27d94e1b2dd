"""JSON Lines: one object a line, so a bad line can be left out without losing the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portrayal.documents import Unreadable, parse_json
from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import RawTable, read_lines


def read(path: Path, problems: Problems) -> RawTable:
    where: list[int] = []
    rows: list[dict[str, Any]] = []
    # Not splitlines(): a caption may hold a character such as U+2028, which ends no line of JSON Lines.
    for number, line in enumerate(read_lines(path, problems).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except Unreadable as error:
            where_in = f" at character {error.character}" if error.character else ""
            problems.note(path, "a JSON object", error.fault + where_in, f"line {number:,}")
            continue
        if isinstance(row, dict):
            where.append(number)
            rows.append(row)
        else:
            problems.note(path, "a JSON object", shown(row), f"line {number:,}")
    return RawTable.of_rows(path, "line", where, rows)
