"""The evaluation of one source's captions under one protocol: its predictions and all statistics computed
from them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from portrayal.metrics.shared.classifier.aggregation import (
    PERCENT,
    CaptionScores,
    RepeatedEstimate,
    estimate_mean,
)
from portrayal.metrics.shared.classifier.corpus import Corpus
from portrayal.metrics.shared.classifier.cross_validation import Corpora, Protocol
from portrayal.metrics.shared.classifier.evidence import CaptionEvidence
from portrayal.metrics.shared.classifier.linear_classifier import (
    Array,
    LinearClassifier,
    Predictions,
    lic_scores,
)
from portrayal.metrics.shared.classifier.training_influence import (
    accuracy_slopes,
    confidence_slopes,
    score_slopes,
    training_influence,
)
from portrayal.stats import Estimate, percentile_interval, permutation_p

_N_SIGNS = 2  # random signs that estimate the variance from pairs of captions
SCORE, ACCURACY, CONFIDENCE, CALIBRATED = range(4)
_SLOPES = {"score": score_slopes, "accuracy": accuracy_slopes}


@dataclass(frozen=True, eq=False)
class SourceEvaluation:
    """Predictions for one source and their statistics; `n_permutations` is 0 where no chance level is needed."""

    protocol: Protocol
    corpora: Corpora
    predictions: Sequence[Sequence[Predictions]]
    groups: tuple[str, ...]
    seed: int
    n_resamples: int
    n_permutations: int = 0
    extra_scores: bool = False

    @property
    def corpus(self) -> Corpus:
        """Corpus of the first repeat."""
        return self.corpora[0][0]

    @cached_property
    def evidence(self) -> CaptionEvidence:
        return CaptionEvidence([pred for repeat in self.predictions for pred in repeat], self.groups)

    @cached_property
    def n_tested(self) -> Array:
        """Mean number of test images of each group in one repeat."""
        counts = [np.bincount(repeat[0].group, minlength=len(self.groups)) for repeat in self.predictions]
        return np.asarray(np.mean(counts, axis=0))

    @cached_property
    def caption_scores(self) -> CaptionScores:
        """The score of every test caption; with `extra_scores` also accuracy, confidence and calibrated score."""
        columns = [[pred.score[:, None] for pred in repeat] for repeat in self.predictions]
        slopes = [
            [[_SLOPES[pred.scoring](pred.proba, pred.group)] for pred in repeat]
            for repeat in self.predictions
        ]
        if self.extra_scores:
            pairs = [list(zip(*pair, strict=True)) for pair in self._calibrated]
            columns = [[_columns(pred, calibrated) for pred, (calibrated, _) in repeat] for repeat in pairs]
            slopes = [
                [
                    _slopes(pred, calibrated, inverse_temperature)
                    for pred, (calibrated, inverse_temperature) in repeat
                ]
                for repeat in pairs
            ]
        training_effects = [
            [self._learning(pred, seed, slope) for pred, slope in zip(repeat, repeat_slopes, strict=True)]
            for seed, repeat, repeat_slopes in zip(self.protocol.seeds, self.predictions, slopes, strict=True)
        ]
        return CaptionScores.of(
            self.predictions, columns, training_effects, len(self.groups), self.protocol.clusters
        )

    @property
    def _calibrated(self) -> Iterator[tuple[Sequence[Predictions], list[tuple[Array, Array]]]]:
        return zip(self.predictions, self.protocol.calibrate(self.predictions), strict=True)

    def _learning(self, pred: Predictions, seed: int, slopes: Sequence[Array]) -> Array:
        """Influence of training captions on the means.

        Zero for a published split, whose seeds train on different captions and so show it themselves, and for
        neural classifiers, whose losses have no single curvature.
        """
        images = len(pred.corpus.images)
        classifier = self.protocol.classifier
        if self.protocol.published or not isinstance(classifier, LinearClassifier):
            return np.zeros((images, len(slopes), len(self.groups)))
        splits = self.protocol.splits(pred.corpus, seed)
        # The same signs for every repeat and source, so that effects can be added and compared.
        signs = np.random.default_rng(_N_SIGNS).choice((-1.0, 1.0), size=(_N_SIGNS, images))
        signed = [slopes[0] * sign[pred.test][:, None] for sign in signs]
        return training_influence(classifier, pred, splits, [*slopes, *signed])

    def estimate(self, group: int | None, column: int = SCORE) -> RepeatedEstimate:
        """Mean of a column for one group, or over groups, in percent."""
        return estimate_mean(self.caption_scores, column, group, self.seed, self.n_resamples)

    @cached_property
    def null(self) -> Array | None:
        """Mean scores under permuted labels, in percent: (permutations, 1 + groups), the mean over groups
        first.
        """
        if not self.n_permutations:
            return None
        null_scores = self.protocol.permutation_scores(self.corpora, self.seed, self.n_permutations) * PERCENT
        return np.column_stack([null_scores.mean(axis=1), null_scores])

    def chance_level(self, group: int | None) -> RepeatedEstimate | None:
        """Mean score under permuted labels, with the interval that holds 95 % of the permutations."""
        if self.null is None:
            return None
        null = self.null[:, _column(group)]
        if not np.isfinite(null).any():
            return RepeatedEstimate(Estimate.of(None))
        (low,), (high,) = percentile_interval(null[:, None])
        bounds = [float(bound) if np.isfinite(bound) else None for bound in (low, high)]
        return RepeatedEstimate(Estimate(float(np.nanmean(null)), bounds[0], bounds[1], None, np.empty(0)))

    def chance_se(self, group: int | None) -> float:
        """Standard error of the mean over permutations."""
        if self.null is None or len(self.null) < 2:
            return math.inf
        return float(np.nanstd(self.null[:, _column(group)], ddof=1)) / math.sqrt(len(self.null))

    def image_effects(self) -> Callable[[str], Mapping[str, Any]]:
        """Return a function that gives the effect of an image on the mean over groups, in percent; `compare`
        pairs by it.
        """
        effects, signed_effects = (
            array * PERCENT for array in self.caption_scores.total_effects(None, SCORE)
        )
        index_of = {image: index for index, image in enumerate(self.caption_scores.train_images)}

        def of_image(image: str) -> Mapping[str, Any]:
            index = index_of[image]
            by_pairs = [float(f"{effect:.4g}") for effect in signed_effects[index]]
            return {"effect": float(f"{effects[index]:.4g}"), "by pairs": by_pairs}

        return of_image

    def p(self, group: int | None) -> float | None:
        """Permutation p value of the score on the same splits."""
        if self.null is None:
            return None
        compared = [
            self.predictions[repeat][corpus]
            for repeat, corpus in self.protocol.compared_with_chance(self.corpora)
        ]
        count = len(self.groups)
        means = [
            np.bincount(pred.group, weights=pred.score, minlength=count)
            / np.bincount(pred.group, minlength=count)
            for pred in compared
        ]
        points = np.mean(means, axis=0) * PERCENT
        observed = np.append(points.mean(), points)
        p = permutation_p(observed, self.null)[_column(group)]
        return float(p) if np.isfinite(p) else None


def _column(group: int | None) -> int:
    return 0 if group is None else 1 + group


def _columns(pred: Predictions, calibrated: Array) -> Array:
    correct = (pred.predicted == pred.group).astype(np.float64)
    return np.column_stack([pred.score, correct, pred.proba.max(axis=1), lic_scores(calibrated, pred.group)])


def _slopes(pred: Predictions, calibrated: Array, inverse_temperature: Array) -> list[Array]:
    """Derivative of each column with respect to the log odds."""
    return [
        score_slopes(pred.proba, pred.group),
        accuracy_slopes(pred.proba, pred.group),
        confidence_slopes(pred.proba),
        score_slopes(calibrated, pred.group) * inverse_temperature[:, None],
    ]
