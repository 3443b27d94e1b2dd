"""Files of any accepted format as one plain shape: columns of values, and where each row stood."""

from __future__ import annotations

from pathlib import Path

from portrayal.documents import MOST_DEEP, is_unicode, too_deep
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
ENDINGS = tuple(_READERS)


def read_raw(path: Path, problems: Problems) -> RawTable:
    """Read one file; its ending says the format."""
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise problems.stop(path, f"a file ending in one of {', '.join(ENDINGS)}", f"'{path.name}'")
    if not path.exists():
        raise PortrayalError(f"There is no file {path}.")
    if path.is_dir():
        raise problems.stop(path, "a file", "a folder")
    if not is_unicode(path.name):  # its name may become a system's, which has to be written
        raise problems.stop(path, "a file with a name in Unicode", f"{shown(path.name)} (rename it)")
    if path.stat().st_size == 0:
        raise problems.stop(path, "a table", "an empty file")
    table = reader(path, problems)
    _refuse_unusable(table, problems)
    if not table.where:
        problems.settle()  # a file whose every row is bad should say so, not that it has none
        raise problems.stop(path, "at least one row", "none")
    return table


def _refuse_unusable(table: RawTable, problems: Problems) -> None:
    """Names of columns may become attributes; what is nested without end can be no value, and cannot be shown."""
    for name, values in table.columns.items():
        if not is_unicode(name):
            raise problems.stop(table.path, "names of columns in Unicode", shown(name))
        for index, value in enumerate(values):
            if isinstance(value, list | dict) and too_deep(value):
                raise problems.stop(
                    table.path, f"values at most {MOST_DEEP} deep", "a deeper one", table.place(index)
                )


__all__ = ["ENDINGS", "RawTable", "read_raw"]
