"""Read files of any accepted format into a RawTable: columns of values and row numbers."""

from __future__ import annotations

from pathlib import Path

from portrayal.documents import MAX_DEPTH, is_unicode, too_deep
from portrayal.errors import PortrayalError, Problems, shown
from portrayal.study.formats import delimited, json_document, json_lines, parquet
from portrayal.study.formats.raw_table import RawTable

_READERS = {
    ".csv": delimited.read_csv,
    ".tsv": delimited.read_tsv,
    ".json": json_document.read,
    ".jsonl": json_lines.read,
    ".ndjson": json_lines.read,
    ".parquet": parquet.read,
}
SUFFIXES = tuple(_READERS)


def read_raw(path: Path, problems: Problems) -> RawTable:
    """Read one file. Its suffix determines the format."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise problems.stop(path, f"a file ending in one of {', '.join(SUFFIXES)}", f"'{path.name}'")
    if not path.exists():
        raise PortrayalError(f"There is no file {path}.")
    if path.is_dir():
        raise problems.stop(path, "a file", "a folder")
    if not is_unicode(path.name):  # the file name may become a system's name, which must be writable
        raise problems.stop(path, "a file with a name in Unicode", f"{shown(path.name)} (rename it)")
    if path.stat().st_size == 0:
        raise problems.stop(path, "a table", "an empty file")
    table = reader(path, problems)
    _refuse_unusable(table, problems)
    if not table.row_numbers:
        problems.settle()  # if all rows are bad, report them instead of "none"
        raise problems.stop(path, "at least one row", "none")
    return table


def _refuse_unusable(table: RawTable, problems: Problems) -> None:
    """Raise an error for column names that are not Unicode (they may become attributes) and deeply nested values."""
    for name, values in table.columns.items():
        if not is_unicode(name):
            raise problems.stop(table.path, "names of columns in Unicode", shown(name))
        for index, value in enumerate(values):
            if isinstance(value, list | dict) and too_deep(value):
                raise problems.stop(
                    table.path, f"values at most {MAX_DEPTH} deep", "a deeper one", table.location(index)
                )


__all__ = ["SUFFIXES", "RawTable", "read_raw"]
