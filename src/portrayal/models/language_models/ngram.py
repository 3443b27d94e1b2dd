"""An n-gram language model, which is fitted to captions and needs no further package."""

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
from portrayal.models.language_models.scores import TokenScores

UNKNOWN = "<unk>"
# Codes; words start at _FIRST_WORD, and the start of a text has the last code.
_UNKNOWN, _END, _FIRST_WORD = 0, 1, 2
_VERSION = 1  # increase when the probabilities of the same counts change

Codes = NDArray[np.int64]
# the tokens of a text, each with the position at which it ends
TokenizeWithEnds = Callable[[str], list[tuple[str, int]]]


@dataclass(frozen=True, eq=False)
class _Level:
    """Counts after contexts of one length; keys are sorted."""

    contexts: Codes  # key of each context: (id of the context one word shorter, code of the word before it)
    pairs: Codes  # key of each word that follows a context: (id of the context, code of the word)
    counts: Codes  # occurrences of each pair
    totals: Codes  # occurrences of each context
    n_distinct: Codes  # number of distinct words after each context


@dataclass(frozen=True, eq=False)
class NGramModel:
    """An interpolated n-gram model with Witten-Bell smoothing (1991).

    With c(h, w) the count of the word w after the context h, c(h) the sum over words, and T(h) the number of
    distinct words after h,

        P(w | h) = (c(h, w) + T(h) P(w | h')) / (c(h) + T(h))

    where h' is h without its first word. A context that never occurs has P(w | h) = P(w | h'). Below the
    empty context the distribution is uniform: 1 / (V + 2) for each of the V words of the vocabulary, for all
    unknown words together, and for the end of the text. So no probability is 0, and the probabilities after a
    context add up to 1. A text starts with order - 1 start symbols, which are part of its contexts.

    >>> def by_spaces(text):
    ...     ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
    ...     return list(zip(text.split(), ends.tolist()))
    >>> model = NGramModel.fit(["a dog", "a cat"], by_spaces)
    >>> np.exp(model.score(["a dog"])[0].log_probabilities).round(3).tolist()
    [0.92, 0.42, 0.82]
    """

    words: tuple[str, ...]  # sorted
    order: int
    name: str
    metadata: dict[str, str]
    tokenize: TokenizeWithEnds
    levels: tuple[_Level, ...]  # by length of the context: 0, 1, ... order - 1

    @classmethod
    def fit(
        cls,
        texts: Iterable[str],
        tokenize: TokenizeWithEnds,
        order: int = 3,
        *,
        name: str = "n-gram",
        source: str = "texts",
    ) -> NGramModel:
        """Fit a model to texts, in any order; `source` describes them in a word or two."""
        if order < 1:
            raise PortrayalError(f"The 'order' of an n-gram model must be 1 or more. Got {order} instead.")
        text_counts = Counter(texts)
        token_lists = [[token for token, _ in tokenize(text)] for text in text_counts]
        words = tuple(sorted({token for tokens in token_lists for token in tokens} - {UNKNOWN}))
        coded = _CodedTexts.from_texts(token_lists, _word_codes(words), len(words), order)
        repeats = np.repeat(np.fromiter(text_counts.values(), np.int64, len(text_counts)), coded.lengths)
        metadata = {
            "order": str(order),
            "fitted on": f"{text_counts.total():,} {source}",
            "words": f"{len(words):,}",
        }
        return cls(words, order, name, metadata, tokenize, tuple(_count_levels(coded, repeats, order)))

    @cached_property
    def digest(self) -> str:
        content = hashlib.blake2b(digest_size=16)
        content.update(json.dumps([_VERSION, self.order, self.words]).encode())
        for level in self.levels:
            for array in (level.contexts, level.pairs, level.counts):
                content.update(array.astype("<i8").tobytes())
        return content.hexdigest()

    def score(self, texts: Sequence[str]) -> list[TokenScores]:
        """Return the token scores of each text; identical texts are scored once."""
        distinct = list(dict.fromkeys(texts))
        tokenized = [self.tokenize(text) for text in distinct]
        coded = _CodedTexts.from_texts(
            [[token for token, _ in tokens] for tokens in tokenized], self._code, len(self.words), self.order
        )
        logs = np.log(self._probabilities(coded))
        ends_of_text = np.cumsum(coded.lengths)
        scores_by_text = {}
        for text, pairs, start, stop in zip(
            distinct, tokenized, ends_of_text - coded.lengths, ends_of_text, strict=True
        ):
            ends = np.array([*(end for _, end in pairs), len(text)], dtype=np.int64)
            scores_by_text[text] = TokenScores(logs[start:stop], ends)
        return [scores_by_text[text] for text in texts]

    @cached_property
    def _code(self) -> dict[str, int]:
        return _word_codes(self.words)

    def _probabilities(self, coded: _CodedTexts) -> NDArray[np.float64]:
        probabilities = np.full(len(coded.codes), 1 / (len(self.words) + _FIRST_WORD))
        positions = np.arange(len(coded.codes) if len(self.levels[0].contexts) else 0)
        context_id = np.zeros(len(positions), dtype=np.int64)
        for length, level in enumerate(self.levels):
            # Extensions of a context that never occurs never occur either: only the others continue.
            if length:
                context_id = _sorted_index(
                    level.contexts, context_id * coded.base + coded.preceding(length)[positions]
                )
                positions, context_id = positions[context_id >= 0], context_id[context_id >= 0]
            if not len(positions):
                break
            pair_index = _sorted_index(level.pairs, context_id * coded.base + coded.codes[positions])
            counts = np.where(pair_index >= 0, level.counts[pair_index], 0)
            total, n_distinct = level.totals[context_id], level.n_distinct[context_id]
            probabilities[positions] = (counts + n_distinct * probabilities[positions]) / (total + n_distinct)
        return probabilities


