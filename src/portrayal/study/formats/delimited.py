"""CSV and TSV, read strictly: a line with a field too many is an error, not a shifted row."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path

from portrayal.errors import Problems, shown
from portrayal.study.formats.raw import RawTable, read_text


def read_csv(path: Path, problems: Problems) -> RawTable:
    return _read(path, problems, ",")


def read_tsv(path: Path, problems: Problems) -> RawTable:
    return _read(path, problems, "\t")


def _read(path: Path, problems: Problems, delimiter: str) -> RawTable:
    reader = csv.reader(io.StringIO(read_text(path, problems), newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    where: list[int] = []
    rows: list[list[str]] = []
    line = 1
    try:
        header = [name.strip() for name in next(reader, [])]
        line = reader.line_num + 1
        for fields in reader:
            if len(fields) == len(header):
                where.append(line)
                rows.append(fields)
            elif fields:  # a blank line is no row
                problems.note(
                    path,
                    f"{len(header)} fields",
                    f"{len(fields)}: {shown(delimiter.join(fields))}",
                    f"line {line:,}",
                )
            line = reader.line_num + 1
    except csv.Error as error:
        raise problems.stop(path, "well-formed delimited text", str(error), f"line {line:,}") from None
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise problems.stop(path, "each column once", f"the column {twice[0]!r} twice", "line 1")
    columns = {
        name: [row[index] or None for row in rows]
        for index, name in enumerate(header)
        if name  # pandas writes its row numbers under an empty name
    }
    return RawTable(path, "line", where, columns)
