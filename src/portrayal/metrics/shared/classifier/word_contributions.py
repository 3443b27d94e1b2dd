"""Which words give the group away: what each adds to the guesser's log odds, exactly.

A guess is a sum over words and pairs of neighbouring words. A word's part is its own weight and half of that of every
pair it stands in, so that the parts of a caption add up to its log odds, less what is there before the first word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import stdtr, stdtrit

from portrayal.metrics.shared.classifier.corpus import Design, features_of
from portrayal.metrics.shared.classifier.linear import Array, Guesses
from portrayal.stats import LEVEL


@dataclass(frozen=True)
class Parts:
    """Every place where a word of a text takes part in a feature."""

    words: tuple[str, ...]  # all there are, sorted
    text: NDArray[np.int64]
    word: NDArray[np.int64]
    feature: NDArray[np.int64]
    share: Array

    @classmethod
    def of(cls, design: Design) -> Parts:
        words = tuple(sorted({word for text in design.texts for word in text}))
        place = {word: number for number, word in enumerate(words)}
        column = {feature: number for number, feature in enumerate(design.features)}
        rows = [
            (number, place[word], column[feature], 1 / len(feature))
            for number, text in enumerate(design.texts)
            for feature in features_of(text)
            if feature in column
            for word in feature
        ]
        text, word, feature, share = zip(*rows, strict=True) if rows else ((), (), (), ())
        whole = np.int64
        return cls(
            words,
            np.array(text, whole),
            np.array(word, whole),
            np.array(feature, whole),
            np.array(share, float),
        )

    @cached_property
    def said(self) -> sparse.csr_array:
        """(texts, words): 1 where a text has the word among its features."""
        size = (int(self.text.max(initial=-1)) + 1, len(self.words))
        made = sparse.csr_array((np.ones(len(self.text)), (self.text, self.word)), shape=size)
        made.data[:] = 1.0
        return made

    def of_texts(self, often: Array, weights: Array) -> Array:
        """Sums of each word's parts over texts, each counted so often: (texts,), (features,) to (words,)."""
        parts = self.share * weights[self.feature] * often[self.text]
        return np.bincount(self.word, weights=parts, minlength=len(self.words)).astype(np.float64)

    def averaging(self, often: Array) -> sparse.csr_array:
        """(words, features): multiplies weights into each word's mean part in texts counted so often."""
        entries = (self.share * often[self.text], (self.word, self.feature))
        shape = (len(self.words), int(self.feature.max(initial=-1)) + 1)
        summed = sparse.csr_array(entries, shape=shape)
        return sparse.csr_array(summed.multiply(1 / np.maximum(self.counts(often), 1)[:, None]))

    def counts(self, often: Array) -> Array:
        """In how many captions each word stands."""
        return np.asarray(self.said.T @ often[: self.said.shape[0]])


_parts = lru_cache(maxsize=2)(Parts.of)  # the same for every group


@dataclass(frozen=True)
class Contribution:
    """A word's mean part in guessing one group, over the tested captions of that group which have the word."""

    word: str
    value: float
    captions: int
    std_seed: float | None
    se: float | None
    low: float | None
    high: float | None
    p: float | None


def contributions(guesses: Sequence[Guesses], group: int, least: int) -> list[Contribution]:
    """Of every word that stands in `least` captions or more of any group, by the guesses of each repeat.

    Where a repeat has folds, each leaves a part of the captions out, so that how far the folds' weights lie apart says
    how far other captions would move them (delete-a-group jackknife). It is not known for a split without folds.
    """
    design = guesses[0].corpus.design
    parts = _parts(design)
    texts = len(design.texts)
    sums = np.zeros((len(guesses), len(parts.words)))
    counts = np.zeros((len(guesses), len(parts.words)))
    errors = []
    for number, one in enumerate(guesses):
        towards = one.directions()[:, :, group]
        row = design.row[one.test]
        mine = one.group == group
        for fit in range(towards.shape[1]):
            often = np.bincount(row[mine & (one.fit == fit)], minlength=texts).astype(np.float64)
            sums[number] += parts.of_texts(often, towards[:, fit])
            counts[number] += parts.counts(often)
        folds = towards.shape[1]
        if folds > 1:
            of_group = np.bincount(row[mine], minlength=texts).astype(np.float64)
            averaging = parts.averaging(of_group)
            by_fold = averaging @ towards[: averaging.shape[1]]
            errors.append((folds - 1) ** 2 / folds * by_fold.var(axis=1, ddof=1))
    everywhere = parts.counts(design.times)
    found = []
    for place in np.flatnonzero((everywhere >= least) & (counts > 0).all(axis=0)):
        means = sums[:, place] / counts[:, place]
        value = float(means.mean())
        std = float(means.std(ddof=1)) if len(means) > 1 else None
        se = float(np.sqrt(np.mean([error[place] for error in errors]))) if errors else None
        captions = round(float(counts[:, place].mean()))
        found.append(
            Contribution(
                parts.words[place],
                value,
                captions,
                std,
                se,
                *student_interval(value, se, guesses[0].fits - 1),
            )
        )
    return found


def student_interval(
    value: float, se: float | None, freedom: int
) -> tuple[float | None, float | None, float | None]:
    """Low, high and p by Student's t."""
    if not se or freedom < 1:
        return None, None, None
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * se
    return value - half, value + half, float(2 * stdtr(freedom, -abs(value) / se))


def parts_of_caption(guesses: Guesses, number: int, towards: Array) -> list[tuple[str, float]]:
    """The words of one tested caption in order, each with what it adds for the true group.

    A word that is said twice is there once for the guesser; each time shows an equal part. `towards` are the guesses'
    directions.
    """
    corpus = guesses.corpus
    words = corpus.words[guesses.test[number]]
    weights = towards[:, guesses.fit[number], guesses.group[number]]
    columns = corpus.design.column
    part = dict.fromkeys(words, 0.0)
    for feature in features_of(words):
        if feature in columns:
            for word in feature:
                part[word] += weights[columns[feature]] / len(feature)
    return [(word, part[word] / words.count(word)) for word in words]
