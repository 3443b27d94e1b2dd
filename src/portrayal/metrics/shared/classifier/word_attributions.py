"""Which words give the group away to a neural guesser: integrated gradients of captions that were guessed right.

The parts of a caption are scaled to a vector of length 1, so that sure and unsure captions compare; what they add up to
is the caption's total.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear import Array, Guesses
from portrayal.metrics.shared.classifier.word_contributions import Contribution, student_interval
from portrayal.models.text_classifiers.integrated_gradients import scaled
from portrayal.stats import sorted_clusters


@dataclass(frozen=True)
class _Rows:
    """A number for each thing that a caption has (a word, or the caption itself)."""

    repeat: NDArray[np.int64]
    cluster: NDArray[np.int64]
    thing: NDArray[np.int64]
    value: Array
    repeats: int
    things: int

    def means(self) -> tuple[Array, NDArray[np.int64]]:
        """(repeats, things): the mean, nan where there is none, and of how many."""
        cell = self.repeat * self.things + self.thing
        size = self.repeats * self.things
        count = np.bincount(cell, minlength=size).reshape(self.repeats, self.things).astype(np.int64)
        total = np.bincount(cell, weights=self.value, minlength=size).reshape(self.repeats, self.things)
        return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0), count

    def errors(self, means: Array, counts: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
        """Of the mean over repeats: captions of one image, or of one text, are alike. And how many such there are."""
        apart = (self.value - means[self.repeat, self.thing]) / counts[self.repeat, self.thing] / self.repeats
        clusters = int(self.cluster.max(initial=-1)) + 1
        pair, place = np.unique(self.thing * clusters + self.cluster, return_inverse=True)
        squares = np.bincount(place, weights=apart) ** 2
        of = pair // clusters
        error = np.sqrt(np.bincount(of, weights=squares, minlength=self.things))
        return error, np.bincount(of, minlength=self.things).astype(np.int64)


def word_attributions(
    guesses: Sequence[Guesses], group: int, least: int, by_text: bool
) -> list[Contribution]:
    """Of every word that stands in `least` captions or more, for one group; a word said twice counts once, in full."""
    corpora = list(
        {id(one.corpus): one.corpus for one in guesses}.values()
    )  # several captions of an image: several
    words = sorted({word for corpus in corpora for words in corpus.words for word in words})
    place = {word: number for number, word in enumerate(words)}
    everywhere = np.zeros(len(words))
    for corpus in corpora:
        for caption in corpus.words:
            everywhere[[place[word] for word in set(caption)]] += 1 / len(corpora)
    rows: list[tuple[int, str, int, float]] = []
    for repeat, one in enumerate(guesses):
        for cluster, said, parts in _right(one, group, by_text):
            sums: dict[str, float] = {}
            for word, part in zip(said, parts, strict=True):
                sums[word] = sums.get(word, 0.0) + float(part)
            rows += [(repeat, cluster, place[word], total) for word, total in sums.items()]
    return _contributions(rows, words, len(guesses), everywhere >= least)


def caption_totals(guesses: Sequence[Guesses], groups: int, by_text: bool) -> list[Contribution]:
    """The mean total of each group's captions, then the sum over groups; nothing where a group has none in a repeat."""
    found: list[Contribution] = []
    by_repeat = np.zeros(len(guesses))
    for group in range(groups):
        right = [_right(one, group, by_text) for one in guesses]
        if not all(right):
            return []
        rows = [
            (repeat, cluster, 0, float(parts.sum()))
            for repeat, some in enumerate(right)
            for cluster, _, parts in some
        ]
        found += _contributions(rows, ["total"], len(guesses), np.ones(1, dtype=bool))
        by_repeat += [np.mean([parts.sum() for _, _, parts in some]) for some in right]
    value = float(by_repeat.mean())
    std = float(by_repeat.std(ddof=1)) if len(guesses) > 1 else None
    se = math.sqrt(sum((one.se or 0.0) ** 2 for one in found)) or None
    captions = [one.captions for one in found]
    bounds = student_interval(value, *_with_seeds(se, min(captions) - 1, std, len(guesses)))
    return [*found, Contribution("", value, sum(captions), std, se, *bounds)]


def _with_seeds(se: float | None, freedom: int, std: float | None, repeats: int) -> tuple[float | None, int]:
    """An interval covers other captions and other seeds; with the degrees of freedom of Welch and Satterthwaite.

    Of one seed nothing is known of others.
    """
    parts = [((se or 0.0) ** 2, freedom), ((std or 0.0) ** 2 / repeats, repeats - 1)]
    known = [(variance, degrees) for variance, degrees in parts if variance > 0 and degrees > 0]
    total = sum(variance for variance, _ in known)
    if not total:
        return None, 0
    return math.sqrt(total), int(total**2 / sum(variance**2 / degrees for variance, degrees in known))


def _right(one: Guesses, group: int, by_text: bool) -> list[tuple[str, Sequence[str], Array]]:
    """Of each caption of a group that was guessed right: what it is alike with, its words, and their scaled parts."""
    assert one.parts is not None
    corpus = one.corpus
    return [
        (
            corpus.texts[one.test[number]] if by_text else corpus.images[one.test[number]],
            corpus.words[one.test[number]],
            scaled(one.parts[number]),
        )
        for number in np.flatnonzero((one.group == group) & (one.guessed == group))
    ]


def _contributions(
    rows: Sequence[tuple[int, str, int, float]], names: Sequence[str], repeats: int, asked: NDArray[np.bool_]
) -> list[Contribution]:
    if not rows:
        return []
    repeat, cluster, thing, value = zip(*rows, strict=True)
    _, alike = sorted_clusters(list(cluster))
    table = _Rows(np.array(repeat), alike, np.array(thing), np.array(value), repeats, len(names))
    means, counts = table.means()
    errors, clusters = table.errors(means, counts)
    found = []
    for number in np.flatnonzero(asked & (counts > 0).all(axis=0)).tolist():
        mean = float(means[:, number].mean())
        std = float(means[:, number].std(ddof=1)) if repeats > 1 else None
        captions = round(float(counts[:, number].mean()))
        se = float(errors[number]) or None
        bounds = student_interval(mean, *_with_seeds(se, int(clusters[number]) - 1, std, repeats))
        found.append(Contribution(names[number], mean, captions, std, se, *bounds))
    return found
