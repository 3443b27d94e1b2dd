"""Word vectors in files: the text of GloVe (and GN-GloVe), word2vec and fastText, and the binary form of word2vec."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import InputError, PortrayalError, Problem, shown
from portrayal.files import content_digest
from portrayal.models.packaged import located
from portrayal.models.word_vectors.vectors import WordVectors

_FASTTEXT_MODEL = (793712314).to_bytes(4, "little")  # how fastText's own binary models begin
_PACKAGED_WORDS = "glove_6B_index.parquet"
_LONGEST_WORD = 2_000  # bytes; beyond it a binary file is something else
Entry = tuple[str, NDArray[np.float32]]


def load_vectors(name: str | Path, only: Collection[str] | None = None) -> WordVectors:
    """Vectors by path, or by the name of a package that holds them; with `only`, of these words and no others.

    Files of millions of words need not be held whole: what is not wanted is passed over.
    """
    path = Path(located(str(name)))
    if (path / _PACKAGED_WORDS).is_file():
        return _of_package(path, str(name), only)
    if not path.is_file():
        raise PortrayalError(f"There are no word vectors '{name}': neither a file nor an installed package.")
    wanted = None if only is None else {form for word in only for form in (word, word.lower())}
    with _opened(path) as file:
        start = file.peek(4)[:4] if hasattr(file, "peek") else b""
    if start == _FASTTEXT_MODEL:
        expected = "vectors as text (fastText's .vec) or in word2vec's binary form"
        raise InputError([Problem(str(path), expected, "a whole fastText model")])
    read = _binary if path.name.removesuffix(".gz").endswith(".bin") else _text
    place: dict[str, int] = {}
    rows: list[NDArray[np.float32]] = []
    for word, vector in read(path, wanted):
        if word not in place:  # the first one of a word is the more frequent form of it
            place[word] = len(rows)
            rows.append(vector)
    matrix = np.stack(rows) if rows else np.zeros((0, 0), dtype=np.float32)
    return WordVectors(path.name, content_digest(path), place, matrix, {"words": f"{len(place):,}"})


def _opened(path: Path) -> IO[bytes]:
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _text(path: Path, wanted: Collection[str] | None) -> Iterator[Entry]:
    """A word and its numbers on each line; word2vec and fastText put a line with two counts in front."""
    size = 0
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            place = f"line {number}"
            try:
                text = line.decode("utf-8").rstrip("\n\r ")
            except UnicodeDecodeError:
                raise InputError([Problem(str(path), "UTF-8 text", "other bytes", place)]) from None
            parts = text.split(" ")
            if number == 1 and len(parts) == 2 and all(part.isdigit() for part in parts):
                size = int(parts[1])
                continue
            size = size or len(parts) - 1
            word = " ".join(parts[: len(parts) - size])  # some words have spaces in them
            if wanted is not None and word not in wanted:
                continue
            yield word, _numbers(parts[len(parts) - size :], size, path, place)


def _numbers(parts: list[str], size: int, path: Path, place: str) -> NDArray[np.float32]:
    try:
        made = np.array(parts, dtype=np.float32)
    except ValueError:
        made = np.zeros(0, dtype=np.float32)
    if size < 1 or len(made) != size or not np.isfinite(made).all():
        expected = f"a word and {size} numbers" if size > 0 else "a word and its numbers"
        raise InputError([Problem(str(path), expected, shown(" ".join(parts)), place)])
    return made


def _binary(path: Path, wanted: Collection[str] | None) -> Iterator[Entry]:
    """A line with two counts; then each word, a space, and its numbers as they lie in memory."""
    with _opened(path) as file:
        counts = file.readline(100).split()
        if len(counts) != 2 or not all(count.isdigit() for count in counts):
            raise InputError([Problem(str(path), "a first line with two counts", shown(counts))])
        words, size = int(counts[0]), int(counts[1])
        for number in range(words):
            word = _word(file, path, number)
            raw = file.read(4 * size)
            if len(raw) != 4 * size:
                raise InputError([Problem(str(path), f"{words:,} words", f"an end after {number:,}")])
            if wanted is None or word in wanted:
                yield word, np.frombuffer(raw, dtype="<f4").astype(np.float32)


def _word(file: IO[bytes], path: Path, number: int) -> str:
    letters = bytearray()
    while (letter := file.read(1)) != b" ":
        if not letter or len(letters) > _LONGEST_WORD:
            raise InputError(
                [Problem(str(path), "a word and a space", "something else", f"word {number + 1}")]
            )
        if letter != b"\n":  # some writers end a vector by a line's end, some do not
            letters += letter
    return letters.decode("utf-8", errors="replace")


def _of_package(folder: Path, name: str, only: Collection[str] | None) -> WordVectors:
    """A table of words and an array of their vectors, which is mapped, not read."""
    import polars as pl  # here and not above: the room must be importable where polars is not

    words = pl.read_parquet(folder / _PACKAGED_WORDS)["index"].to_list()
    matrix = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
    place = {word: number for number, word in enumerate(words)}
    if only is not None:
        kept = sorted({place[form] for word in only for form in (word, word.lower()) if form in place})
        place = {words[old]: new for new, old in enumerate(kept)}
        matrix = matrix[kept]
    return WordVectors(
        name, content_digest(folder / "glove_6B_50d_emb.npy"), place, matrix, {"words": f"{len(words):,}"}
    )
