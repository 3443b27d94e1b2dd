"""Captions as a guesser reads them: one for each image, with the group of the person shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Words = tuple[str, ...]
_RAREST = 2  # a word or pair of words in fewer captions than this tells one caption, not a group


@dataclass(frozen=True, eq=False)  # compared by identity: what is derived from it is cached by it
class Corpus:
    """One caption for each image. `words` is what is left of a caption once the words for the group are hidden."""

    images: tuple[str, ...]
    group: NDArray[np.int64]
    captions: tuple[str, ...]
    words: tuple[Words, ...]

    def only(self, places: Sequence[int] | NDArray[np.int64]) -> Corpus:
        return Corpus(
            tuple(self.images[place] for place in places),
            self.group[np.asarray(places, dtype=np.int64)],
            tuple(self.captions[place] for place in places),
            tuple(self.words[place] for place in places),
        )

    @cached_property
    def design(self) -> Design:
        return Design.of(self.words)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """Equal for captions that a guesser cannot tell apart."""
        written = [" ".join(text) for text in self.design.texts]
        return tuple(written[row] for row in self.design.row)


@dataclass(frozen=True, eq=False)
class LabelSets(Corpus):
    """What is read is not a caption but which labels an image has; `words` are those that it has at all."""

    labels: tuple[str, ...]
    shares: NDArray[np.float64]  # (images, labels), each from 0 to 1

    @classmethod
    def of(
        cls,
        images: Sequence[str],
        group: NDArray[np.int64],
        labels: Sequence[str],
        shares: NDArray[np.float64],
    ) -> LabelSets:
        words = tuple(tuple(labels[place] for place in np.flatnonzero(one).tolist()) for one in shares)
        return cls(tuple(images), group, ("",) * len(images), words, tuple(labels), shares)

    def only(self, places: Sequence[int] | NDArray[np.int64]) -> LabelSets:
        part = super().only(places)
        shares = self.shares[np.asarray(places, dtype=np.int64)]
        return LabelSets(part.images, part.group, part.captions, part.words, self.labels, shares)

    @cached_property
    def design(self) -> Design:
        return Design.of_shares(self.shares, self.labels)


@dataclass(frozen=True, eq=False)
class Design:
    """Words and pairs of neighbouring words, each there or not: a row per distinct caption, a column per feature."""

    texts: tuple[Words, ...]
    row: NDArray[np.int64]  # of each caption: which of the texts it is
    features: tuple[Words, ...]  # of one word or two
    matrix: sparse.csr_array

    @classmethod
    def of(cls, captions: Sequence[Words]) -> Design:
        """Texts and words in alphabetical order, so that the order of captions changes nothing.

        >>> Design.of([("a", "dog"), ("a", "cat"), ("a", "dog")]).features
        (('a',), ('dog',), ('a', 'dog'))
        """
        texts = tuple(sorted(set(captions)))
        place = {text: number for number, text in enumerate(texts)}
        row = np.array([place[caption] for caption in captions], dtype=np.int64)
        times = np.bincount(row, minlength=len(texts))
        words = sorted({word for text in texts for word in text})
        code = {word: number for number, word in enumerate(words)}
        said = np.array([code[word] for text in texts for word in text], dtype=np.int64)
        owner = np.repeat(np.arange(len(texts)), [len(text) for text in texts])
        # A word is its code; a pair is beyond all words: one block for each first word.
        together = owner[1:] == owner[:-1]
        pair = len(words) + (said[:-1] * len(words) + said[1:])[together]
        of_text = np.concatenate([owner, owner[1:][together]])
        features, column = np.unique(np.concatenate([said, pair]), return_inverse=True)
        matrix = sparse.csr_array(
            (np.ones(len(column)), (of_text, column)), shape=(len(texts), len(features))
        )
        matrix.sum_duplicates()
        matrix.data[:] = 1.0
        kept = np.flatnonzero(matrix.T @ times >= _RAREST)
        names = [
            (words[one],)
            if one < len(words)
            else (words[(one - len(words)) // len(words)], words[(one - len(words)) % len(words)])
            for one in features[kept].tolist()
        ]
        return cls(texts, row, tuple(names), sparse.csr_array(matrix.tocsc()[:, kept].tocsr()))

    @classmethod
    def of_shares(cls, shares: NDArray[np.float64], labels: Sequence[str]) -> Design:
        """Labels instead of words, each there by some share: a row per distinct combination of them.

        >>> made = Design.of_shares(np.array([[1, 0.5, 0], [1, 0.5, 0], [0, 1, 1]]), ["cup", "dog", "kite"])
        >>> made.features, made.matrix.toarray().tolist()
        ((('cup',), ('dog',)), [[0.0, 1.0], [1.0, 0.5]])
        """
        distinct, row = np.unique(shares, axis=0, return_inverse=True)
        texts = tuple(tuple(labels[place] for place in np.flatnonzero(one).tolist()) for one in distinct)
        kept = np.flatnonzero(shares.sum(axis=0) >= _RAREST)
        features = tuple((labels[place],) for place in kept.tolist())
        return cls(texts, row.reshape(-1), features, sparse.csr_array(distinct[:, kept]))

    @cached_property
    def column(self) -> dict[Words, int]:
        return {feature: number for number, feature in enumerate(self.features)}

    @cached_property
    def times(self) -> NDArray[np.float64]:
        """How often each text is said."""
        return np.bincount(self.row, minlength=len(self.texts)).astype(np.float64)

    def common_enough(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which features a guesser may use that learns from texts said so often: (texts, fits) to (features, fits)."""
        return np.asarray(self.matrix.T @ times >= _RAREST)


def features_of(words: Words) -> list[Words]:
    """Every word and pair of neighbouring words of a caption, once."""
    return list(dict.fromkeys([*((word,) for word in words), *pairwise(words)]))
