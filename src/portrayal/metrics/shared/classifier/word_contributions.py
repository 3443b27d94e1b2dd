"""Exact contribution of each word to the log odds of the linear classifier.

The log odds are a sum over unigrams and bigrams. A word's contribution is its own weight and half the weight
of each bigram it is in, so that the contributions of a caption add up to its log odds minus the intercept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import stdtr, stdtrit

from portrayal.metrics.shared.classifier.corpus import Design, unigrams_and_bigrams
from portrayal.metrics.shared.classifier.linear_classifier import Array, Predictions
from portrayal.stats import LEVEL


@dataclass(frozen=True)
class FeatureShares:
    """The shares of words in features: one entry per text, feature and word."""

    words: tuple[str, ...]  # sorted
    text: NDArray[np.int64]
    word: NDArray[np.int64]
    feature: NDArray[np.int64]
    share: Array

    @classmethod
    def of(cls, design: Design) -> FeatureShares:
        words = tuple(sorted({word for text in design.texts for word in text}))
        word_index = {word: index for index, word in enumerate(words)}
        column = {feature: index for index, feature in enumerate(design.features)}
        rows = [
            (index, word_index[word], column[feature], 1 / len(feature))
            for index, text in enumerate(design.texts)
            for feature in unigrams_and_bigrams(text)
            if feature in column
            for word in feature
        ]
        text, word, feature, share = zip(*rows, strict=True) if rows else ((), (), (), ())
        integer = np.int64
        return cls(
            words,
            np.array(text, integer),
            np.array(word, integer),
            np.array(feature, integer),
            np.array(share, float),
        )

    @cached_property
    def presence(self) -> sparse.csr_array:
        """(texts, words): 1 where a text has the word in one of its features."""
        size = (int(self.text.max(initial=-1)) + 1, len(self.words))
        matrix = sparse.csr_array((np.ones(len(self.text)), (self.text, self.word)), shape=size)
        matrix.data[:] = 1.0
        return matrix

    def of_texts(self, text_counts: Array, weights: Array) -> Array:
        """Sum each word's contributions over weighted texts: (texts,), (features,) to (words,)."""
        contributions = self.share * weights[self.feature] * text_counts[self.text]
        return np.bincount(self.word, weights=contributions, minlength=len(self.words)).astype(np.float64)

    def averaging(self, text_counts: Array) -> sparse.csr_array:
        """Matrix (words, features) that turns weights into each word's mean contribution over weighted texts."""
        entries = (self.share * text_counts[self.text], (self.word, self.feature))
        shape = (len(self.words), int(self.feature.max(initial=-1)) + 1)
        summed = sparse.csr_array(entries, shape=shape)
        return sparse.csr_array(summed.multiply(1 / np.maximum(self.counts(text_counts), 1)[:, None]))

    def counts(self, text_counts: Array) -> Array:
        """Number of captions with each word."""
        return np.asarray(self.presence.T @ text_counts[: self.presence.shape[0]])


_feature_shares = lru_cache(maxsize=2)(FeatureShares.of)  # the same for every group


@dataclass(frozen=True)
class WordContribution:
    """A word's mean contribution to one group, over the test captions of that group with the word."""

    word: str
    value: float
    captions: int
    std_seed: float | None
    se: float | None
    low: float | None
    high: float | None
    p: float | None


def word_contributions(
    predictions: Sequence[Predictions], group: int, min_captions: int
) -> list[WordContribution]:
    """Return the contributions of all words that are in `min_captions` captions or more and in each group and
    repeat.

    Where a repeat has folds, the spread of the folds' weights estimates the standard error (delete-a-group
    jackknife). A split without folds has none.
    """
    design = predictions[0].corpus.design
    shares = _feature_shares(design)
    texts = len(design.texts)
    sums = np.zeros((len(predictions), len(shares.words)))
    counts = np.zeros((len(predictions), len(shares.words)))
    errors = []
    for repeat, pred in enumerate(predictions):
        towards = pred.log_odds_weights()[:, :, group]
        row = design.row[pred.test]
        in_group = pred.group == group
        for fit in range(towards.shape[1]):
            text_counts = np.bincount(row[in_group & (pred.fit_index == fit)], minlength=texts).astype(
                np.float64
            )
            sums[repeat] += shares.of_texts(text_counts, towards[:, fit])
            counts[repeat] += shares.counts(text_counts)
        folds = towards.shape[1]
        if folds > 1:
            of_group = np.bincount(row[in_group], minlength=texts).astype(np.float64)
            averaging = shares.averaging(of_group)
            by_fold = averaging @ towards[: averaging.shape[1]]
            errors.append((folds - 1) ** 2 / folds * by_fold.var(axis=1, ddof=1))
    everywhere = shares.counts(design.text_counts)
    contributions = []
    for word in np.flatnonzero((everywhere >= min_captions) & (counts > 0).all(axis=0)):
        means = sums[:, word] / counts[:, word]
        value = float(means.mean())
        std = float(means.std(ddof=1)) if len(means) > 1 else None
        se = float(np.sqrt(np.mean([error[word] for error in errors]))) if errors else None
        captions = round(float(counts[:, word].mean()))
        contributions.append(
            WordContribution(
                shares.words[word],
                value,
                captions,
                std,
                se,
                *student_interval(value, se, predictions[0].n_fits - 1),
            )
        )
    return contributions


def student_interval(
    value: float, se: float | None, freedom: int
) -> tuple[float | None, float | None, float | None]:
    """Lower bound, upper bound and p value by Student's t."""
    if not se or freedom < 1:
        return None, None, None
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * se
    return value - half, value + half, float(2 * stdtr(freedom, -abs(value) / se))


def caption_contributions(pred: Predictions, index: int, towards: Array) -> list[tuple[str, float]]:
    """Return the words of a test caption in order, with their contributions to the true group.

    A repeated word is one feature; each occurrence gets an equal part. `towards` are the `log_odds_weights`
    of the predictions.
    """
    corpus = pred.corpus
    words = corpus.words[pred.test[index]]
    weights = towards[:, pred.fit_index[index], pred.group[index]]
    columns = corpus.design.column_of
    contribution_of = dict.fromkeys(words, 0.0)
    for feature in unigrams_and_bigrams(words):
        if feature in columns:
            for word in feature:
                contribution_of[word] += weights[columns[feature]] / len(feature)
    return [(word, contribution_of[word] / words.count(word)) for word in words]
