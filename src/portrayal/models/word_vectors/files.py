"""Word vectors in files: the text formats of GloVe (and GN-GloVe), word2vec and fastText, and binary word2vec."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.files import content_digest
from portrayal.models.packaged import packaged_path
from portrayal.models.word_vectors.vectors import WordVectors

_FASTTEXT_MODEL = (793712314).to_bytes(4, "little")  # the first bytes of fastText's own binary models
_PACKAGED_WORDS = "glove_6B_index.parquet"
_MAX_WORD_BYTES = 2_000  # a longer word means that the file is something else
Entry = tuple[str, NDArray[np.float32]]


def load_vectors(name: str | Path, only: Collection[str] | None = None) -> WordVectors:
    """Return word vectors from a file, or from a package by name.

    With `only`, other words are skipped while reading: files of millions of words need not fit into memory.
    """
    path = Path(packaged_path(str(name)))
    if (path / _PACKAGED_WORDS).is_file():
        return _load_packaged(path, str(name), only)
    if not path.is_file():
        raise PortrayalError(f"There are no word vectors '{name}': neither a file nor an installed package.")
    word_forms = None if only is None else {form for word in only for form in (word, word.lower())}
    with _open(path) as file:
        start = file.peek(4)[:4] if hasattr(file, "peek") else b""
    if start == _FASTTEXT_MODEL:
        expected = "vectors as text (fastText's .vec) or in word2vec's binary form"
        raise InputError([Problem(str(path), expected, "a fastText model")])
    read_entries = _read_binary if path.name.removesuffix(".gz").endswith(".bin") else _read_text
    index: dict[str, int] = {}
    rows: list[NDArray[np.float32]] = []
    for word, vector in read_entries(path, word_forms):
        if word not in index:  # the first entry of a word is its more frequent form
            index[word] = len(rows)
            rows.append(vector)
    matrix = np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)
    return WordVectors(path.name, content_digest(path), index, matrix, {"words": f"{len(index):,}"})


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _read_text(path: Path, word_forms: Collection[str] | None) -> Iterator[Entry]:
    """Yield a word and its vector from each line; word2vec and fastText have a first line with two counts."""
    size = 0
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            location = f"line {number}"
            try:
                text = line.decode("utf-8").rstrip("\n\r ")
            except UnicodeDecodeError:
                raise InputError([Problem(str(path), "UTF-8 text", "other bytes", location)]) from None
            parts = text.split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdigit() for part in parts):
                size = int(parts[1])
                continue
            size = size or len(parts) - 1
            word = " ".join(parts[: len(parts) - size])  # some words contain spaces
            if word_forms is not None and word not in word_forms:
                continue
            yield word, _parse_vector(parts[len(parts) - size :], size, path, location)


def _parse_vector(parts: list[str], size: int, path: Path, location: str) -> NDArray[np.float32]:
    try:
        vector = np.array(parts, dtype=np.float32)
    except ValueError:
        vector = np.zeros(0, dtype=np.float32)
    if size < 1 or len(vector) != size or not np.isfinite(vector).all():
        expected = f"a word and {size} numbers" if size > 0 else "a word and its numbers"
        raise InputError([Problem(str(path), expected, shown(" ".join(parts)), location)])
    return vector


def _read_binary(path: Path, word_forms: Collection[str] | None) -> Iterator[Entry]:
    """Yield words and vectors: a line with two counts; then each word, a space, and its numbers as bytes."""
    with _open(path) as file:
        counts = file.readline(100).split()
        if len(counts) != 2 or not all(count.isdigit() for count in counts):
            raise InputError([Problem(str(path), "a first line with two counts", shown(counts))])
        words, size = int(counts[0]), int(counts[1])
        for number in range(words):
            word = _read_word(file, path, number)
            raw = file.read(4 * size)
            if len(raw) != 4 * size:
                raise InputError([Problem(str(path), f"{words:,} words", f"an end after {number:,}")])
            if word_forms is None or word in word_forms:
                yield word, np.frombuffer(raw, dtype="<f4").astype(np.float32)


def _read_word(file: IO[bytes], path: Path, number: int) -> str:
    letters = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter or len(letters) > _MAX_WORD_BYTES:
            raise InputError(
                [Problem(str(path), "a word and a space", "something else", f"word {number + 1}")]
            )
        if letter != b"\n":  # some writers end a vector with a line break, some do not
            letters += letter
    return letters.decode("utf-8", errors="replace")


def _load_packaged(folder: Path, name: str, only: Collection[str] | None) -> WordVectors:
    """Return packaged vectors: a table of words and an array that is memory-mapped."""
    import polars as pl  # imported here: the package must import without polars

    words = pl.read_parquet(folder / _PACKAGED_WORDS)["index"].to_list()
    matrix = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    index = {word: number for number, word in enumerate(words)}
    if only is not None:
        rows = sorted({index[form] for word in only for form in (word, word.lower()) if form in index})
        index = {words[old]: new for new, old in enumerate(rows)}
        matrix = matrix[rows]
    return WordVectors(
        name, content_digest(folder / "glove_6B_50d_emb.npy"), index, matrix, {"words": f"{len(words):,}"}
    )
