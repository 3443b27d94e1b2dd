"""Strict CSV and TSV readers: a line with the wrong number of fields is an error."""

from __future__ import annotations

import contextlib
import csv
import io
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import RawTable, read_lines

_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
_LIMIT_LOCK = threading.Lock()  # guards csv's field size limit, which all threads share
_MAX_LIMIT = 2**31 - 1  # the limit is a C long
_SUFFIX_OF_SEPARATOR = {",": ".csv", "\t": ".tsv"}


def read_csv(path: Path, problems: Problems) -> RawTable:
    return _read(path, problems, ",")


def read_tsv(path: Path, problems: Problems) -> RawTable:
    return _read(path, problems, "\t")


def _read(path: Path, problems: Problems, delimiter: str) -> RawTable:
    text = read_lines(path, problems)
    with _field_size_limit(len(text)):  # a field cannot be longer than the file
        return _table(path, io.StringIO(text, newline=""), problems, delimiter)


@contextlib.contextmanager
def _field_size_limit(characters: int) -> Iterator[None]:
    """Raise csv's field size limit temporarily.

    By default csv refuses long captions, which are truncated later, and reads the rest of the field as further rows.
    The limit is global to the process, so it is restored for other users of csv.
    """
    with _LIMIT_LOCK:
        before = csv.field_size_limit()
        csv.field_size_limit(min(max(characters, before), _MAX_LIMIT))
        try:
            yield
        finally:
            csv.field_size_limit(before)


def _table(path: Path, lines: io.StringIO, problems: Problems, delimiter: str) -> RawTable:
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
    except csv.Error as error:
        raise problems.stop(path, "well-formed delimited text", str(error), "line 1") from None
    _check_separator(path, problems, header, delimiter)
    twice = [name for name, count in Counter(header).items() if name and count > 1]
    if twice:
        raise problems.stop(path, "each column once", f"the column {twice[0]!r} twice", "line 1")
    row_numbers: list[int] = []
    rows: list[list[str]] = []
    while True:
        line = reader.line_num + 1
        location = f"line {line:,}"
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "unexpected end" in str(error):  # an unclosed quote consumed all following lines
                raise problems.stop(path, "well-formed delimited text", str(error), location) from None
            problems.note(path, "well-formed delimited text", str(error), location)
            continue
        if len(fields) == len(header):
            row_numbers.append(line)
            rows.append(fields)
        elif fields:  # blank lines are ignored
            found = f"{len(fields)}: {shown(delimiter.join(fields))}"
            problems.note(path, f"{len(header)} fields", found, location)
    columns = {
        name: [row[index] for row in rows]
        for index, name in enumerate(header)
        if name  # pandas writes its row numbers under an empty name
    }
    return RawTable(path, "line", row_numbers, columns)


def _check_separator(path: Path, problems: Problems, header: list[str], delimiter: str) -> None:
    """Raise an error if a one-column header contains another separator."""
    if len(header) != 1:
        return
    for other, name in _SEPARATORS.items():
        if other != delimiter and other in header[0]:
            suggestion = (
                "save it with commas, or with tabs as .tsv"
                if other in ";|"
                else f"name it {_SUFFIX_OF_SEPARATOR[other]}"
            )
            raise problems.stop(
                path,
                f"columns separated by {_SEPARATORS[delimiter]}",
                f"a header that seems to be separated by {name}: {shown(header[0])} ({suggestion})",
                "line 1",
            )
