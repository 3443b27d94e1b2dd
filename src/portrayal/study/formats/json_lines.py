"""JSON Lines: one object a line, so a bad line can be left out without losing the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from portrayal.errors import Problems, shown
from portrayal.study.formats.raw import RawTable, read_lines


def read(path: Path, problems: Problems) -> RawTable:
    where: list[int] = []
    rows: list[dict[str, Any]] = []
    # Not splitlines(): a caption may hold a character such as U+2028, which ends no line of JSON Lines.
    for number, line in enumerate(read_lines(path, problems).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            found = f"{error.msg} at character {error.pos + 1}"
            problems.note(path, "a JSON object", found, f"line {number:,}")
            continue
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
            problems.note(path, "a JSON object", str(error).partition(";")[0], f"line {number:,}")
            continue
        if isinstance(row, dict):
            where.append(number)
            rows.append(row)
        else:
            problems.note(path, "a JSON object", shown(row), f"line {number:,}")
    return RawTable.of_rows(path, "line", where, rows)