@dataclass(frozen=True, eq=False)
class _CodedTexts:
    """Concatenated texts as codes, each with its end, and `order` - 1 start symbols before each."""

    padded: Codes
    positions: Codes  # in `padded`, of all codes but the start symbols
    lengths: Codes  # tokens of each text and its end
    base: int  # all codes are smaller

    @classmethod
    def from_texts(
        cls, texts: Sequence[Sequence[str]], code_by_token: dict[str, int], n_words: int, order: int
    ) -> _CodedTexts:
        begin = n_words + _FIRST_WORD
        start_codes = [begin] * (order - 1)
        codes: list[int] = []
        for tokens in texts:
            codes += start_codes
            codes += [code_by_token.get(token, _UNKNOWN) for token in tokens]
            codes.append(_END)
        padded = np.array(codes, dtype=np.int64)
        lengths = np.fromiter((len(tokens) + 1 for tokens in texts), np.int64, len(texts))
        return cls(padded, np.flatnonzero(padded != begin), lengths, begin + 1)

    @cached_property
    def codes(self) -> Codes:
        return self.padded[self.positions]

    def preceding(self, distance: int) -> Codes:
        """Return the code at this distance before each."""
        return self.padded[self.positions - distance]


def _word_codes(words: Sequence[str]) -> dict[str, int]:
    return {word: code for code, word in enumerate(words, _FIRST_WORD)}


def _count_levels(coded: _CodedTexts, repeats: Codes, order: int) -> Iterable[_Level]:
    context_id = np.zeros(len(coded.codes), dtype=np.int64)
    # The empty context, unless there is no text.
    contexts = np.zeros(min(1, len(coded.codes)), dtype=np.int64)
    # A context extends a shorter one, which has an id: keys stay small for any order.
    for length in range(order):
        if length:
            contexts, context_id = np.unique(
                context_id * coded.base + coded.preceding(length), return_inverse=True
            )
        pairs, pair_id = np.unique(context_id * coded.base + coded.codes, return_inverse=True)
        counts = _weighted_bincount(pair_id, repeats, len(pairs))
        context_of_pair = pairs // coded.base
        n_distinct = np.bincount(context_of_pair, minlength=len(contexts))
        yield _Level(
            contexts, pairs, counts, _weighted_bincount(context_of_pair, counts, len(contexts)), n_distinct
        )


def _weighted_bincount(index: Codes, counts: Codes, size: int) -> Codes:
    return np.bincount(index, weights=counts, minlength=size).astype(np.int64)


def _sorted_index(keys: Codes, queries: Codes) -> Codes:
    """Return the position of each query among sorted keys, of which there is at least one; -1 if missing."""
    position = np.minimum(np.searchsorted(keys, queries), len(keys) - 1)
    return np.where(keys[position] == queries, position, -1)
