"""N-grams of one to four words, counted in every sentence of a corpus at once.

Words and n-grams are integers, so that a corpus is a few long arrays without loops over sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAX_N = 4
Array = NDArray[np.float64]
Indices = NDArray[np.signedinteger[Any]]
# Type of indices and ids: half the memory of int64, and enough for two thousand million words.
_INT = np.int32


@dataclass(frozen=True)
class NGrams:
    """The distinct n-grams of each sentence, sorted by n-gram and then by sentence.

    N-grams that occur once in the corpus cannot match and are not kept: `n_unique` counts them per sentence.
    """

    sentence: Indices
    ngram: Indices  # id of the n-gram
    count: Indices
    n_unique: Indices


class Sentences:
    """Sentences as word lists. Their n-grams are counted once for all comparisons."""

    def __init__(self, sentences: Sequence[Sequence[str]]):
        self.lengths: Indices = np.fromiter(map(len, sentences), np.int64, len(sentences))
        word_ids = dict.fromkeys(chain.from_iterable(sentences))
        word_ids = dict(zip(word_ids, range(len(word_ids)), strict=True))
        ids = map(word_ids.__getitem__, chain.from_iterable(sentences))
        self.words: Indices = np.fromiter(ids, _INT, int(self.lengths.sum()))
        self.start: Indices = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)
        self.n_words = len(word_ids)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def ngrams(self) -> tuple[NGrams, ...]:
        """N-grams of one to four words.

        One sort for each n finds equal n-grams and their count per sentence, and gives captions and references one
        order. An n-gram can only occur twice if its two shorter n-grams do, so most long ones need no sorting.
        """
        owner = np.repeat(np.arange(len(self), dtype=_INT), self.lengths)
        same_sentence = np.append(
            owner[1:] == owner[:-1], False
        )  # whether the next word is in the same sentence
        ngram_at = self.words  # id of the n-gram that starts at each word
        start = np.arange(len(self.words), dtype=_INT)
        results = []
        for size in range(1, MAX_N + 1):
            key: NDArray[Any] = ngram_at[start]
            if size > 1:
                key = key.astype(np.int64) * self.n_words + self.words[start + (size - 1)]
            elif self.n_words <= 1 << 16:  # numpy sorts 16-bit integers by counting
                key = key.astype(np.uint16)
            order = np.argsort(key, kind="stable")
            start, key = start[order], key[order]
            new = _is_new(key)
            repeated = ~new
            # An n-gram is repeated where it equals the previous or the next one.
            repeated[:-1] |= repeated[1:]
            start, new = start[repeated], new[repeated]
            ngram, sentence = np.cumsum(new, dtype=_INT) - _INT(1), owner[start]
            first = np.flatnonzero(new | _is_new(sentence))
            count = np.diff(first, append=len(ngram))
            n_repeated = np.bincount(sentence, minlength=len(self))
            n_unique = np.maximum(self.lengths - size + 1, 0) - n_repeated
            results.append(NGrams(sentence[first], ngram[first], count, n_unique))
            ngram_at = np.full(len(self.words) + 1, -1, dtype=_INT)
            ngram_at[start] = ngram
            # A longer candidate starts where two repeated n-grams follow each other in the same sentence.
            start = np.flatnonzero((ngram_at[:-1] >= 0) & (ngram_at[1:] >= 0) & same_sentence).astype(_INT)
        return tuple(results)

    def table(self, indices: Indices) -> Indices:
        """The words of these sentences, a row each, padded with -1."""
        width = int(self.lengths[indices].max(initial=0))
        columns = np.arange(width)
        inside = columns < self.lengths[indices, None]
        words = np.full((len(indices), width), -1, dtype=np.int64)
        words[inside] = self.words[(self.start[indices, None] + columns)[inside]]
        return words


@dataclass(frozen=True)
class ReferenceComparison:
    """Comparison of one caption of each image with the references of the image.

    Captions and references are indices into `sentences`, increasing in the order of images; every image has one caption
    and at least one reference.
    """

    sentences: Sentences
    captions: Indices
    references: Indices
    image_index: Indices  # of each reference: index of its caption

    def __len__(self) -> int:
        return len(self.captions)

    @cached_property
    def references_per_image(self) -> Indices:
        """Number of references of each image."""
        return np.bincount(self.image_index, minlength=len(self))

    @cached_property
    def shared_ngrams(self) -> tuple[SharedNGrams, ...]:
        """Matches of the n-grams of captions and references, for each n."""
        return tuple(self._match(runs) for runs in self.sentences.ngrams)

    def _match(self, ngrams: NGrams) -> SharedNGrams:
        caption_rows, caption = _select(ngrams, self.captions, len(self.sentences))
        reference_rows, reference = _select(ngrams, self.references, len(self.sentences))
        caption_ngram, reference_ngram, reference_image = (
            ngrams.ngram[caption_rows],
            ngrams.ngram[reference_rows],
            self.image_index[reference],
        )
        # Both are sorted by n-gram and image, so that the searches are local.
        keys = caption_ngram.astype(np.int64) * len(self) + caption
        wanted = reference_ngram.astype(np.int64) * len(self) + reference_image
        match = np.searchsorted(keys, wanted)
        match[match == len(keys)] = 0
        matched = keys[match] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        n_ngrams = int(ngrams.ngram[-1]) + 1 if len(ngrams.ngram) else 1
        frequency = np.bincount(reference_ngram[_is_new(wanted)], minlength=n_ngrams)
        return SharedNGrams(
            caption,
            ngrams.count[caption_rows],
            frequency[caption_ngram],
            reference,
            ngrams.count[reference_rows],
            frequency[reference_ngram],
            np.flatnonzero(matched),
            match[matched],
            ngrams.n_unique[self.captions],
            ngrams.n_unique[self.references],
        )


@dataclass(frozen=True)
class SharedNGrams:
    """N-grams of one length in captions and references, and their matches within images."""

    caption: Indices  # caption of each of its n-grams
    caption_count: Indices
    caption_frequency: Indices  # number of images with it in a reference
    reference: Indices  # reference of each of its n-grams
    reference_count: Indices
    reference_frequency: Indices
    shared_reference: Indices  # matches: index into the n-grams of references ...
    shared_caption: Indices  # ... and into those of captions
    caption_unique: Indices  # number of unique n-grams of each caption
    reference_unique: Indices


def _select(ngrams: NGrams, indices: Indices, sentences: int) -> tuple[Indices, Indices]:
    """Rows of the n-grams of these sentences, and the position of the sentence in `indices`."""
    position = np.full(sentences, -1, dtype=_INT)
    position[indices] = np.arange(len(indices), dtype=_INT)
    owner = position[ngrams.sentence]
    selected = np.flatnonzero(owner >= 0)
    return selected, owner[selected]


def _is_new(values: Indices) -> NDArray[np.bool_]:
    """Whether each value differs from the previous one; true for the first."""
    is_new = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return is_new
