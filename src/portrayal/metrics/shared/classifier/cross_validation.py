"""The evaluation protocol: splits, repeats and class balance, the same for every source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.corpus import Corpus
from portrayal.metrics.shared.classifier.linear_classifier import (
    Array,
    LinearClassifier,
    PermutedLabels,
    Predictions,
    inverse_temperature,
    temperature_scaled,
)
from portrayal.metrics.shared.classifier.neural import NeuralClassifier
from portrayal.metrics.shared.classifier.splits import (
    Split,
    balanced_sample,
    common_folds,
    fast_paper_split,
    leak_safe_folds,
    paper_split,
    splits_by_fold,
    without_shared_texts,
)
from portrayal.models.text_classifiers.tasks import ClassificationTask

PUBLISHED = ("paper", "paper-unseen")  # splits with a test set; the others test every caption once
BY_IMAGE = "images"  # folds by image name, for inputs that repeat by nature, such as labels
_CALIBRATION_FOLDS = 5
_SEED_STRIDE = 1_000_003  # distance between the seeds of classifiers that belong to one seed of the protocol

# For each seed the corpora to evaluate: one, or one per caption position for human captions in the published
# LIC.
Corpora = Sequence[Sequence[Corpus]]


@dataclass(frozen=True)
class Protocol:
    split: str
    balance: str
    seeds: tuple[int, ...]
    folds: int
    classifier: LinearClassifier | NeuralClassifier

    @property
    def published(self) -> bool:
        return self.split in PUBLISHED

    @property
    def clusters(self) -> str:
        """Unit of the bootstrap. Leak-safe folds test captions with the same text together, so texts are
        clusters.
        """
        return "image" if self.published or self.split == BY_IMAGE else "text"

    def splits(self, corpus: Corpus, seed: int) -> list[Split]:
        """Return the splits of one seed."""
        if self.published:
            return [self._without_seen_texts(corpus, _paper_split(corpus.group.tobytes(), seed))]
        return self._fold_splits(corpus, corpus.group, seed)

    def cross_val_predict(self, corpora: Corpora) -> list[list[Predictions]]:
        """Return out-of-sample predictions by seed and corpus."""
        predictions = self._cross_val_predict(corpora, self._train_splits)
        if self.split != "paper-unseen":
            return predictions
        return [
            [self._unseen_only(pred, seed) for pred in repeat]
            for seed, repeat in zip(self.seeds, predictions, strict=True)
        ]

    def tasks(self, corpora: Corpora) -> list[ClassificationTask]:
        """Return the training tasks of a neural classifier for these corpora."""
        if not isinstance(self.classifier, NeuralClassifier):
            return []
        requests = self._grouped_by_corpus(corpora, self._train_splits)
        return [
            task
            for corpus, splits, seeds, _ in requests
            for task in self.classifier.tasks(corpus, splits, seeds)
        ]

    def _train_splits(self, corpus: Corpus, seed: int) -> list[Split]:
        """Return the splits of one seed with all captions that may be tested."""
        if self.published:
            return [_paper_split(corpus.group.tobytes(), seed)]
        return self._fold_splits(corpus, corpus.group, seed)

    def _grouped_by_corpus(
        self, corpora: Corpora, splits_of: Callable[[Corpus, int], list[Split]]
    ) -> list[tuple[Corpus, list[Split], list[int], list[tuple[int, int, int]]]]:
        """Group splits by corpus, since fits on the same corpus are faster together.

        Returns the corpus, its splits, a seed for each split, and (seed index, corpus index, number of
        splits) of each request in order.
        """
        requests: dict[Corpus, tuple[list[Split], list[int], list[tuple[int, int, int]]]] = {}
        for repeat, (seed, repeat_corpora) in enumerate(zip(self.seeds, corpora, strict=True)):
            for position, corpus in enumerate(repeat_corpora):
                splits = splits_of(corpus, seed)
                all_splits, seeds, owners = requests.setdefault(corpus, ([], [], []))
                seeds += [
                    seed + _SEED_STRIDE * (position * len(splits) + part) for part in range(len(splits))
                ]
                all_splits += splits
                owners.append((repeat, position, len(splits)))
        return [(corpus, *request) for corpus, request in requests.items()]

    def _cross_val_predict(
        self, corpora: Corpora, splits_of: Callable[[Corpus, int], list[Split]], rough: bool = False
    ) -> list[list[Predictions]]:
        predictions: dict[tuple[int, int], Predictions] = {}
        for corpus, splits, seeds, owners in self._grouped_by_corpus(corpora, splits_of):
            pooled = self.classifier.cross_val_predict(corpus, splits, seeds, rough)
            first = 0
            for repeat, position, count in owners:
                predictions[repeat, position] = pooled.for_fits(first, count)
                first += count
        return [
            [predictions[repeat, position] for position in range(len(repeat_corpora))]
            for repeat, repeat_corpora in enumerate(corpora)
        ]

    @staticmethod
    def _unseen_only(pred: Predictions, seed: int) -> Predictions:
        """Keep the predictions whose text is not in the training set."""
        corpus = pred.corpus
        split = _paper_split(corpus.group.tobytes(), seed)
        return pred.subset(~np.isin(corpus.design.row[pred.test], corpus.design.row[split.train]))

    def permutation_scores(self, corpora: Corpora, seed: int, n_permutations: int) -> Array:
        """Mean scores of the groups under permuted labels: (permutations, groups), from 0 to 1.

        Uses the predictions that `compared_with_chance` names.
        """
        scores = [
            self.classifier.permutation_scores(
                corpora[repeat][position],
                self._label_permuter(corpora[repeat][position], seed, repeat),
                n_permutations,
            )
            for repeat, position in self.compared_with_chance(corpora)
        ]
        return np.asarray(np.mean(scores, axis=0))

    def compared_with_chance(self, corpora: Corpora) -> list[tuple[int, int]]:
        """Indices (seed, corpus) of the predictions that are compared with chance; all of them would take too
        long.

        The first repeat of cross-validation; for a published split every seed with one of the corpora in
        turn.
        """
        if not self.published:
            return [(0, 0)]
        return [(repeat, repeat % len(repeat_corpora)) for repeat, repeat_corpora in enumerate(corpora)]

    @property
    def can_calibrate(self) -> bool:
        """Whether there are held-out predictions to fit the temperature on."""
        return not (self.published and isinstance(self.classifier, NeuralClassifier)) or len(self.seeds) > 1

    def calibrate(self, predictions: Sequence[Sequence[Predictions]]) -> list[list[tuple[Array, Array]]]:
        """Calibrate probabilities with a temperature fitted on other captions.

        Returns the calibrated probabilities and the inverse temperature of each caption.
        """
        if not self.published:
            return [[self._calibrated_by_fold(pred) for pred in repeat] for repeat in predictions]
        if isinstance(self.classifier, NeuralClassifier):
            return _calibrated_by_seed(predictions)
        corpora = [[pred.corpus for pred in repeat] for repeat in predictions]
        held_out = self._cross_val_predict(corpora, self._calibration_splits, rough=True)
        return [
            [
                _temperature_scaled(
                    pred,
                    np.full(1, inverse_temperature(held_out_pred.proba, held_out_pred.group)),
                    np.zeros_like(pred.fit_index),
                )
                for pred, held_out_pred in zip(*pair, strict=True)
            ]
            for pair in zip(predictions, held_out, strict=True)
        ]

    @staticmethod
    def _calibrated_by_fold(pred: Predictions) -> tuple[Array, Array]:
        """Calibrate each fold on the predictions for the other folds."""
        inverse_temperatures = np.ones(pred.n_fits)
        for fold in range(len(inverse_temperatures)):
            others = pred.fit_index != fold
            inverse_temperatures[fold] = (
                inverse_temperature(pred.proba[others], pred.group[others]) if others.any() else 1.0
            )
        return _temperature_scaled(pred, inverse_temperatures, pred.fit_index)

    def _calibration_splits(self, corpus: Corpus, seed: int) -> list[Split]:
        """Cross-validation splits of the training set, with or without equal captions on both sides, as the
        whole split.
        """
        (split,) = self.splits(corpus, seed)
        if self.split == "paper":
            order = np.random.default_rng([seed, 2]).permutation(len(split.train))
            fold = order % _CALIBRATION_FOLDS
        else:
            fold = leak_safe_folds(corpus.design.row[split.train].tolist(), _CALIBRATION_FOLDS, seed)
        return [Split(split.train[inner.train], split.train[inner.test]) for inner in splits_by_fold(fold)]

    def _without_seen_texts(self, corpus: Corpus, split: Split) -> Split:
        if self.split == "paper":
            return split
        text = corpus.design.row
        return Split(split.train, split.test[~np.isin(text[split.test], text[split.train])])

    def _fold_splits(self, corpus: Corpus, group: NDArray[np.int64], seed: int) -> list[Split]:
        sample = np.arange(len(group))
        if self.balance == "subsample":
            sample = balanced_sample(group, np.random.default_rng([seed, 1]))
        if self.split == BY_IMAGE:
            splits = splits_by_fold(
                common_folds([corpus.images[index] for index in sample], self.folds, seed)
            )
        elif self.split == "common":
            fold = common_folds([corpus.images[index] for index in sample], self.folds, seed)
            splits = without_shared_texts(splits_by_fold(fold), corpus.design.row[sample])
        else:
            splits = splits_by_fold(
                leak_safe_folds([corpus.words[index] for index in sample], self.folds, seed)
            )
        return [Split(sample[split.train], sample[split.test]) for split in splits]

    def _label_permuter(self, corpus: Corpus, seed: int, repeat: int) -> Callable[[int], PermutedLabels]:
        """Return a function that permutes labels; a permutation is the same for every corpus and seed."""
        fixed = None
        if not self.published and self.balance == "weights":  # these folds ignore labels
            fixed = self._fold_splits(corpus, corpus.group, self.seeds[repeat])

        def permute(permutation: int) -> PermutedLabels:
            group = np.random.default_rng([seed, permutation]).permutation(corpus.group)
            if fixed is not None:
                return group, fixed
            if self.published:
                split = fast_paper_split(group, np.random.default_rng([seed, permutation, 1 + repeat]))
                return group, [self._without_seen_texts(corpus, split)]
            return group, self._fold_splits(corpus, group, self.seeds[repeat])

        return permute


def _calibrated_by_seed(predictions: Sequence[Sequence[Predictions]]) -> list[list[tuple[Array, Array]]]:
    """Calibrate each seed on the predictions of the other seeds; held-out folds would need many more
    trainings.
    """
    calibrated: list[list[tuple[Array, Array]]] = []
    for seed, repeat in enumerate(predictions):
        others = [
            pred
            for other_seed, other_repeat in enumerate(predictions)
            for pred in other_repeat
            if other_seed != seed
        ]
        inverse_temperatures = np.ones(1)
        if others:
            proba = np.concatenate([pred.proba for pred in others])
            inverse_temperatures[:] = inverse_temperature(
                proba, np.concatenate([pred.group for pred in others])
            )
        calibrated.append(
            [
                _temperature_scaled(pred, inverse_temperatures, np.zeros_like(pred.fit_index))
                for pred in repeat
            ]
        )
    return calibrated


def _temperature_scaled(
    pred: Predictions, inverse_temperatures: Array, which: NDArray[np.int64]
) -> tuple[Array, Array]:
    return temperature_scaled(pred.proba, inverse_temperatures[which]), inverse_temperatures[which]


@lru_cache(maxsize=64)  # several measurements use the same splits
def _paper_split(group: bytes, seed: int) -> Split:
    return paper_split(np.frombuffer(group, dtype=np.int64).tolist(), seed)
