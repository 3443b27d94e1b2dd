"""A disk cache of model outputs by text, which saves repeated inference and lets an interrupted run resume.

Each model has its own SQLite file, named by its digest. Several processes can use a file at the same time.
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

_APPLICATION_ID = 0x50525459  # identifies an SQLite file as such a cache
_LOCK_TIMEOUT = 60.0  # seconds to wait for another process to write
_MAX_QUERY_TEXTS = 500  # in one SQL statement; older SQLite allows at most 999
_DTYPES = ("<f4", "<f8", "<i4", "<i8")
# The names of the table and its columns are part of the file format, so existing caches depend on them.
_CREATE_TABLE = """
    CREATE TABLE IF NOT EXISTS said (
        text BLOB NOT NULL, place INTEGER NOT NULL, type TEXT NOT NULL, shape TEXT NOT NULL, content BLOB NOT NULL,
        PRIMARY KEY (text, place)
    ) WITHOUT ROWID
"""


def default_cache_folder() -> Path:
    """Return the default cache folder: $PORTRAYAL_CACHE, or the user's cache folder."""
    if folder := os.environ.get("PORTRAYAL_CACHE"):
        return Path(folder)
    xdg_folder = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg_folder) if xdg_folder else Path.home() / ".cache") / "portrayal"


@dataclass(frozen=True)
class ResponseCache:
    """The cached arrays of one model: for each text one array or more, as the model returns them."""

    folder: Path
    digest: str  # of the model

    @property
    def path(self) -> Path:
        return self.folder / f"{self.digest}.sqlite"

    def get_or_compute(
        self,
        texts: Sequence[str],
        compute: Callable[[list[str]], Iterable[Sequence[NDArray[Any]]]],
        chunk_size: int = 2_000,
    ) -> list[Arrays]:
        """Return the arrays of each text; `compute` is called for missing texts, `chunk_size` at a time."""
        cached = self.get(texts)
        # Sorted, so that the batches do not depend on the order of the texts.
        missing = sorted(set(texts) - cached.keys())
        for start in range(0, len(missing), chunk_size):
            batch = missing[start : start + chunk_size]
            computed = {text: tuple(arrays) for text, arrays in zip(batch, compute(batch), strict=True)}
            self.put(computed)
            cached |= computed
        return [cached[text] for text in texts]

    def get(self, texts: Iterable[str]) -> dict[str, Arrays]:
        """Return the arrays of the texts that are cached."""
        if not self.path.exists():
            return {}
        text_by_key = {_key(text): text for text in texts}
        arrays_by_text: dict[str, list[NDArray[Any]]] = {}
        with self._open() as file:
            keys = list(text_by_key)
            for start in range(0, len(keys), _MAX_QUERY_TEXTS):
                batch = keys[start : start + _MAX_QUERY_TEXTS]
                rows = file.execute(
                    f"SELECT text, type, shape, content FROM said WHERE text IN ({','.join('?' * len(batch))}) "
                    "ORDER BY text, place",
                    batch,
                )
                for key, dtype, shape, content in rows:
                    arrays_by_text.setdefault(text_by_key[key], []).append(_array(dtype, shape, content))
        return {text: tuple(arrays) for text, arrays in arrays_by_text.items()}

    def put(self, arrays_by_text: Mapping[str, Sequence[NDArray[Any]]]) -> None:
        """Cache the arrays of these texts in one transaction; arrays that were cached before are replaced."""
        rows = [
            (_key(text), position, *_row(array))
            for text, arrays in arrays_by_text.items()
            for position, array in enumerate(arrays)
        ]
        with self._open() as file:
            file.execute("BEGIN IMMEDIATE")
            file.executemany("DELETE FROM said WHERE text = ?", [(_key(text),) for text in arrays_by_text])
            file.executemany("INSERT INTO said VALUES (?, ?, ?, ?, ?)", rows)
            file.execute("COMMIT")

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Open the SQLite file, which is created if needed; uncommitted changes are rolled back."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with contextlib.closing(sqlite3.connect(self.path, _LOCK_TIMEOUT, isolation_level=None)) as file:
                self._check_or_create(file)
                yield file
        except (OSError, sqlite3.OperationalError) as error:  # the file may be valid but locked
            raise PortrayalError(
                f"{self.path}, a cache of model outputs, cannot be used ({error}). Set PORTRAYAL_CACHE "
                "to another folder."
            ) from error
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise self._invalid_file(f"something else ({error})") from error

    def _check_or_create(self, file: sqlite3.Connection) -> None:
        """Raise an error if the file is not a cache; create the table in a new file."""
        if self._application_id(file) == _APPLICATION_ID:
            return
        file.execute(
            "BEGIN IMMEDIATE"
        )  # locks the file, so that no other process creates the table at the same time
        (tables,) = file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if self._application_id(file) != _APPLICATION_ID:
            if tables:
                raise self._invalid_file("another database")
            file.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            file.execute(_CREATE_TABLE)
        file.execute("COMMIT")

    @staticmethod
    def _application_id(file: sqlite3.Connection) -> int:
        return int(file.execute("PRAGMA application_id").fetchone()[0])

    def _invalid_file(self, description: str) -> InputError:
        return InputError(
            [Problem(str(self.path), "a cache of model outputs (it can be deleted)", description)]
        )


def _key(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _row(array: NDArray[Any]) -> tuple[str, str, bytes]:
    dtype = array.dtype.newbyteorder("<").str
    if dtype not in _DTYPES:
        raise ValueError(f"arrays of {array.dtype} are not supported")
    return dtype, ",".join(map(str, array.shape)), array.astype(dtype).tobytes()


def _array(dtype: str, shape: str, content: bytes) -> NDArray[Any]:
    if dtype not in _DTYPES:
        raise ValueError(f"an array of {dtype!r}")
    dimensions = [int(length) for length in shape.split(",") if length]
    return np.frombuffer(content, dtype=dtype).reshape(dimensions).copy()
