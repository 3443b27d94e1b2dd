"""Guessing the group of the person shown from captions that the guesser did not learn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from portrayal.engine import available_cores
from portrayal.errors import Undefined
from portrayal.metrics.shared.classifier.corpus import Corpus
from portrayal.metrics.shared.classifier.splits import Split
from portrayal.models.text_classifiers.linear import MANY, TOLERANCE, LogisticRegressions

Array = NDArray[np.float64]
ROUGHLY = 1e-3  # how exactly a guesser is fitted whose guesses are not shown: LIC moves by less than 0.01
By = Literal["score", "hits"]  # how sure a right guess is, or whether it is right
Dealt = tuple[
    NDArray[np.int64], Sequence[Split]
]  # labels dealt at random, and what to learn and test with them
_AT_ONCE = 50  # fits that are solved side by side
_TIE = TOLERANCE  # probabilities so close are equal, as far as a fit can tell
_SHARPEST = 20.0  # by which a calibrated guesser's log odds are multiplied at most


@dataclass(frozen=True)
class Guesser:
    """How a guesser learns: logistic regression on the words and pairs of words of a caption, or on labels."""

    groups: int
    strength: float = 0.1
    weighted: bool = True  # every group counts alike, however many captions it has in the part that is learnt
    by: By = "score"  # what its guesses are judged by

    def guess(
        self,
        corpus: Corpus,
        splits: Sequence[Split],
        seeds: Sequence[int] = (),  # noqa: ARG002
        rough: bool = False,
    ) -> Guesses:
        """Learn and test every split; `rough` is enough to know how sure a guesser should be.

        The seeds are for guessers that begin by chance, which this one does not.
        """
        solver = self._solver(corpus, len(splits), rough)
        labels = [corpus.group] * len(splits)
        tolerance = ROUGHLY if rough else TOLERANCE
        weights = np.concatenate(list(self._fits(corpus, solver, splits, labels, tolerance)), axis=1)
        test = np.concatenate([split.test for split in splits])
        fit = np.repeat(np.arange(len(splits)), [len(split.test) for split in splits])
        likely = solver.probabilities(weights)[corpus.design.row[test], fit]
        return Guesses(corpus, test, fit, likely, len(splits), weights, by=self.by)

    def chance(self, corpus: Corpus, deal: Callable[[int], Dealt], dealings: int) -> Array:
        """Mean score of each group when labels are dealt at random: (dealings, groups), 0 to 1."""
        size = len(deal(0)[1])
        solver = self._solver(corpus, dealings * size, rough=True)
        at_once = max(1, _AT_ONCE // size)

        def some(start: int) -> Array:
            dealt = [deal(number) for number in range(start, min(start + at_once, dealings))]
            splits = [split for _, parts in dealt for split in parts]
            labels = [group for group, parts in dealt for _ in parts]
            try:
                fits = np.concatenate(list(self._fits(corpus, solver, splits, labels, ROUGHLY)), axis=1)
            except Undefined:  # a group so small that chance leaves a part without it
                return np.full((len(dealt), self.groups), np.nan)
            likely = solver.probabilities(fits)
            total, count = np.zeros((2, len(dealt), self.groups))
            for number, (split, group) in enumerate(zip(splits, labels, strict=True)):
                true = group[split.test]
                score = _JUDGES[self.by](likely[corpus.design.row[split.test], number], true)
                total[number // size] += np.bincount(true, weights=score, minlength=self.groups)
                count[number // size] += np.bincount(true, minlength=self.groups)
            return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

        with ThreadPoolExecutor(available_cores()) as threads:
            return np.concatenate(list(threads.map(some, range(0, dealings, at_once))))

    def _solver(self, corpus: Corpus, fits: int, rough: bool = False) -> LogisticRegressions:
        return _solver(corpus, self.strength, fits >= MANY, rough)

    def _fits(
        self,
        corpus: Corpus,
        solver: LogisticRegressions,
        splits: Sequence[Split],
        labels: Sequence[NDArray[np.int64]],
        tolerance: float,
    ) -> Iterator[Array]:
        """The weights of every fit, some at a time."""
        for start in range(0, len(splits), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            counts, _, allowed = self._counts(corpus, splits[some], labels[some])
            yield solver.fit(counts, allowed, tolerance)

    def learnt(
        self, corpus: Corpus, splits: Sequence[Split]
    ) -> tuple[LogisticRegressions, Array, Array, NDArray[np.bool_]]:
        """What the fits of these splits learnt from: texts, how much each counts, a caption's weight, features."""
        solver = self._solver(corpus, len(splits))
        return solver, *self._counts(corpus, splits, [corpus.group] * len(splits))

    def _counts(
        self, corpus: Corpus, splits: Sequence[Split], labels: Sequence[NDArray[np.int64]]
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """(groups, texts, fits), (groups, fits), (features, fits)."""
        design = corpus.design
        texts = len(design.texts)
        counts = np.empty((self.groups, texts, len(splits)))
        for place, (split, group) in enumerate(zip(splits, labels, strict=True)):
            cells = group[split.train] * texts + design.row[split.train]
            counts[:, :, place] = np.bincount(cells, minlength=self.groups * texts).reshape(-1, texts)
        learnt = counts.sum(axis=1)
        if not learnt.all():
            raise Undefined("a part that is learnt has no caption of one of the groups")
        allowed = design.common_enough(counts.sum(axis=0))
        weight = learnt.sum(axis=0) / (self.groups * learnt) if self.weighted else np.ones_like(learnt)
        counts *= weight[:, None, :]
        return counts, weight, allowed


@lru_cache(maxsize=8)
def _solver(corpus: Corpus, strength: float, many: bool, rough: bool) -> LogisticRegressions:
    return LogisticRegressions(corpus.design.matrix, strength, corpus.design.times, many, rough)


@dataclass(frozen=True)
class Guesses:
    """What was guessed of the tested captions, each by a fit that had not learnt from it."""

    corpus: Corpus
    test: NDArray[np.int64]  # places in the corpus
    fit: NDArray[np.int64]  # which fit guessed each of them
    likely: Array  # (tested, groups)
    fits: int
    weights: Array | None = None  # of a linear guesser: (features + 1, fits, outputs)
    # Of a guesser that was explained: what each word of each tested caption adds for the true group.
    parts: tuple[Array, ...] | None = None
    by: By = "score"  # what `score` is

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """The true one."""
        return self.corpus.group[self.test]

    @cached_property
    def guessed(self) -> NDArray[np.int64]:
        return np.asarray(self.likely.argmax(axis=1), dtype=np.int64)

    @cached_property
    def score(self) -> Array:
        return _JUDGES[self.by](self.likely, self.group)

    def only(self, which: NDArray[np.bool_]) -> Guesses:
        """Some of the tested captions."""
        parts = (
            None
            if self.parts is None
            else tuple(p for p, kept in zip(self.parts, which, strict=True) if kept)
        )
        return replace(
            self, test=self.test[which], fit=self.fit[which], likely=self.likely[which], parts=parts
        )

    def of_fits(self, first: int, count: int) -> Guesses:
        """What some of the fits guessed."""
        mine = self.only((self.fit >= first) & (self.fit < first + count))
        weights = None if self.weights is None else self.weights[:, first : first + count]
        return replace(mine, fit=mine.fit - first, fits=count, weights=weights)

    def directions(self) -> Array:
        """What each feature adds to the log odds of each group, against the mean of the others.

        (features, fits, groups); for two groups the log odds themselves.
        """
        assert self.weights is not None
        weights = self.weights[:-1]
        if weights.shape[2] == 1:
            return np.concatenate([-weights, weights], axis=2)
        groups = weights.shape[2]
        made: Array = (weights - weights.mean(axis=2, keepdims=True)) * groups / (groups - 1)
        return made


def scores(likely: Array, group: NDArray[np.int64]) -> Array:
    """How sure the guesser is of the true group, where that is the one it guesses; else 0."""
    sure = likely[np.arange(len(group)), group]
    made: Array = np.where(likely.argmax(axis=1) == group, sure, 0.0)
    return made


def hits(likely: Array, group: NDArray[np.int64]) -> Array:
    """1 where the true group is guessed, else 0. Of groups that are equally likely each is guessed by its part, so that
    a guesser that knows nothing is right as often whichever group comes first."""
    top = likely >= likely.max(axis=1, keepdims=True) - _TIE
    made: Array = top[np.arange(len(group)), group] / top.sum(axis=1)
    return made


_JUDGES: dict[By, Callable[[Array, NDArray[np.int64]], Array]] = {"score": scores, "hits": hits}


def sharpness(likely: Array, group: NDArray[np.int64]) -> float:
    """By what to multiply log odds so that they are as sure as they are right, every group counting alike.

    Below 1 where the guesser is too sure of itself (temperature scaling: Guo, Pleiss, Sun and Weinberger 2017).
    """
    logs = np.log(np.clip(likely, 1e-300, None))
    sizes = np.bincount(group, minlength=likely.shape[1])
    weight = 1.0 / (sizes[group] * np.count_nonzero(sizes))
    true = logs[np.arange(len(group)), group]

    low, factor, high = (
        0.0,
        1.0,
        _SHARPEST,
    )  # the surprise is convex: Newton's steps, held inside what is known
    for _ in range(100):
        likely = _sharpened_logs(logs, factor)
        mean = np.sum(likely * logs, axis=1)
        slope = float(weight @ (mean - true))
        bend = float(weight @ (np.sum(likely * logs**2, axis=1) - mean**2))
        low, high = (low, factor) if slope > 0 else (factor, high)
        step = factor - slope / bend if bend > 0 else math.nan
        new = step if low < step < high else (low + high) / 2
        if abs(new - factor) < 1e-9:
            break
        factor = new
    return factor


def _sharpened_logs(logs: Array, factor: Array | float) -> Array:
    raised = logs * np.reshape(factor, (-1, 1))
    made = np.exp(raised - raised.max(axis=1, keepdims=True))
    return np.asarray(made / made.sum(axis=1, keepdims=True))


def sharpened(likely: Array, factor: Array | float) -> Array:
    """The same probabilities with their log odds multiplied by a factor (one, or one for each row)."""
    return _sharpened_logs(np.log(np.clip(likely, 1e-300, None)), factor)
