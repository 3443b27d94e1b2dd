"""CSV and TSV, read strictly: a line with a field too many is an error, not a shifted row."""

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
_LIMIT = threading.Lock()  # of csv's limit, which all threads share
_MOST = 2**31 - 1  # that it can be: it is held in a C long
_ENDING = {",": ".csv", "\t": ".tsv"}


def read_csv(path: Path, problems: Problems) -> RawTable:
    return _read(path, problems, ",")


def read_tsv(path: Path, problems: Problems) -> RawTable:
    return _read(path, problems, "\t")


def _read(path: Path, problems: Problems, delimiter: str) -> RawTable:
    text = read_lines(path, problems)
    with _fields_of(len(text)):  # no field is longer than its file
        return _table(path, io.StringIO(text, newline=""), problems, delimiter)


@contextlib.contextmanager
def _fields_of(characters: int) -> Iterator[None]:
    """Within it fields may be this long. By default csv refuses captions that we cut, and takes the rest of such a
    field for further rows. The limit is of the whole process, so it is put back for whoever uses csv beside us.
    """
    with _LIMIT:
        before = csv.field_size_limit()
        csv.field_size_limit(min(max(characters, before), _MOST))
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
    where: list[int] = []
    rows: list[list[str]] = []
    while True:
        line = reader.line_num + 1
        place = f"line {line:,}"
        try:
            fields = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            if "unexpected end" in str(error):  # an open quote has swallowed every line that follows
                raise problems.stop(path, "well-formed delimited text", str(error), place) from None
            problems.note(path, "well-formed delimited text", str(error), place)
            continue
        if len(fields) == len(header):
            where.append(line)
            rows.append(fields)
        elif fields:  # a blank line is no row
            found = f"{len(fields)}: {shown(delimiter.join(fields))}"
            problems.note(path, f"{len(header)} fields", found, place)
    columns = {
        name: [row[index] for row in rows]
        for index, name in enumerate(header)
        if name  # pandas writes its row numbers under an empty name
    }
    return RawTable(path, "line", where, columns)


def _check_separator(path: Path, problems: Problems, header: list[str], delimiter: str) -> None:
    """A header of one column that holds another separator was read with the wrong one."""
    if len(header) != 1:
        return
    for other, name in _SEPARATORS.items():
        if other != delimiter and other in header[0]:
            way_out = (
                "save it with commas, or with tabs as .tsv" if other in ";|" else f"name it {_ENDING[other]}"
            )
            raise problems.stop(
                path,
                f"columns separated by {_SEPARATORS[delimiter]}",
                f"a header that seems to be separated by {name}: {shown(header[0])} ({way_out})",
                "line 1",
            )
