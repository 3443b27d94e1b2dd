"""JSON Lines: one object per line, so that a bad line can be left out without losing the others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portrayal.documents import DocumentError, parse_json
from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import RawTable, read_lines


def read(path: Path, problems: Problems) -> RawTable:
    row_numbers: list[int] = []
    rows: list[dict[str, Any]] = []
    # Not splitlines(): a caption may contain a character such as U+2028, which is no line break in JSON Lines.
    for number, line in enumerate(read_lines(path, problems).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except DocumentError as error:
            position = f" at character {error.character}" if error.character else ""
            problems.note(path, "a JSON object", error.fault + position, f"line {number:,}")
            continue
        if isinstance(row, dict):
            row_numbers.append(number)
            rows.append(row)
        else:
            problems.note(path, "a JSON object", shown(row), f"line {number:,}")
    return RawTable.of_rows(path, "line", row_numbers, rows)
