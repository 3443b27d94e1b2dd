"""The classifier's input: one caption per image, with the group of the person shown, as bags of words and
bigrams.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Words = tuple[str, ...]
_MIN_DF = 2  # document frequency; rarer words and bigrams identify a caption, not a group


@dataclass(frozen=True, eq=False)  # compared by identity: cached values belong to one object
class Corpus:
    """One caption per image. `words` are the caption's tokens after masking."""

    images: tuple[str, ...]
    group: NDArray[np.int64]
    captions: tuple[str, ...]
    words: tuple[Words, ...]

    def subset(self, indices: Sequence[int] | NDArray[np.int64]) -> Corpus:
        return Corpus(
            tuple(self.images[index] for index in indices),
            self.group[np.asarray(indices, dtype=np.int64)],
            tuple(self.captions[index] for index in indices),
            tuple(self.words[index] for index in indices),
        )

    @cached_property
    def design(self) -> Design:
        return Design.of(self.words)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Masked text of each caption; equal for captions that the classifier cannot tell apart."""
        written = [" ".join(text) for text in self.design.texts]
        return tuple(written[row] for row in self.design.row)


@dataclass(frozen=True, eq=False)
class LabelSets(Corpus):
    """A corpus whose input is the labels of an image instead of a caption; `words` are the labels with a
    share above 0.
    """

    labels: tuple[str, ...]
    shares: NDArray[np.float64]  # (images, labels), from 0 to 1

    @classmethod
    def of(
        cls,
        images: Sequence[str],
        group: NDArray[np.int64],
        labels: Sequence[str],
        shares: NDArray[np.float64],
    ) -> LabelSets:
        words = tuple(tuple(labels[column] for column in np.flatnonzero(row).tolist()) for row in shares)
        return cls(tuple(images), group, ("",) * len(images), words, tuple(labels), shares)

    def subset(self, indices: Sequence[int] | NDArray[np.int64]) -> LabelSets:
        base = super().subset(indices)
        shares = self.shares[np.asarray(indices, dtype=np.int64)]
        return LabelSets(base.images, base.group, base.captions, base.words, self.labels, shares)

    @cached_property
    def design(self) -> Design:
        return Design.of_shares(self.shares, self.labels)


@dataclass(frozen=True, eq=False)
class Design:
    """Binary unigram and bigram features: one row per distinct text, one column per feature."""

    texts: tuple[Words, ...]
    row: NDArray[np.int64]  # index of each caption's text in `texts`
    features: tuple[Words, ...]  # unigrams and bigrams
    matrix: sparse.csr_array

    @classmethod
    def of(cls, captions: Sequence[Words]) -> Design:
        """Build the design of tokenized captions.

        Texts and words are in alphabetical order, so that the order of captions does not matter.

        >>> Design.of([("a", "dog"), ("a", "cat"), ("a", "dog")]).features
        (('a',), ('dog',), ('a', 'dog'))
        """
        texts = tuple(sorted(set(captions)))
        text_index = {text: index for index, text in enumerate(texts)}
        row = np.array([text_index[caption] for caption in captions], dtype=np.int64)
        text_counts = np.bincount(row, minlength=len(texts))
        words = sorted({word for text in texts for word in text})
        code = {word: index for index, word in enumerate(words)}
        codes = np.array([code[word] for text in texts for word in text], dtype=np.int64)
        text_of_code = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        # The code of a word is its index. The code of a bigram follows those of all words: a block per first
        # word.
        same_text = text_of_code[1:] == text_of_code[:-1]
        bigrams = len(words) + (codes[:-1] * len(words) + codes[1:])[same_text]
        feature_rows = np.concatenate([text_of_code, text_of_code[1:][same_text]])
        features, column = np.unique(np.concatenate([codes, bigrams]), return_inverse=True)
        matrix = sparse.csr_array(
            (np.ones(len(column)), (feature_rows, column)), shape=(len(texts), len(features))
        )
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        frequent = np.flatnonzero(matrix.T @ text_counts >= _MIN_DF)
        names = [
            (words[code_of_feature],)
            if code_of_feature < len(words)
            else (
                words[(code_of_feature - len(words)) // len(words)],
                words[(code_of_feature - len(words)) % len(words)],
            )
            for code_of_feature in features[frequent].tolist()
        ]
        return cls(texts, row, tuple(names), sparse.csr_array(matrix.tocsc()[:, frequent].tocsr()))

    @classmethod
    def of_shares(cls, shares: NDArray[np.float64], labels: Sequence[str]) -> Design:
        """Build the design of label shares: one row per distinct combination of shares.

        >>> design = Design.of_shares(np.array([[1, 0.5, 0], [1, 0.5, 0], [0, 1, 1]]), ["cup", "dog", "kite"])
        >>> design.features, design.matrix.toarray().tolist()
        ((('cup',), ('dog',)), [[0.0, 1.0], [1.0, 0.5]])
        """
        distinct, row = np.unique(shares, axis=0, return_inverse=True)
        texts = tuple(
            tuple(labels[column] for column in np.flatnonzero(combination).tolist())
            for combination in distinct
        )
        frequent = np.flatnonzero(shares.sum(axis=0) >= _MIN_DF)
        features = tuple((labels[column],) for column in frequent.tolist())
        return cls(texts, row.reshape(-1), features, sparse.csr_array(distinct[:, frequent]))

    @cached_property
    def column_of(self) -> dict[Words, int]:
        return {feature: column for column, feature in enumerate(self.features)}

    @cached_property
    def text_counts(self) -> NDArray[np.float64]:
        """Number of captions with each text."""
        return np.bincount(self.row, minlength=len(self.texts)).astype(np.float64)

    def frequent_features(self, text_counts: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which features a classifier may use, given the counts of its training texts: (texts, fits) to
        (features, fits).
        """
        return np.asarray(self.matrix.T @ text_counts >= _MIN_DF)


def unigrams_and_bigrams(words: Words) -> list[Words]:
    """Return the distinct unigrams and bigrams of a caption."""
    return list(dict.fromkeys([*((word,) for word in words), *pairwise(words)]))
