"""The linear classifier: out-of-sample predictions of the group of the person shown, their scores and
calibration.
"""

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
from portrayal.models.text_classifiers.logistic_regression import MANY_FITS, TOLERANCE, LogisticRegressions

Array = NDArray[np.float64]
MAX_C = 1000.0  # beyond this, separable captions make the fit diverge
ROUGH_TOLERANCE = 1e-3  # tolerance where predictions are not shown; LIC moves by less than 0.01
Scoring = Literal["score", "accuracy"]  # confidence of a correct prediction, or whether it is correct
PermutedLabels = tuple[
    NDArray[np.int64], Sequence[Split]
]  # permuted labels, and the splits to train and test with them
_FITS_PER_BATCH = 50  # fits that are solved together
_TIE_TOLERANCE = TOLERANCE  # probabilities this close are ties, given the precision of a fit
_MAX_INVERSE_TEMPERATURE = 20.0  # upper bound when calibrating


@dataclass(frozen=True)
class LinearClassifier:
    """Logistic regression on the unigrams and bigrams of captions, or on labels.

    Parameters
    ----------
    groups
        Number of groups (classes).
    C
        Inverse regularisation strength.
    balanced
        Weight classes inversely to their size in the training set, as `class_weight="balanced"`.
    scoring
        How predictions are scored: LIC score or accuracy.
    """

    groups: int
    C: float = 0.1
    balanced: bool = True
    scoring: Scoring = "score"

    def cross_val_predict(
        self,
        corpus: Corpus,
        splits: Sequence[Split],
        seeds: Sequence[int] = (),  # noqa: ARG002
        rough: bool = False,
    ) -> Predictions:
        """Fit every split and predict its test set; `rough` lowers the precision, which is enough for
        calibration.

        The seeds are for neural classifiers, whose training is random.
        """
        solver = self._solver(corpus, len(splits), rough)
        labels = [corpus.group] * len(splits)
        tolerance = ROUGH_TOLERANCE if rough else TOLERANCE
        weights = np.concatenate(list(self._fit_batches(corpus, solver, splits, labels, tolerance)), axis=1)
        test = np.concatenate([split.test for split in splits])
        fit_index = np.repeat(np.arange(len(splits)), [len(split.test) for split in splits])
        proba = solver.probabilities(weights)[corpus.design.row[test], fit_index]
        return Predictions(corpus, test, fit_index, proba, len(splits), weights, scoring=self.scoring)

    def permutation_scores(
        self, corpus: Corpus, permute: Callable[[int], PermutedLabels], n_permutations: int
    ) -> Array:
        """Mean score of each group under permuted labels: (permutations, groups), from 0 to 1."""
        splits_per_permutation = len(permute(0)[1])
        solver = self._solver(corpus, n_permutations * splits_per_permutation, rough=True)
        at_once = max(1, _FITS_PER_BATCH // splits_per_permutation)

        def scores_from(start: int) -> Array:
            permuted = [permute(number) for number in range(start, min(start + at_once, n_permutations))]
            splits = [split for _, permuted_splits in permuted for split in permuted_splits]
            labels = [group for group, permuted_splits in permuted for _ in permuted_splits]
            try:
                fits = np.concatenate(
                    list(self._fit_batches(corpus, solver, splits, labels, ROUGH_TOLERANCE)), axis=1
                )
            except Undefined:  # a group so small that a random training set lacks it
                return np.full((len(permuted), self.groups), np.nan)
            proba = solver.probabilities(fits)
            total, count = np.zeros((2, len(permuted), self.groups))
            for number, (split, group) in enumerate(zip(splits, labels, strict=True)):
                true = group[split.test]
                score = _SCORERS[self.scoring](proba[corpus.design.row[split.test], number], true)
                total[number // splits_per_permutation] += np.bincount(
                    true, weights=score, minlength=self.groups
                )
                count[number // splits_per_permutation] += np.bincount(true, minlength=self.groups)
            return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

        with ThreadPoolExecutor(available_cores()) as threads:
            return np.concatenate(list(threads.map(scores_from, range(0, n_permutations, at_once))))

    def _solver(self, corpus: Corpus, fits: int, rough: bool = False) -> LogisticRegressions:
        return _solver(corpus, self.C, fits >= MANY_FITS, rough)

    def _fit_batches(
        self,
        corpus: Corpus,
        solver: LogisticRegressions,
        splits: Sequence[Split],
        labels: Sequence[NDArray[np.int64]],
        tolerance: float,
    ) -> Iterator[Array]:
        """Yield the weights of the fits in batches."""
        for start in range(0, len(splits), _FITS_PER_BATCH):
            batch = slice(start, start + _FITS_PER_BATCH)
            counts, _, allowed = self._counts(corpus, splits[batch], labels[batch])
            yield solver.fit(counts, allowed, tolerance)

    def fit_inputs(
        self, corpus: Corpus, splits: Sequence[Split]
    ) -> tuple[LogisticRegressions, Array, Array, NDArray[np.bool_]]:
        """Return what the fits were fitted on: solver, weighted counts of texts, weight of a caption, allowed
        features.
        """
        solver = self._solver(corpus, len(splits))
        return solver, *self._counts(corpus, splits, [corpus.group] * len(splits))

    def _counts(
        self, corpus: Corpus, splits: Sequence[Split], labels: Sequence[NDArray[np.int64]]
    ) -> tuple[Array, Array, NDArray[np.bool_]]:
        """Return weighted text counts (groups, texts, fits), caption weights (groups, fits), features
        (features, fits).
        """
        design = corpus.design
        texts = len(design.texts)
        counts = np.empty((self.groups, texts, len(splits)))
        for fit, (split, group) in enumerate(zip(splits, labels, strict=True)):
            cells = group[split.train] * texts + design.row[split.train]
            counts[:, :, fit] = np.bincount(cells, minlength=self.groups * texts).reshape(-1, texts)
        train_counts = counts.sum(axis=1)
        if not train_counts.all():
            raise Undefined("a training set has no caption of one of the groups")
        allowed = design.frequent_features(counts.sum(axis=0))
        weight = (
            train_counts.sum(axis=0) / (self.groups * train_counts)
            if self.balanced
            else np.ones_like(train_counts)
        )
        counts *= weight[:, None, :]
        return counts, weight, allowed


@lru_cache(maxsize=8)
def _solver(corpus: Corpus, C: float, many: bool, rough: bool) -> LogisticRegressions:
    return LogisticRegressions(corpus.design.matrix, C, corpus.design.text_counts, many, rough)


@dataclass(frozen=True)
class Predictions:
    """Predictions for test captions, each by a fit that was not trained on it."""

    corpus: Corpus
    test: NDArray[np.int64]  # indices in the corpus
    fit_index: NDArray[np.int64]  # fit that predicted each test caption
    proba: Array  # (tested, groups)
    n_fits: int
    weights: Array | None = None  # linear classifier only: (features + 1, fits, outputs)
    # Neural classifier with explanations only: attributions of each test caption's words to the true group.
    attributions: tuple[Array, ...] | None = None
    scoring: Scoring = "score"  # how `score` is computed

    @cached_property
    def group(self) -> NDArray[np.int64]:
        """True group of each test caption."""
        return self.corpus.group[self.test]

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        return np.asarray(self.proba.argmax(axis=1), dtype=np.int64)

    @cached_property
    def score(self) -> Array:
        return _SCORERS[self.scoring](self.proba, self.group)

    def subset(self, mask: NDArray[np.bool_]) -> Predictions:
        """Predictions for some of the test captions."""
        attributions = (
            None
            if self.attributions is None
            else tuple(
                attribution for attribution, selected in zip(self.attributions, mask, strict=True) if selected
            )
        )
        return replace(
            self,
            test=self.test[mask],
            fit_index=self.fit_index[mask],
            proba=self.proba[mask],
            attributions=attributions,
        )

    def for_fits(self, first: int, count: int) -> Predictions:
        """Predictions of some of the fits."""
        selected = self.subset((self.fit_index >= first) & (self.fit_index < first + count))
        weights = None if self.weights is None else self.weights[:, first : first + count]
        return replace(selected, fit_index=selected.fit_index - first, n_fits=count, weights=weights)

    def log_odds_weights(self) -> Array:
        """Contribution of each feature to the log odds of each group against the mean of the other groups.

        Returns (features, fits, groups); for two groups these are the log odds.
        """
        assert self.weights is not None
        weights = self.weights[:-1]
        if weights.shape[2] == 1:
            return np.concatenate([-weights, weights], axis=2)
        groups = weights.shape[2]
        centred: Array = (weights - weights.mean(axis=2, keepdims=True)) * groups / (groups - 1)
        return centred


def lic_scores(proba: Array, group: NDArray[np.int64]) -> Array:
    """LIC score: the probability of the true group where it is the predicted one, else 0."""
    true_proba = proba[np.arange(len(group)), group]
    scores: Array = np.where(proba.argmax(axis=1) == group, true_proba, 0.0)
    return scores


def accuracy_scores(proba: Array, group: NDArray[np.int64]) -> Array:
    """1 where the true group is predicted, else 0; ties count in part, so that an uninformed classifier has
    the same accuracy whichever group comes first.
    """
    tied_best = proba >= proba.max(axis=1, keepdims=True) - _TIE_TOLERANCE
    scores: Array = tied_best[np.arange(len(group)), group] / tied_best.sum(axis=1)
    return scores


_SCORERS: dict[Scoring, Callable[[Array, NDArray[np.int64]], Array]] = {
    "score": lic_scores,
    "accuracy": accuracy_scores,
}


def inverse_temperature(proba: Array, group: NDArray[np.int64]) -> float:
    """Fit the inverse temperature that calibrates probabilities; every group has the same total weight.

    Below 1 for an overconfident classifier (temperature scaling: Guo, Pleiss, Sun and Weinberger 2017).
    """
    logs = np.log(np.clip(proba, 1e-300, None))
    sizes = np.bincount(group, minlength=proba.shape[1])
    weight = 1.0 / (sizes[group] * np.count_nonzero(sizes))
    true = logs[np.arange(len(group)), group]

    low, factor, high = (
        0.0,
        1.0,
        _MAX_INVERSE_TEMPERATURE,
    )  # the log loss is convex: Newton's method, safeguarded by bisection
    for _ in range(100):
        proba = _scaled_softmax(logs, factor)
        mean = np.sum(proba * logs, axis=1)
        slope = float(weight @ (mean - true))
        bend = float(weight @ (np.sum(proba * logs**2, axis=1) - mean**2))
        low, high = (low, factor) if slope > 0 else (factor, high)
        step = factor - slope / bend if bend > 0 else math.nan
        new = step if low < step < high else (low + high) / 2
        if abs(new - factor) < 1e-9:
            break
        factor = new
    return factor


def _scaled_softmax(logs: Array, factor: Array | float) -> Array:
    scaled = logs * np.reshape(factor, (-1, 1))
    exponentials = np.exp(scaled - scaled.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))


def temperature_scaled(proba: Array, factor: Array | float) -> Array:
    """Multiply log odds by the inverse temperature: one for all rows, or one for each."""
    return _scaled_softmax(np.log(np.clip(proba, 1e-300, None)), factor)
