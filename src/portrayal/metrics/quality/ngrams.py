"""N-grams of one to four words, counted in all sentences of a corpus.

Words and n-grams are integers. A corpus is a few long arrays, so that no loop over sentences is needed.
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
# The type of indices and ids. It takes half the memory of int64 and is enough for two billion words.
_INDEX_DTYPE = np.int32


@dataclass(frozen=True)
class NGrams:
    """The distinct n-grams of each sentence, sorted by n-gram and then by sentence.

    N-grams that occur once in the corpus match nothing and are not stored. `n_unique` is their number per sentence.
    """

    sentence: Indices  # index of the sentence
    ngram: Indices  # id of the n-gram
    count: Indices  # occurrences in the sentence
    n_unique: Indices


class Sentences:
    """Sentences as arrays of word ids. Their n-grams are counted once and used in all comparisons."""

    def __init__(self, sentences: Sequence[Sequence[str]]):
        self.lengths: Indices = np.fromiter(map(len, sentences), np.int64, len(sentences))
        word_ids = dict.fromkeys(chain.from_iterable(sentences))
        word_ids = dict(zip(word_ids, range(len(word_ids)), strict=True))
        ids = map(word_ids.__getitem__, chain.from_iterable(sentences))
        self.words: Indices = np.fromiter(ids, _INDEX_DTYPE, int(self.lengths.sum()))
        self.starts: Indices = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)
        self.n_words = len(word_ids)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def ngrams(self) -> tuple[NGrams, ...]:
        """The n-grams of one to four words.

        For each n, one sort finds equal n-grams and their counts per sentence, and puts the n-grams of captions and
        references into the same order. An n-gram can occur twice only if both (n-1)-grams in it do. Most long n-grams
        are therefore not sorted.
        """
        sentence_of_word = np.repeat(np.arange(len(self), dtype=_INDEX_DTYPE), self.lengths)
        # Whether the next word is in the same sentence.
        continues = np.append(sentence_of_word[1:] == sentence_of_word[:-1], False)
        ngram_by_word = self.words  # id of the n-gram that starts at each word
        word_index = np.arange(len(self.words), dtype=_INDEX_DTYPE)
        ngrams_by_size = []
        for n in range(1, MAX_N + 1):
            key: NDArray[Any] = ngram_by_word[word_index]
            if n > 1:
                key = key.astype(np.int64) * self.n_words + self.words[word_index + (n - 1)]
            elif self.n_words <= 1 << 16:  # numpy sorts 16-bit integers by counting
                key = key.astype(np.uint16)
            order = np.argsort(key, kind="stable")
            word_index, key = word_index[order], key[order]
            is_first = _is_run_start(key)
            is_repeated = ~is_first
            # An n-gram is repeated if it equals the previous or the next one in the sorted order.
            is_repeated[:-1] |= is_repeated[1:]
            word_index, is_first = word_index[is_repeated], is_first[is_repeated]
            ngram, sentence = (
                np.cumsum(is_first, dtype=_INDEX_DTYPE) - _INDEX_DTYPE(1),
                sentence_of_word[word_index],
            )
            run_start = np.flatnonzero(is_first | _is_run_start(sentence))
            count = np.diff(run_start, append=len(ngram))
            n_repeated = np.bincount(sentence, minlength=len(self))
            n_unique = np.maximum(self.lengths - n + 1, 0) - n_repeated
            ngrams_by_size.append(NGrams(sentence[run_start], ngram[run_start], count, n_unique))
            ngram_by_word = np.full(len(self.words) + 1, -1, dtype=_INDEX_DTYPE)
            ngram_by_word[word_index] = ngram
            # A longer n-gram can be repeated only if two repeated n-grams start at its first and second word.
            word_index = np.flatnonzero(
                (ngram_by_word[:-1] >= 0) & (ngram_by_word[1:] >= 0) & continues
            ).astype(_INDEX_DTYPE)
        return tuple(ngrams_by_size)

    def padded_words(self, indices: Indices) -> Indices:
        """The word ids of these sentences, with a row for each, padded with -1."""
        n_columns = int(self.lengths[indices].max(initial=0))
        columns = np.arange(n_columns)
        is_word = columns < self.lengths[indices, None]
        words = np.full((len(indices), n_columns), -1, dtype=np.int64)
        words[is_word] = self.words[(self.starts[indices, None] + columns)[is_word]]
        return words


@dataclass(frozen=True)
class ReferenceComparison:
    """Comparison of one caption of each image with the references of the image.

    `captions` and `references` are indices into `sentences`, in the order of images. Each image has one caption and at
    least one reference.
    """

    sentences: Sentences
    captions: Indices
    references: Indices
    image_index: Indices  # position in `captions` of each reference's caption

    def __len__(self) -> int:
        return len(self.captions)

    @cached_property
    def references_per_image(self) -> Indices:
        """The number of references of each image."""
        return np.bincount(self.image_index, minlength=len(self))

    @cached_property
    def shared_ngrams(self) -> tuple[SharedNGrams, ...]:
        """The n-grams that captions share with references, for each n."""
        return tuple(self._match(ngrams) for ngrams in self.sentences.ngrams)

    def _match(self, ngrams: NGrams) -> SharedNGrams:
        """The n-grams of one length that captions share with references."""
        caption_rows, caption_index = _select(ngrams, self.captions, len(self.sentences))
        reference_rows, reference_index = _select(ngrams, self.references, len(self.sentences))
        caption_ngram, reference_ngram, reference_image = (
            ngrams.ngram[caption_rows],
            ngrams.ngram[reference_rows],
            self.image_index[reference_index],
        )
        # Both are sorted by n-gram and image. Successive searches are close to each other in memory.
        caption_keys = caption_ngram.astype(np.int64) * len(self) + caption_index
        reference_keys = reference_ngram.astype(np.int64) * len(self) + reference_image
        caption_match = np.searchsorted(caption_keys, reference_keys)
        caption_match[caption_match == len(caption_keys)] = 0
        is_match = (
            caption_keys[caption_match] == reference_keys
            if len(caption_keys)
            else np.zeros(len(reference_keys), dtype=bool)
        )
        n_ngrams = int(ngrams.ngram[-1]) + 1 if len(ngrams.ngram) else 1
        document_frequency = np.bincount(reference_ngram[_is_run_start(reference_keys)], minlength=n_ngrams)
        return SharedNGrams(
            caption_index,
            ngrams.count[caption_rows],
            document_frequency[caption_ngram],
            reference_index,
            ngrams.count[reference_rows],
            document_frequency[reference_ngram],
            np.flatnonzero(is_match),
            caption_match[is_match],
            ngrams.n_unique[self.captions],
            ngrams.n_unique[self.references],
        )


@dataclass(frozen=True)
class SharedNGrams:
    """N-grams of one length in captions and references, and their matches within images."""

    caption_index: Indices  # caption of each n-gram of captions
    caption_count: Indices
    caption_document_frequency: Indices  # number of images with the n-gram in a reference
    reference_index: Indices  # reference of each n-gram of references
    reference_count: Indices
    reference_document_frequency: Indices
    shared_reference: Indices  # index of each match in the n-grams of references
    shared_caption: Indices  # index of each match in the n-grams of captions
    caption_unique: Indices  # number of unique n-grams of each caption
    reference_unique: Indices


def _select(ngrams: NGrams, indices: Indices, n_sentences: int) -> tuple[Indices, Indices]:
    """The rows of the n-grams of these sentences, and for each row the position of its sentence in `indices`."""
    position = np.full(n_sentences, -1, dtype=_INDEX_DTYPE)
    position[indices] = np.arange(len(indices), dtype=_INDEX_DTYPE)
    position_of_row = position[ngrams.sentence]
    selected = np.flatnonzero(position_of_row >= 0)
    return selected, position_of_row[selected]


def _is_run_start(values: Indices) -> NDArray[np.bool_]:
    """Whether each value differs from the previous one; true for the first."""
    is_start = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=is_start[1:])
    return is_start
