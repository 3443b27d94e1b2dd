"""A protocol: how captions are split, how often, and how groups are balanced, from one call to the next alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.corpus import Corpus
from portrayal.metrics.shared.classifier.linear import Array, Dealt, Guesser, Guesses, sharpened, sharpness
from portrayal.metrics.shared.classifier.neural import NeuralGuesser
from portrayal.metrics.shared.classifier.splits import (
    Split,
    balanced_sample,
    by_fold,
    common_folds,
    leak_safe_folds,
    like_paper_split,
    paper_split,
    without_repeats,
)
from portrayal.models.text_classifiers.tasks import Task

PUBLISHED = ("paper", "paper-unseen")  # splits that draw a test set; the others test every caption once
BY_IMAGE = "images"  # a split for what repeats by its nature: images go to folds by name, whatever they share
_CALIBRATION_FOLDS = 5
_APART = 1_000_003  # between the seeds of guessers that one seed of the protocol asks for

# For each seed the captions that are read: one corpus, or for the published LIC of people one for each position.
Readings = Sequence[Sequence[Corpus]]


@dataclass(frozen=True)
class Protocol:
    split: str
    balance: str
    seeds: tuple[int, ...]
    folds: int
    guesser: Guesser | NeuralGuesser

    @property
    def published(self) -> bool:
        return self.split in PUBLISHED

    @property
    def clusters(self) -> str:
        """What is drawn again by the bootstrap: captions that share a text are tested together by leak-safe folds."""
        return "image" if self.published or self.split == BY_IMAGE else "text"

    def splits(self, corpus: Corpus, seed: int) -> list[Split]:
        """What is learnt and tested with one seed."""
        if self.published:
            return [self._tested(corpus, _paper_split(corpus.group.tobytes(), seed))]
        return self._folds(corpus, corpus.group, seed)

    def guess(self, readings: Readings) -> list[list[Guesses]]:
        """Guesses by seed and corpus."""
        found = self._guess(readings, self._learnt)
        if self.split != "paper-unseen":
            return found
        return [
            [self._unseen_only(one, seed) for one in some]
            for seed, some in zip(self.seeds, found, strict=True)
        ]

    def tasks(self, readings: Readings) -> list[Task]:
        """What a neural guesser will be asked to learn from these."""
        if not isinstance(self.guesser, NeuralGuesser):
            return []
        asked = self._asked(readings, self._learnt)
        return [
            task for corpus, splits, seeds, _ in asked for task in self.guesser.tasks(corpus, splits, seeds)
        ]

    def _learnt(self, corpus: Corpus, seed: int) -> list[Split]:
        """What is learnt with one seed, and all that it could be tested on."""
        if self.published:
            return [_paper_split(corpus.group.tobytes(), seed)]
        return self._folds(corpus, corpus.group, seed)

    def _asked(
        self, readings: Readings, splits_of: Callable[[Corpus, int], list[Split]]
    ) -> list[tuple[Corpus, list[Split], list[int], list[tuple[int, int, int]]]]:
        """What has the same captions is learnt together, since that is faster.

        Corpus, splits, a seed for each of them, and (seed, place, count) of those who asked for them in turn.
        """
        wanted: dict[Corpus, tuple[list[Split], list[int], list[tuple[int, int, int]]]] = {}
        for number, (seed, some) in enumerate(zip(self.seeds, readings, strict=True)):
            for place, corpus in enumerate(some):
                splits = splits_of(corpus, seed)
                all_splits, seeds, who = wanted.setdefault(corpus, ([], [], []))
                seeds += [seed + _APART * (place * len(splits) + part) for part in range(len(splits))]
                all_splits += splits
                who.append((number, place, len(splits)))
        return [(corpus, *asked) for corpus, asked in wanted.items()]

    def _guess(
        self, readings: Readings, splits_of: Callable[[Corpus, int], list[Split]], rough: bool = False
    ) -> list[list[Guesses]]:
        made: dict[tuple[int, int], Guesses] = {}
        for corpus, splits, seeds, who in self._asked(readings, splits_of):
            together = self.guesser.guess(corpus, splits, seeds, rough)
            first = 0
            for number, place, count in who:
                made[number, place] = together.of_fits(first, count)
                first += count
        return [[made[number, place] for place in range(len(some))] for number, some in enumerate(readings)]

    @staticmethod
    def _unseen_only(guesses: Guesses, seed: int) -> Guesses:
        """Of the captions whose text was not learnt."""
        corpus = guesses.corpus
        split = _paper_split(corpus.group.tobytes(), seed)
        return guesses.only(~np.isin(corpus.design.row[guesses.test], corpus.design.row[split.train]))

    def chance(self, readings: Readings, seed: int, dealings: int) -> Array:
        """The groups' mean scores when labels are dealt at random: (dealings, groups), 0 to 1.

        They go through the part of the guesses that `compared` names.
        """
        parts = [
            self.guesser.chance(
                readings[number][place], self._dealer(readings[number][place], seed, number), dealings
            )
            for number, place in self.compared(readings)
        ]
        return np.asarray(np.mean(parts, axis=0))

    def compared(self, readings: Readings) -> list[tuple[int, int]]:
        """Which guesses (by seed and corpus) are held against chance, which would take too long for all of them.

        The first repeat of folds; of a published split every seed, with one of the corpora in turn.
        """
        if not self.published:
            return [(0, 0)]
        return [(number, number % len(some)) for number, some in enumerate(readings)]

    @property
    def calibrates(self) -> bool:
        """Whether there is anything to say how sure a guess should be."""
        return not (self.published and isinstance(self.guesser, NeuralGuesser)) or len(self.seeds) > 1

    def calibrated(self, guesses: Sequence[Sequence[Guesses]]) -> list[list[tuple[Array, Array]]]:
        """Probabilities that are as sure as they are right, by what other captions say of how sure to be.

        And by what the log odds of each caption were multiplied.
        """
        if not self.published:
            return [[self._calibrated_by_fold(one) for one in some] for some in guesses]
        if isinstance(self.guesser, NeuralGuesser):
            return _calibrated_by_seed(guesses)
        readings = [[one.corpus for one in some] for some in guesses]
        held_out = self._guess(readings, self._learnt_folds, rough=True)
        return [
            [
                _sharpened(one, np.full(1, sharpness(other.likely, other.group)), np.zeros_like(one.fit))
                for one, other in zip(*pair, strict=True)
            ]
            for pair in zip(guesses, held_out, strict=True)
        ]

    @staticmethod
    def _calibrated_by_fold(one: Guesses) -> tuple[Array, Array]:
        """Each fold by how sure the guesses of the other folds should have been."""
        factors = np.ones(one.fits)
        for fold in range(len(factors)):
            others = one.fit != fold
            factors[fold] = sharpness(one.likely[others], one.group[others]) if others.any() else 1.0
        return _sharpened(one, factors, one.fit)

    def _learnt_folds(self, corpus: Corpus, seed: int) -> list[Split]:
        """The part that is learnt, split as the whole is: with equal captions on both sides, or without."""
        (split,) = self.splits(corpus, seed)
        if self.split == "paper":
            order = np.random.default_rng([seed, 2]).permutation(len(split.train))
            fold = order % _CALIBRATION_FOLDS
        else:
            fold = leak_safe_folds(corpus.design.row[split.train].tolist(), _CALIBRATION_FOLDS, seed)
        return [Split(split.train[one.train], split.train[one.test]) for one in by_fold(fold)]

    def _tested(self, corpus: Corpus, split: Split) -> Split:
        if self.split == "paper":
            return split
        text = corpus.design.row
        return Split(split.train, split.test[~np.isin(text[split.test], text[split.train])])

    def _folds(self, corpus: Corpus, group: NDArray[np.int64], seed: int) -> list[Split]:
        sample = np.arange(len(group))
        if self.balance == "subsample":
            sample = balanced_sample(group, np.random.default_rng([seed, 1]))
        if self.split == BY_IMAGE:
            made = by_fold(common_folds([corpus.images[place] for place in sample], self.folds, seed))
        elif self.split == "common":
            fold = common_folds([corpus.images[place] for place in sample], self.folds, seed)
            made = without_repeats(by_fold(fold), corpus.design.row[sample])
        else:
            made = by_fold(leak_safe_folds([corpus.words[place] for place in sample], self.folds, seed))
        return [Split(sample[one.train], sample[one.test]) for one in made]

    def _dealer(self, corpus: Corpus, seed: int, number: int) -> Callable[[int], Dealt]:
        """Deals labels at random: the same ones to every corpus and seed of one dealing."""
        fixed = None
        if not self.published and self.balance == "weights":  # folds that do not look at labels
            fixed = self._folds(corpus, corpus.group, self.seeds[number])

        def deal(dealing: int) -> Dealt:
            group = np.random.default_rng([seed, dealing]).permutation(corpus.group)
            if fixed is not None:
                return group, fixed
            if self.published:
                drawn = like_paper_split(group, np.random.default_rng([seed, dealing, 1 + number]))
                return group, [self._tested(corpus, drawn)]
            return group, self._folds(corpus, group, self.seeds[number])

        return deal


def _calibrated_by_seed(guesses: Sequence[Sequence[Guesses]]) -> list[list[tuple[Array, Array]]]:
    """Each seed by how sure the guesses of the other seeds should have been: to hold parts back would mean to train
    many times more."""
    made: list[list[tuple[Array, Array]]] = []
    for number, some in enumerate(guesses):
        others = [one for place, part in enumerate(guesses) for one in part if place != number]
        factor = np.ones(1)
        if others:
            likely = np.concatenate([one.likely for one in others])
            factor[:] = sharpness(likely, np.concatenate([one.group for one in others]))
        made.append([_sharpened(one, factor, np.zeros_like(one.fit)) for one in some])
    return made


def _sharpened(one: Guesses, factors: Array, which: NDArray[np.int64]) -> tuple[Array, Array]:
    return sharpened(one.likely, factors[which]), factors[which]


@lru_cache(maxsize=64)  # several numbers are made of the same splits
def _paper_split(group: bytes, seed: int) -> Split:
    return paper_split(np.frombuffer(group, dtype=np.int64).tolist(), seed)
