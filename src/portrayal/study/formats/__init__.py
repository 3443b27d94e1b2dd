"""Files of any accepted format as one plain shape: columns of values, and where each row stood."""

from __future__ import annotations

from pathlib import Path

from portrayal.errors import PortrayalError, Problems
from portrayal.study.formats import delimited, json_document, json_lines, parquet
from portrayal.study.formats.raw import RawTable

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
    if path.stat().st_size == 0:
        raise problems.stop(path, "a table", "an empty file")
    table = reader(path, problems)
    if not table.where:
        problems.settle()  # a file whose every row is bad should say so, not that it has none
        raise problems.stop(path, "at least one row", "none")
    return table


__all__ = ["ENDINGS", "RawTable", "read_raw"]
