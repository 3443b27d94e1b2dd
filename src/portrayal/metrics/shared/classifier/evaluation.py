"""One speaker's captions under one protocol: the guesses, and every number that is made of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from portrayal.metrics.shared.classifier.aggregation import PERCENT, Spread, Tally, estimate
from portrayal.metrics.shared.classifier.corpus import Corpus
from portrayal.metrics.shared.classifier.evidence import Told
from portrayal.metrics.shared.classifier.linear import Array, Guesser, Guesses, scores
from portrayal.metrics.shared.classifier.protocol import Protocol, Readings
from portrayal.metrics.shared.classifier.training_influence import (
    accuracy_slopes,
    confidence_slopes,
    learning_effects,
    score_slopes,
)
from portrayal.stats import Estimate, percentile_interval, permutation_p

_SIGNS = 2  # random signs by which the effect of pairs is told
SCORE, ACCURACY, CONFIDENCE, CALIBRATED = range(4)
_SLOPES = {"score": score_slopes, "hits": accuracy_slopes}


@dataclass(frozen=True, eq=False)
class Voice:
    """`dealings` is how often labels are dealt at random to know chance; 0: never."""

    protocol: Protocol
    readings: Readings
    guesses: Sequence[Sequence[Guesses]]
    groups: tuple[str, ...]
    seed: int
    n_resamples: int
    dealings: int = 0
    in_full: bool = False

    @property
    def corpus(self) -> Corpus:
        """Of the first repeat."""
        return self.readings[0][0]

    @cached_property
    def told(self) -> Told:
        return Told([one for some in self.guesses for one in some], self.groups)

    @cached_property
    def tested(self) -> Array:
        """How many images of each group one repeat tests, on average."""
        counts = [np.bincount(some[0].group, minlength=len(self.groups)) for some in self.guesses]
        return np.asarray(np.mean(counts, axis=0))

    @cached_property
    def tally(self) -> Tally:
        """The score of every tested caption; in full also whether it was guessed, how surely, and calibrated."""
        columns = [[one.score[:, None] for one in some] for some in self.guesses]
        slopes = [[[_SLOPES[one.by](one.likely, one.group)] for one in some] for some in self.guesses]
        if self.in_full:
            pairs = [list(zip(*pair, strict=True)) for pair in self._calibrated]
            columns = [[_columns(one, likely) for one, (likely, _) in some] for some in pairs]
            slopes = [[_slopes(one, likely, factor) for one, (likely, factor) in some] for some in pairs]
        learning = [
            [self._learning(one, seed, slope) for one, slope in zip(some, part, strict=True)]
            for seed, some, part in zip(self.protocol.seeds, self.guesses, slopes, strict=True)
        ]
        return Tally.of(self.guesses, columns, learning, len(self.groups), self.protocol.clusters)

    @property
    def _calibrated(self) -> Iterator[tuple[Sequence[Guesses], list[tuple[Array, Array]]]]:
        return zip(self.guesses, self.protocol.calibrated(self.guesses), strict=True)

    def _learning(self, one: Guesses, seed: int, slopes: Sequence[Array]) -> Array:
        """Of a published split nothing: each of its seeds learns from others, so that they show it themselves.

        Nor of a guesser whose losses have no one curvature.
        """
        images = len(one.corpus.images)
        guesser = self.protocol.guesser
        if self.protocol.published or not isinstance(guesser, Guesser):
            return np.zeros((images, len(slopes), len(self.groups)))
        splits = self.protocol.splits(one.corpus, seed)
        # The same signs for every repeat and speaker, so that their effects can be added and compared.
        signs = np.random.default_rng(_SIGNS).choice((-1.0, 1.0), size=(_SIGNS, images))
        signed = [slopes[0] * sign[one.test][:, None] for sign in signs]
        return learning_effects(guesser, one, splits, [*slopes, *signed])

    def spread(self, group: int | None, column: int = SCORE) -> Spread:
        """A column's mean for a group, or over groups, in percent."""
        return estimate(self.tally, column, group, self.seed, self.n_resamples)

    @cached_property
    def null(self) -> Array | None:
        """Scores under chance labels, in percent: (dealings, 1 + groups), the mean over groups first."""
        if not self.dealings:
            return None
        found = self.protocol.chance(self.readings, self.seed, self.dealings) * PERCENT
        return np.column_stack([found.mean(axis=1), found])

    def chance(self, group: int | None) -> Spread | None:
        """The mean of the null, and between what 95 % of its dealings lie."""
        if self.null is None:
            return None
        null = self.null[:, _column(group)]
        if not np.isfinite(null).any():
            return Spread(Estimate.of(None))
        (low,), (high,) = percentile_interval(null[:, None])
        bounds = [float(bound) if np.isfinite(bound) else None for bound in (low, high)]
        return Spread(Estimate(float(np.nanmean(null)), bounds[0], bounds[1], None, np.empty(0)))

    def chance_error(self, group: int | None) -> float:
        """How far the mean of the null may be off, for being of so many dealings."""
        if self.null is None or len(self.null) < 2:
            return math.inf
        return float(np.nanstd(self.null[:, _column(group)], ddof=1)) / math.sqrt(len(self.null))

    def effects(self) -> Callable[[str], Mapping[str, Any]]:
        """What each image adds to the mean over groups, in percent: for comparisons with another system."""
        whole, pairs = (part * PERCENT for part in self.tally.whole_effect(None, SCORE))
        place = {image: number for number, image in enumerate(self.tally.learnt)}

        def of_image(image: str) -> Mapping[str, Any]:
            number = place[image]
            by_pairs = [float(f"{one:.4g}") for one in pairs[number]]
            return {"effect": float(f"{whole[number]:.4g}"), "by pairs": by_pairs}

        return of_image

    def p(self, group: int | None) -> float | None:
        """How often chance labels reach the value on the same splits."""
        if self.null is None:
            return None
        compared = [self.guesses[number][place] for number, place in self.protocol.compared(self.readings)]
        count = len(self.groups)
        means = [
            np.bincount(one.group, weights=one.score, minlength=count)
            / np.bincount(one.group, minlength=count)
            for one in compared
        ]
        points = np.mean(means, axis=0) * PERCENT
        observed = np.append(points.mean(), points)
        p = permutation_p(observed, self.null)[_column(group)]
        return float(p) if np.isfinite(p) else None


def _column(group: int | None) -> int:
    return 0 if group is None else 1 + group


def _columns(one: Guesses, calibrated: Array) -> Array:
    right = (one.guessed == one.group).astype(np.float64)
    return np.column_stack([one.score, right, one.likely.max(axis=1), scores(calibrated, one.group)])


def _slopes(one: Guesses, calibrated: Array, factor: Array) -> list[Array]:
    """How each column moves with the log odds."""
    return [
        score_slopes(one.likely, one.group),
        accuracy_slopes(one.likely, one.group),
        confidence_slopes(one.likely),
        score_slopes(calibrated, one.group) * factor[:, None],
    ]
