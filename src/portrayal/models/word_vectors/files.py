"""Read word vectors from files: text formats of GloVe, GN-GloVe, word2vec and fastText, and binary word2vec."""

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

_FASTTEXT_MAGIC = (793712314).to_bytes(4, "little")  # first bytes of a binary fastText model
_PACKAGED_WORDS = "glove_6B_index.parquet"
_MAX_WORD_BYTES = 2_000  # with a longer word the file has another format
Entry = tuple[str, NDArray[np.float32]]


def load_vectors(name: str | Path, only: Collection[str] | None = None) -> WordVectors:
    """Return word vectors from a file, or from a package by name.

    With `only`, other words are skipped while reading, which saves memory for files of millions of words.
    """
    path = Path(packaged_path(str(name)))
    if (path / _PACKAGED_WORDS).is_file():
        return _load_packaged(path, str(name), only)
    if not path.is_file():
        raise PortrayalError(f"There are no word vectors '{name}': neither a file nor an installed package.")
    word_forms = None if only is None else {form for word in only for form in (word, word.lower())}
    with _open(path) as file:
        first_bytes = file.peek(4)[:4] if hasattr(file, "peek") else b""
    if first_bytes == _FASTTEXT_MAGIC:
        expected = "vectors as text (fastText's .vec) or in word2vec's binary form"
        raise InputError([Problem(str(path), expected, "a fastText model")])
    read_entries = _read_binary if path.name.removesuffix(".gz").endswith(".bin") else _read_text
    index: dict[str, int] = {}
    rows: list[NDArray[np.float32]] = []
    for word, vector in read_entries(path, word_forms):
        if word not in index:  # of repeated words the first is kept
            index[word] = len(rows)
            rows.append(vector)
    matrix = np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)
    return WordVectors(path.name, content_digest(path), index, matrix, {"words": f"{len(index):,}"})


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _read_text(path: Path, word_forms: Collection[str] | None) -> Iterator[Entry]:
    """Yield the word and the vector of each line; a first line with two counts (word2vec, fastText) is skipped."""
    n_dimensions = 0
    with _open(path) as file:
        for line_number, line in enumerate(file, 1):
            location = f"line {line_number}"
            try:
                text = line.decode("utf-8").rstrip("\n\r ")
            except UnicodeDecodeError:
                raise InputError([Problem(str(path), "UTF-8 text", "other bytes", location)]) from None
            fields = text.split(" ")
            if line_number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
                n_dimensions = int(fields[1])
                continue
            n_dimensions = n_dimensions or len(fields) - 1
            word = " ".join(fields[: len(fields) - n_dimensions])  # some words contain spaces
            if word_forms is not None and word not in word_forms:
                continue
            yield word, _parse_vector(fields[len(fields) - n_dimensions :], n_dimensions, path, location)


def _parse_vector(fields: list[str], n_dimensions: int, path: Path, location: str) -> NDArray[np.float32]:
    try:
        vector = np.array(fields, dtype=np.float32)
    except ValueError:
        vector = np.zeros(0, dtype=np.float32)
    if n_dimensions < 1 or len(vector) != n_dimensions or not np.isfinite(vector).all():
        expected = f"a word and {n_dimensions} numbers" if n_dimensions > 0 else "a word and its numbers"
        raise InputError([Problem(str(path), expected, shown(" ".join(fields)), location)])
    return vector


def _read_binary(path: Path, word_forms: Collection[str] | None) -> Iterator[Entry]:
    """Yield words and vectors of the binary word2vec format.

    A first line has two counts. Then each word is followed by a space and its float32 values.
    """
    with _open(path) as file:
        counts = file.readline(100).split()
        if len(counts) != 2 or not all(count.isdigit() for count in counts):
            raise InputError([Problem(str(path), "a first line with two counts", shown(counts))])
        n_words, n_dimensions = int(counts[0]), int(counts[1])
        for word_index in range(n_words):
            word = _read_word(file, path, word_index)
            vector_bytes = file.read(4 * n_dimensions)
            if len(vector_bytes) != 4 * n_dimensions:
                raise InputError([Problem(str(path), f"{n_words:,} words", f"an end after {word_index:,}")])
            if word_forms is None or word in word_forms:
                yield word, np.frombuffer(vector_bytes, dtype="<f4").astype(np.float32)


def _read_word(file: IO[bytes], path: Path, word_index: int) -> str:
    word_bytes = bytearray()
    while (byte := file.read(1)) != b" ":
        if not byte or len(word_bytes) > _MAX_WORD_BYTES:
            raise InputError(
                [Problem(str(path), "a word and a space", "something else", f"word {word_index + 1}")]
            )
        if byte != b"\n":  # some writers put a line break after each vector
            word_bytes += byte
    return word_bytes.decode("utf-8", errors="replace")


def _load_packaged(folder: Path, name: str, only: Collection[str] | None) -> WordVectors:
    """Return packaged vectors: a table of words and a memory-mapped array."""
    import polars as pl  # imported here: the package must import without polars

    words = pl.read_parquet(folder / _PACKAGED_WORDS)["index"].to_list()
    matrix = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    index = {word: row for row, word in enumerate(words)}
    if only is not None:
        rows = sorted({index[form] for word in only for form in (word, word.lower()) if form in index})
        index = {words[old_row]: new_row for new_row, old_row in enumerate(rows)}
        matrix = matrix[rows]
    return WordVectors(
        name, content_digest(folder / "glove_6B_50d_emb.npy"), index, matrix, {"words": f"{len(words):,}"}
    )
