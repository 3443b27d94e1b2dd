"""What a model said of a text, kept on disk: a second run asks it nothing, and a run that broke off goes on.

Each model has a file of its own, named by its digest. A file can be used by several processes at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import InputError, PortrayalError, Problem

Arrays = tuple[NDArray[Any], ...]

_MARK = 0x50525459  # says that an SQLite file is one of these
_PATIENCE = 60.0  # seconds that one process waits for another to write
_ASKED = 500  # texts looked up by one statement; older SQLite takes no more than 999
_TYPES = ("<f4", "<f8", "<i4", "<i8")
_TABLE = """
    CREATE TABLE IF NOT EXISTS said (
        text BLOB NOT NULL, place INTEGER NOT NULL, type TEXT NOT NULL, shape TEXT NOT NULL, content BLOB NOT NULL,
        PRIMARY KEY (text, place)
    ) WITHOUT ROWID
"""


def default_folder() -> Path:
    """Where things are kept unless a user says otherwise: $PORTRAYAL_CACHE, or the usual place for such files."""
    if chosen := os.environ.get("PORTRAYAL_CACHE"):
        return Path(chosen)
    usual = os.environ.get("XDG_CACHE_HOME")
    return (Path(usual) if usual else Path.home() / ".cache") / "portrayal"


@dataclass(frozen=True)
class Remembered:
    """Arrays by text, for one model: of each text as many as the model makes, at least one."""

    folder: Path
    digest: str  # of the model: a file holds what one model said

    @property
    def path(self) -> Path:
        return self.folder / f"{self.digest}.sqlite"

    def through(
        self,
        texts: Sequence[str],
        make: Callable[[list[str]], Iterable[Sequence[NDArray[Any]]]],
        chunk: int = 2_000,
    ) -> list[Arrays]:
        """The arrays of each text, in the order given; `make` is asked for those not known, some at a time."""
        known = self.get(texts)
        # Sorted, so that a model that works in batches meets the same ones whatever the order of the texts.
        missing = sorted(set(texts) - known.keys())
        for start in range(0, len(missing), chunk):
            some = missing[start : start + chunk]
            made = {text: tuple(arrays) for text, arrays in zip(some, make(some), strict=True)}
            self.put(made)
            known |= made
        return [known[text] for text in texts]

    def get(self, texts: Iterable[str]) -> dict[str, Arrays]:
        """What is known of these texts; those of which nothing is known are left out."""
        if not self.path.exists():
            return {}
        keys = {_key(text): text for text in texts}
        found: dict[str, list[NDArray[Any]]] = {}
        with self._open() as file:
            asked = list(keys)
            for start in range(0, len(asked), _ASKED):
                some = asked[start : start + _ASKED]
                rows = file.execute(
                    f"SELECT text, type, shape, content FROM said WHERE text IN ({','.join('?' * len(some))}) "
                    "ORDER BY text, place",
                    some,
                )
                for key, kind, shape, content in rows:
                    found.setdefault(keys[key], []).append(_array(kind, shape, content))
        return {text: tuple(arrays) for text, arrays in found.items()}

    def put(self, made: Mapping[str, Sequence[NDArray[Any]]]) -> None:
        """Keep the arrays of these texts, all or none; what was known of them is replaced."""
        rows = [
            (_key(text), place, *_row(array))
            for text, arrays in made.items()
            for place, array in enumerate(arrays)
        ]
        with self._open() as file:
            file.execute("BEGIN IMMEDIATE")
            file.executemany("DELETE FROM said WHERE text = ?", [(_key(text),) for text in made])
            file.executemany("INSERT INTO said VALUES (?, ?, ?, ?, ?)", rows)
            file.execute("COMMIT")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """The file, made if it is not there, and closed in the end: what is not committed is undone."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, _PATIENCE, isolation_level=None)) as file:
                self._check(file)
                yield file
        except (OSError, sqlite3.OperationalError) as error:  # the file itself may be well, and only locked
            raise PortrayalError(
                f"{self.path}, which keeps what a model said of texts, cannot be used ({error}). Set PORTRAYAL_CACHE "
                "to keep such files in another folder."
            ) from error
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._broken(f"something else ({error})") from error

    def _check(self, file: sqlite3.Connection) -> None:
        """Refuse a file that others made, before anything is written to it."""
        if self._mark(file) == _MARK:
            return
        file.execute("BEGIN IMMEDIATE")  # from here on no other process can make it at the same time
        (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self._mark(file) != _MARK:
            if tables:
                raise self._broken("a database of something else")
            file.execute(f"PRAGMA application_id = {_MARK}")
            file.execute(_TABLE)
        file.execute("COMMIT")

    @staticmethod
    def _mark(file: sqlite3.Connection) -> int:
        return int(file.execute("PRAGMA application_id").fetchone()[0])

    def _broken(self, found: str) -> InputError:
        return InputError([Problem(str(self.path), "what a model said of texts (it can be deleted)", found)])


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _row(array: NDArray[Any]) -> tuple[str, str, bytes]:
    kind = array.dtype.newbyteorder("<").str
    if kind not in _TYPES:
        raise ValueError(f"arrays of {array.dtype} are not kept")
    return kind, ",".join(map(str, array.shape)), array.astype(kind).tobytes()


def _array(kind: str, shape: str, content: bytes) -> NDArray[Any]:
    if kind not in _TYPES:
        raise ValueError(f"an array of {kind!r}")
    size = [int(length) for length in shape.split(",") if length]
    return np.frombuffer(content, dtype=kind).reshape(size).copy()
