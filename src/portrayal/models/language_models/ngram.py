"""A model of n-grams: a small language model that learns from the captions at hand and needs nothing installed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import PortrayalError
from portrayal.models.language_models.scores import Scored

UNKNOWN = "<unk>"
_UNKNOWN, _END, _FIRST = 0, 1, 2  # codes; words come from _FIRST on, and the begin of a text has the last one
_VERSION = 1  # to be raised when the same counts would give other probabilities

Codes = NDArray[np.int64]
Cut = Callable[[str], list[tuple[str, int]]]  # the tokens of a text, each with the place at which it ends


@dataclass(frozen=True, eq=False)
class _Level:
    """What was seen after contexts of one length; keys are sorted."""

    contexts: (
        Codes  # key of each context: (number of the context one word shorter, code of the word before it)
    )
    pairs: Codes  # key of each word seen after a context: (number of the context, code of the word)
    counts: Codes  # how often each pair was seen
    totals: Codes  # how often each context was seen
    kinds: Codes  # how many different words were seen after each context


@dataclass(frozen=True, eq=False)
class NGrams:
    """An interpolated n-gram model with the weights of Witten and Bell (1991).

    With c(h, w) how often the word w followed the context h, c(h) their sum over words, and T(h) the number of
    different words that followed h,

        P(w | h) = (c(h, w) + T(h) P(w | h')) / (c(h) + T(h))

    where h' is h without its first word. A context never seen has P(w | h) = P(w | h'). Below the empty context all
    words are equally likely: 1 / (V + 2) for each of the V words learnt, for all unknown words together, and for the
    end of the text. So nothing is impossible, and what can follow a context adds up to 1. A text begins with order - 1
    marks, which are part of its contexts.

    >>> def by_spaces(text):
    ...     ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
    ...     return list(zip(text.split(), ends.tolist()))
    >>> model = NGrams.learnt(["a dog", "a cat"], by_spaces)
    >>> np.exp(model.scored(["a dog"])[0].log_probabilities).round(3).tolist()
    [0.92, 0.42, 0.82]
    """

    words: tuple[str, ...]  # sorted
    order: int
    name: str
    about: dict[str, str]
    cut: Cut
    levels: tuple[_Level, ...]  # by length of the context: 0, 1, ... order - 1

    @classmethod
    def learnt(
        cls, texts: Iterable[str], cut: Cut, order: int = 3, *, name: str = "n-gram", source: str = "texts"
    ) -> NGrams:
        """From texts, in whatever order; `source` says what they are, in a word or two."""
        if order < 1:
            raise PortrayalError(f"The 'order' of an n-gram model must be 1 or more. Got {order} instead.")
        often = Counter(texts)
        read = [[token for token, _ in cut(text)] for text in often]
        words = tuple(sorted({token for tokens in read for token in tokens} - {UNKNOWN}))
        told = _Told.of(read, _codes(words), len(words), order)
        times = np.repeat(np.fromiter(often.values(), np.int64, len(often)), told.lengths)
        about = {
            "order": str(order),
            "learnt from": f"{often.total():,} {source}",
            "words": f"{len(words):,}",
        }
        return cls(words, order, name, about, cut, tuple(_learn(told, times, order)))

    @cached_property
    def digest(self) -> str:
        whole = hashlib.blake2b(digest_size=16)
        whole.update(json.dumps([_VERSION, self.order, self.words]).encode())
        for level in self.levels:
            for part in (level.contexts, level.pairs, level.counts):
                whole.update(part.astype("<i8").tobytes())
        return whole.hexdigest()

    def scored(self, texts: Sequence[str]) -> list[Scored]:
        """What it makes of each text; those that read the same are looked at once."""
        distinct = list(dict.fromkeys(texts))
        cut = [self.cut(text) for text in distinct]
        told = _Told.of([[token for token, _ in one] for one in cut], self._code, len(self.words), self.order)
        logs = np.log(self._probabilities(told))
        stops = np.cumsum(told.lengths)
        made = {}
        for text, pairs, start, stop in zip(distinct, cut, stops - told.lengths, stops, strict=True):
            ends = np.array([*(end for _, end in pairs), len(text)], dtype=np.int64)
            made[text] = Scored(logs[start:stop], ends)
        return [made[text] for text in texts]

    @cached_property
    def _code(self) -> dict[str, int]:
        return _codes(self.words)

    def _probabilities(self, told: _Told) -> NDArray[np.float64]:
        likely = np.full(len(told.codes), 1 / (len(self.words) + _FIRST))
        places = np.arange(len(told.codes) if len(self.levels[0].contexts) else 0)
        number = np.zeros(len(places), dtype=np.int64)
        for length, level in enumerate(self.levels):
            if length:  # a context that was never seen stays so when it grows: only the others are followed
                number = _found(level.contexts, number * told.base + told.before(length)[places])
                places, number = places[number >= 0], number[number >= 0]
            if not len(places):
                break
            at = _found(level.pairs, number * told.base + told.codes[places])
            seen = np.where(at >= 0, level.counts[at], 0)
            total, kinds = level.totals[number], level.kinds[number]
            likely[places] = (seen + kinds * likely[places]) / (total + kinds)
        return likely


@dataclass(frozen=True, eq=False)
class _Told:
    """Texts one after the other as codes, each with its end, and `order` - 1 marks before each."""

    padded: Codes
    places: Codes  # in `padded`: of what is to be told, the marks left out
    lengths: Codes  # tokens of each text and its end
    base: int  # codes are smaller

    @classmethod
    def of(cls, texts: Sequence[Sequence[str]], code: dict[str, int], words: int, order: int) -> _Told:
        begin = words + _FIRST
        marks = [begin] * (order - 1)
        flat: list[int] = []
        for tokens in texts:
            flat += marks
            flat += [code.get(token, _UNKNOWN) for token in tokens]
            flat.append(_END)
        padded = np.array(flat, dtype=np.int64)
        lengths = np.fromiter((len(tokens) + 1 for tokens in texts), np.int64, len(texts))
        return cls(padded, np.flatnonzero(padded != begin), lengths, begin + 1)

    @cached_property
    def codes(self) -> Codes:
        return self.padded[self.places]

    def before(self, steps: int) -> Codes:
        """The code that stands so many steps before each."""
        return self.padded[self.places - steps]


def _codes(words: Sequence[str]) -> dict[str, int]:
    return {word: code for code, word in enumerate(words, _FIRST)}


def _learn(told: _Told, times: Codes, order: int) -> Iterable[_Level]:
    number = np.zeros(len(told.codes), dtype=np.int64)
    contexts = np.zeros(
        min(1, len(told.codes)), dtype=np.int64
    )  # the empty one, unless there is no text at all
    # A context is one word longer than the one before, which is numbered already: keys stay small whatever the order.
    for length in range(order):
        if length:
            contexts, number = np.unique(number * told.base + told.before(length), return_inverse=True)
        pairs, which = np.unique(number * told.base + told.codes, return_inverse=True)
        counts = _sums(which, times, len(pairs))
        of = pairs // told.base
        kinds = np.bincount(of, minlength=len(contexts))
        yield _Level(contexts, pairs, counts, _sums(of, counts, len(contexts)), kinds)


def _sums(which: Codes, counts: Codes, size: int) -> Codes:
    return np.bincount(which, weights=counts, minlength=size).astype(np.int64)


def _found(keys: Codes, asked: Codes) -> Codes:
    """The place of each among sorted keys, of which there is at least one; -1 where it is not there."""
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[at] == asked, at, -1)
