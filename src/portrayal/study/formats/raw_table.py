"""The output of all readers: columns of plain values with their line or row numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portrayal.errors import Problems

NO_LABEL = "none"  # kind of a row without a label: its source annotated the image and found no object
VALUES_COLUMN = "values"  # the column that holds the values of a JSON object {id: values}


@dataclass(frozen=True)
class RawTable:
    """The rows of a file. Missing values are None."""

    path: Path
    unit: str  # "line" or "row": what `row_numbers` counts
    row_numbers: Sequence[int]
    columns: dict[str, list[Any]]

    def location(self, index: int) -> str:
        return f"{self.unit} {self.row_numbers[index]:,}"

    @classmethod
    def of_rows(
        cls, path: Path, unit: str, row_numbers: Sequence[int], rows: Sequence[dict[str, Any]]
    ) -> RawTable:
        names: dict[str, None] = {}
        for row in rows:
            names.update(dict.fromkeys(row))
        columns = {str(name): [row.get(name) for row in rows] for name in names}
        return cls(path, unit, row_numbers, columns)


def read_text(path: Path, problems: Problems) -> str:
    """Read a UTF-8 text file, with or without a byte order mark."""
    data = _bytes(path, problems)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x} (save the file as UTF-8)"
        raise problems.stop(path, "UTF-8 text", found, f"line {line:,}") from None


def read_lines(path: Path, problems: Problems) -> str:
    """Like `read_text` for formats with one row per line: a line in another encoding is reported and left blank."""
    data = _bytes(path, problems)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    lines = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        try:
            lines.append(line.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            found = f"byte 0x{line[error.start]:02x} (save the file as UTF-8)"
            problems.note(path, "UTF-8 text", found, f"line {number:,}")
            lines.append("")
    return "\n".join(lines)


def _bytes(path: Path, problems: Problems) -> bytes:
    data = path.read_bytes()
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise problems.stop(path, "UTF-8 text", "UTF-16 text (save the file as UTF-8)", "line 1")
    return data
