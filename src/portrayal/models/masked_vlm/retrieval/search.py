"""A model searches: for each picture the captions, and for each caption the pictures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from portrayal.errors import PortrayalError
from portrayal.models.masked_vlm.network import Comparable
from portrayal.models.masked_vlm.retrieval import Model
from portrayal.models.masked_vlm.retrieval.recall import (
    Array,
    Mask,
    Standing,
    Whole,
    first,
    merged,
    standing,
)

Floats = NDArray[np.float32]
ReportProgress = Callable[[str, int, int], None]  # what is done, pictures done, pictures in all
_COMPARED = 256  # pictures looked at together
_MATCHED = 32  # the same where each pair is read: small, since what a network sees in one may take megabytes
_CELLS = 4_000_000  # scores put in order together
_MARKUP = re.compile(r"[\[\]<>]")


@dataclass(frozen=True)
class Pool:
    """What is searched: pictures, and captions of each."""

    pictures: int
    load: Callable[[slice], Sequence[Any]]  # some of them, when they are looked at
    captions: Sequence[str]
    owner: Whole  # of each caption: the place of its picture


@dataclass(frozen=True)
class Found:
    """Where every picture's captions and every caption's picture stand, and what stands first."""

    by: str  # what scores come from
    rerank: int | None
    cut: int  # captions that are longer than the model reads
    captions: Standing  # for each picture
    first_caption: Whole
    pictures: Standing  # for each caption
    first_picture: Whole


@dataclass(frozen=True)
class _Scores:
    """Pictures by distinct texts. Captions that read the same are one text, so that their scores are equal and not
    merely close: networks compute with other last digits in other company.
    """

    likeness: Floats | None
    match: Floats | None  # nan where it was not asked
    captions_asked: (
        Mask | None
    )  # which texts are matched when a picture searches captions; None: all or nothing
    pictures_asked: Mask | None

    def of_captions(self, pictures: slice, text: Whole) -> Array:
        """(pictures, captions)"""
        return self._ordered(pictures, self.captions_asked, lambda scores: scores)[:, text]

    def of_pictures(self, texts: Whole) -> Array:
        """(texts, pictures)"""
        return self._ordered((slice(None), texts), self.pictures_asked, lambda scores: scores.T)

    def _ordered(self, some: Any, asked: Mask | None, turned: Callable[[Any], Any]) -> Array:
        if self.likeness is None or asked is None:
            only = self.match if self.likeness is None else self.likeness
            assert only is not None
            return np.asarray(turned(only[some]), dtype=np.float64)
        assert self.match is not None
        return merged(turned(self.likeness[some]), turned(self.match[some]), turned(asked[some]))


def search(
    model: Model, pool: Pool, rerank: int, cores: int = 1, report_progress: ReportProgress | None = None
) -> Found:
    """All pictures by all captions, and the other way round.

    A model that reads both apart compares them all, and the first `rerank` of each search are put in order anew by its
    matching head; one that does not is asked about every pair.
    """
    network = model.network
    if not network.side:
        raise PortrayalError(f"The model '{model.name}' reads texts alone: it cannot search pictures.")
    comparable = isinstance(network, Comparable)
    if not comparable and not network.matching:
        raise PortrayalError(
            f"The model '{model.name}' has no part that compares pictures with texts, so it cannot search."
        )
    again = rerank if network.matching else 0
    fitted = [as_read(caption, model.reader) for caption in pool.captions]
    place = {text: number for number, text in enumerate(sorted({text for text, _ in fitted}))}
    text = np.array([place[one] for one, _ in fitted], dtype=np.int64)
    with _alone():
        scores = _scores(model, pool, list(place), text, comparable, again, cores, report_progress)
    by = ("likeness, then matching" if again else "likeness") if comparable else "matching"
    return Found(
        by,
        again if comparable else None,
        sum(cut for _, cut in fitted),
        *_in_blocks(pool.pictures, len(pool.captions), lambda some: (
            scores.of_captions(slice(some[0], some[-1] + 1), text), some, pool.owner)),
        *_in_blocks(len(pool.captions), pool.pictures, lambda some: (
            scores.of_pictures(text[some]), pool.owner[some], np.arange(pool.pictures))),
    )  # fmt: skip


def as_read(caption: str, reader: Any) -> tuple[str, bool]:
    """A caption as the model reads it, and whether it had to be cut at the end.

    Captions are strangers' text: a tokenizer would take a word such as [SEP] or <mask> in one for a command.
    """
    words = _MARKUP.sub(" ", caption).split()
    kept = words[: reader.longest - 1]  # a text has a mark at its beginning, and most have one at the end
    while kept and len(reader.read(" ".join(kept))) > reader.longest:
        kept.pop()
    return " ".join(kept), len(kept) < len(words)


def _in_blocks(
    rows: int, columns: int, scored: Callable[[Whole], tuple[Array, Whole, Whole]]
) -> tuple[Standing, Whole]:
    """Where each row's own stands and what stands first, of so many rows at once as memory has room for."""
    step = max(1, _CELLS // columns)
    parts, tops = [], []
    for start in range(0, rows, step):
        scores, about, columns_about = scored(np.arange(start, min(start + step, rows)))
        parts.append(standing(scores, about, columns_about))
        tops.append(scores.argmax(axis=1))
    return Standing.together(parts), np.concatenate(tops)


def _scores(
    model: Model,
    pool: Pool,
    texts: Sequence[str],
    text: Whole,
    comparable: bool,
    rerank: int,
    cores: int,
    report_progress: ReportProgress | None,
) -> _Scores:
    if not comparable:
        everything = np.ones((pool.pictures, len(texts)), dtype=bool)
        return _Scores(None, _matched(model, pool, texts, everything, cores, report_progress), None, None)
    said = _numbers(model, partial(model.text_vectors, texts))
    seen = [
        _numbers(model, partial(model.picture_vectors, looked))
        for _, looked in _looks(model, pool, "compares", _COMPARED, report_progress)
    ]
    likeness = np.concatenate(seen) @ said.T
    if not rerank:
        return _Scores(likeness, None, None, None)
    captions = _first(likeness, rerank, np.bincount(text, minlength=len(texts)))
    pictures = _first(likeness.T, rerank).T
    return _Scores(
        likeness,
        _matched(model, pool, texts, captions | pictures, cores, report_progress),
        captions,
        pictures,
    )


def _first(scores: Floats, many: int, weights: Whole | None = None) -> Mask:
    """Of so many rows at once as memory has room for."""
    step = max(1, _CELLS // scores.shape[1])
    blocks = [scores[start : start + step] for start in range(0, len(scores), step)]
    return np.concatenate([first(block.astype(np.float64), many, weights) for block in blocks])


def _matched(
    model: Model,
    pool: Pool,
    texts: Sequence[str],
    asked: Mask,
    cores: int,
    report_progress: ReportProgress | None,
) -> Floats:
    """The logit that each text belongs to each picture, where that is asked."""
    made = np.full(asked.shape, np.nan, dtype=np.float32)
    # On a processor a batch for each core, with one thread each: threads that share a batch wait for each other longer
    # than they work, and their number would change the last digits.
    at_once = cores if model.device == "cpu" else 1
    with ThreadPoolExecutor(at_once, initializer=torch.set_num_threads, initargs=(1,)) as workers:
        for start, looked in _looks(model, pool, "matches", _MATCHED, report_progress):
            rows, columns = np.nonzero(asked[start : start + len(looked)])

            def some(at: int, looked: Any = looked, rows: Whole = rows, columns: Whole = columns) -> Floats:
                batch = slice(at, at + model.batch)
                said = [texts[column] for column in columns[batch]]
                seen = torch.from_numpy(rows[batch])
                return _numbers(model, lambda: model.match_logits(looked[seen], said)[:, 1])

            found = list(workers.map(some, range(0, len(rows), model.batch)))
            made[start + rows, columns] = np.concatenate(found)
    return made


def _looks(
    model: Model, pool: Pool, doing: str, together: int, report_progress: ReportProgress | None
) -> Iterator[tuple[int, Any]]:
    """The place of the first of some pictures, and what the model sees in them."""
    step, many = f"{model.name} {doing}", pool.pictures
    for start in range(0, many, together):
        if report_progress is not None:
            report_progress(step, start, many)
        pixels = model.pixels(pool.load(slice(start, start + together)))
        with torch.inference_mode():
            looked = model.encode(pixels)
        yield start, looked
    if report_progress is not None:
        report_progress(step, many, many)


def _numbers(model: Model, ask: Callable[[], Any]) -> Floats:
    with torch.inference_mode():
        found: Floats = ask().float().cpu().numpy()
    if np.isnan(found).any():
        raise PortrayalError(f"The model '{model.name}' gives no number for some pictures and captions.")
    return found


@contextmanager
def _alone() -> Iterator[None]:
    """PyTorch on one thread, and as before when it is done."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
