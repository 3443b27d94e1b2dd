"""Word attributions of the neural classifier: integrated gradients of correctly classified captions.

Attributions of a caption are scaled to unit norm, so that captions with different confidence compare. Their
sum is the caption's total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear_classifier import Array, Predictions
from portrayal.metrics.shared.classifier.word_contributions import WordContribution, student_interval
from portrayal.models.text_classifiers.integrated_gradients import unit_norm
from portrayal.stats import sorted_clusters


@dataclass(frozen=True)
class _AttributionRows:
    """One value per item of a caption (a word, or the caption itself)."""

    repeat: NDArray[np.int64]
    cluster: NDArray[np.int64]
    thing: NDArray[np.int64]
    value: Array
    repeats: int
    things: int

    def means(self) -> tuple[Array, NDArray[np.int64]]:
        """Means and counts (repeats, items); the mean is nan where the count is 0."""
        cell = self.repeat * self.things + self.thing
        size = self.repeats * self.things
        count = np.bincount(cell, minlength=size).reshape(self.repeats, self.things).astype(np.int64)
        total = np.bincount(cell, weights=self.value, minlength=size).reshape(self.repeats, self.things)
        return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0), count

    def errors(self, means: Array, counts: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
        """Clustered standard errors of the means over repeats, and the numbers of clusters. Captions of one
        image, or with one text, are a cluster.
        """
        deviations = (
            (self.value - means[self.repeat, self.thing]) / counts[self.repeat, self.thing] / self.repeats
        )
        clusters = int(self.cluster.max(initial=-1)) + 1
        pair, pair_index = np.unique(self.thing * clusters + self.cluster, return_inverse=True)
        squares = np.bincount(pair_index, weights=deviations) ** 2
        item_of_pair = pair // clusters
        error = np.sqrt(np.bincount(item_of_pair, weights=squares, minlength=self.things))
        return error, np.bincount(item_of_pair, minlength=self.things).astype(np.int64)


def word_attributions(
    predictions: Sequence[Predictions], group: int, min_captions: int, by_text: bool
) -> list[WordContribution]:
    """Return the attributions of all words in `min_captions` captions or more to one group; repeated words count
    once, in full.
    """
    corpora = list(
        {id(pred.corpus): pred.corpus for pred in predictions}.values()
    )  # an image with several captions has several corpora
    words = sorted({word for corpus in corpora for words in corpus.words for word in words})
    word_index = {word: index for index, word in enumerate(words)}
    everywhere = np.zeros(len(words))
    for corpus in corpora:
        for caption in corpus.words:
            everywhere[[word_index[word] for word in set(caption)]] += 1 / len(corpora)
    rows: list[tuple[int, str, int, float]] = []
    for repeat, pred in enumerate(predictions):
        for cluster, words_of_caption, attributions in _correct_captions(pred, group, by_text):
            sums: dict[str, float] = {}
            for word, attribution in zip(words_of_caption, attributions, strict=True):
                sums[word] = sums.get(word, 0.0) + float(attribution)
            rows += [(repeat, cluster, word_index[word], total) for word, total in sums.items()]
    return _summaries(rows, words, len(predictions), everywhere >= min_captions)


def caption_totals(predictions: Sequence[Predictions], groups: int, by_text: bool) -> list[WordContribution]:
    """Return the mean total of each group's captions, then the sum over groups; empty where a group has none
    in a repeat.
    """
    totals: list[WordContribution] = []
    by_repeat = np.zeros(len(predictions))
    for group in range(groups):
        correct = [_correct_captions(pred, group, by_text) for pred in predictions]
        if not all(correct):
            return []
        rows = [
            (repeat, cluster, 0, float(attributions.sum()))
            for repeat, repeat_correct in enumerate(correct)
            for cluster, _, attributions in repeat_correct
        ]
        totals += _summaries(rows, ["total"], len(predictions), np.ones(1, dtype=bool))
        by_repeat += [
            np.mean([attributions.sum() for _, _, attributions in repeat_correct])
            for repeat_correct in correct
        ]
    value = float(by_repeat.mean())
    std = float(by_repeat.std(ddof=1)) if len(predictions) > 1 else None
    se = math.sqrt(sum((pred.se or 0.0) ** 2 for pred in totals)) or None
    captions = [pred.captions for pred in totals]
    bounds = student_interval(value, *_combined_error(se, min(captions) - 1, std, len(predictions)))
    return [*totals, WordContribution("", value, sum(captions), std, se, *bounds)]


def _combined_error(
    se: float | None, freedom: int, std: float | None, repeats: int
) -> tuple[float | None, int]:
    """Standard error over captions and seeds, with Welch-Satterthwaite degrees of freedom.

    One seed tells nothing about other seeds.
    """
    components = [((se or 0.0) ** 2, freedom), ((std or 0.0) ** 2 / repeats, repeats - 1)]
    estimated = [(variance, degrees) for variance, degrees in components if variance > 0 and degrees > 0]
    total = sum(variance for variance, _ in estimated)
    if not total:
        return None, 0
    return math.sqrt(total), int(total**2 / sum(variance**2 / degrees for variance, degrees in estimated))


def _correct_captions(pred: Predictions, group: int, by_text: bool) -> list[tuple[str, Sequence[str], Array]]:
    """Correctly classified captions of a group: cluster, words and scaled attributions."""
    assert pred.attributions is not None
    corpus = pred.corpus
    return [
        (
            corpus.texts[pred.test[index]] if by_text else corpus.images[pred.test[index]],
            corpus.words[pred.test[index]],
            unit_norm(pred.attributions[index]),
        )
        for index in np.flatnonzero((pred.group == group) & (pred.predicted == group))
    ]


def _summaries(
    rows: Sequence[tuple[int, str, int, float]],
    names: Sequence[str],
    repeats: int,
    frequent: NDArray[np.bool_],
) -> list[WordContribution]:
    if not rows:
        return []
    repeat, cluster, thing, value = zip(*rows, strict=True)
    _, alike = sorted_clusters(list(cluster))
    table = _AttributionRows(np.array(repeat), alike, np.array(thing), np.array(value), repeats, len(names))
    means, counts = table.means()
    errors, clusters = table.errors(means, counts)
    contributions = []
    for index in np.flatnonzero(frequent & (counts > 0).all(axis=0)).tolist():
        mean = float(means[:, index].mean())
        std = float(means[:, index].std(ddof=1)) if repeats > 1 else None
        captions = round(float(counts[:, index].mean()))
        se = float(errors[index]) or None
        bounds = student_interval(mean, *_combined_error(se, int(clusters[index]) - 1, std, repeats))
        contributions.append(WordContribution(names[index], mean, captions, std, se, *bounds))
    return contributions
