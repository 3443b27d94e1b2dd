"""From guesses to numbers: means over groups and repeats, and how sure they are.

Captions that share a text were tested together, and captions of one image are alike. Both are reasons why fewer
captions than there are count as independent, so both enter the variance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear import Array, Guesses
from portrayal.stats import (
    Estimate,
    bootstrap_p,
    clustered_variance,
    learning_variance,
    multiway_variance,
    percentile_interval,
    replicates_over_seeds,
    resampler,
    sorted_clusters,
)

PERCENT = 100.0


@dataclass(frozen=True)
class Spread:
    """An estimate, how far it moves from one repeat to the next, and draws that vary both data and repeats."""

    estimate: Estimate
    std_seed: float | None = None
    draws: Array = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, shares: Sequence[float]) -> Spread:
        """A share in each repeat, without an interval."""
        std = float(np.std(shares, ddof=1)) * PERCENT if len(shares) > 1 else None
        return cls(Estimate.of(float(np.mean(shares)) * PERCENT), std)

    @property
    def value(self) -> float | None:
        return self.estimate.value

    def moved(self, by: float, error: float) -> Spread:
        """The same with a number added that is known up to an error."""
        found = self.estimate.moved(by)
        if found.value is None or not found.se:
            return Spread(found, self.std_seed, self.draws + by)
        wider = math.hypot(1.0, error / found.se)

        def spread(number: Any) -> Any:
            return None if number is None else found.value + (number - found.value) * wider

        wide = replace(found, low=spread(found.low), high=spread(found.high), se=found.se * wider)
        return Spread(wide, self.std_seed, spread(self.draws + by))

    def scaled(self, by: float) -> Spread:
        """The same in another unit."""

        def times(number: float | None) -> float | None:
            return None if number is None else number * by

        old = self.estimate
        found = Estimate(
            times(old.value), times(old.low), times(old.high), times(old.se), old.replicates * by
        )
        return Spread(found, times(self.std_seed), self.draws * by)

    @property
    def p(self) -> float | None:
        """Two-sided, against 0."""
        return bootstrap_p(self.draws) if len(self.draws) else None


@dataclass(frozen=True, eq=False)  # compared by identity: its draws are cached by it
class Tally:
    """What was found out about every tested caption: a row each, over all repeats."""

    groups: int
    repeats: int
    repeat: NDArray[np.int64]
    group: NDArray[np.int64]
    images: tuple[str, ...]
    image: NDArray[np.int64]
    texts: tuple[str, ...]
    text: NDArray[np.int64]
    values: Array  # (rows, columns)
    learnt: tuple[str, ...]  # images
    learning: Array  # (images, columns, groups): what each adds by being learnt from
    by_pairs: Array  # (images, signs, groups): the same of the first column, with a random sign for each test

    @classmethod
    def of(
        cls,
        guesses: Sequence[Sequence[Guesses]],
        columns: Sequence[Sequence[Array]],
        learning: Sequence[Sequence[Array]],
        groups: int,
        clusters: str,
    ) -> Tally:
        """From guesses by repeat and corpus, and for each of them what to average: (tested, columns).

        And what its captions add to the groups' means by being learnt from: (captions, columns + signs, groups).
        """
        mean = np.asarray(np.mean([np.mean(some, axis=0) for some in learning], axis=0))
        width = columns[0][0].shape[1]
        flat = [(number, one) for number, some in enumerate(guesses) for one in some]
        images = [one.corpus.images[place] for _, one in flat for place in one.test]
        texts = images if clusters == "image" else [one.corpus.texts[p] for _, one in flat for p in one.test]
        return cls(
            groups,
            len(guesses),
            np.repeat([number for number, _ in flat], [len(one.test) for _, one in flat]),
            np.concatenate([one.group for _, one in flat]),
            *sorted_clusters(images),
            *sorted_clusters(texts),
            np.concatenate([values for some in columns for values in some]),
            flat[0][1].corpus.images,
            mean[:, :width],
            mean[:, width:],
        )

    @cached_property
    def points(self) -> Array:
        """(repeats, groups, columns): the mean of each, nan where there is nothing."""
        return self.means(self.sums(np.zeros(len(self.repeat), dtype=np.int64), 1))[:, 0]

    def draws(self, by: str, seed: int, draws: int) -> Array:
        """(repeats, draws, groups, columns) with images or texts drawn again."""
        return _drawn(self, by, seed, draws)

    def mean_by_image(self) -> dict[str, float]:
        """The first column's mean over every test of an image."""
        totals = np.bincount(self.image, weights=self.values[:, 0]) / np.bincount(self.image)
        return dict(zip(self.images, totals.tolist(), strict=True))

    def influence(self, group: int | None, column: int) -> Array:
        """What each row adds to the mean over repeats of a group's mean, or of the mean over groups."""
        sizes = np.zeros((self.repeats, self.groups))
        np.add.at(sizes, (self.repeat, self.group), 1)
        mean = self.points[self.repeat, self.group, column]
        made = (self.values[:, column] - mean) / sizes[self.repeat, self.group] / self.repeats
        if group is None:
            return np.asarray(made / self.groups)
        return np.asarray(np.where(self.group == group, made, 0.0))

    def whole_effect(self, group: int | None, column: int) -> tuple[Array, Array]:
        """What each image adds by being tested and learnt from, and the same by pairs: (images), (images, signs)."""
        tested = np.bincount(
            self._place_learnt, weights=self.influence(group, column), minlength=len(self.learnt)
        )
        by_pairs = of_group(self.by_pairs, group) * (column == 0)
        return tested + of_group(self.learning[:, column], group), by_pairs

    @cached_property
    def _place_learnt(self) -> NDArray[np.int64]:
        """Of each tested caption: which of the images that are learnt it is of."""
        place = {image: number for number, image in enumerate(self.learnt)}
        return np.array([place[image] for image in self.images], dtype=np.int64)[self.image]

    def sums(self, places: NDArray[np.int64], count: int) -> Array:
        """(repeats, clusters, groups * (1 + columns)): how many rows, and the sums of their values."""
        width = 1 + self.values.shape[1]
        made = np.zeros((self.repeats, count, self.groups, width))
        np.add.at(
            made, (self.repeat, places, self.group), np.column_stack([np.ones(len(places)), self.values])
        )
        return made.reshape(self.repeats, count, -1)

    def means(self, totals: Array) -> Array:
        shaped = totals.reshape(*totals.shape[:2], self.groups, -1)
        with np.errstate(invalid="ignore", divide="ignore"):
            made: Array = shaped[..., 1:] / shaped[..., :1]
        return made


@lru_cache(maxsize=4)
def _drawn(tally: Tally, by: str, seed: int, draws: int) -> Array:
    names, places = (tally.images, tally.image) if by == "image" else (tally.texts, tally.text)
    sums = tally.sums(places, len(names))
    side_by_side = sums.transpose(1, 0, 2).reshape(len(names), -1)
    totals = resampler(names, seed, draws).totals(side_by_side)
    return tally.means(totals.reshape(draws, tally.repeats, -1).transpose(1, 0, 2))


def of_group(means: Array, group: int | None) -> Array:
    """(..., groups) to one group's, or to the mean over groups."""
    return np.asarray(means.mean(axis=-1) if group is None else means[..., group])


def estimate(tally: Tally, column: int, group: int | None, seed: int, draws: int) -> Spread:
    """A mean with its interval, in percent. Its draws are of images, so that they pair with another system's."""
    by = "text" if len(tally.texts) < len(tally.images) else "image"
    points = of_group(tally.points[..., column], group)
    drawn = tally.draws(by, seed, draws)
    pairing = tally.draws("image", seed, draws)
    effect = tally.influence(group, column)
    # Images that share a text share what was learnt of it, so that texts as clusters cover part of the learning; where
    # no text is repeated they cover nothing of it, and the larger of the two is the honest one.
    variance = max(
        multiway_variance(effect, tally.image, tally.text),
        learning_variance(*tally.whole_effect(group, column)),
    )
    return _spread(
        points,
        of_group(drawn[..., column], group),
        of_group(pairing[..., column], group),
        variance,
        clustered_variance(effect, tally.text if by == "text" else tally.image),
        seed,
    )


def difference(first: Tally, second: Tally, group: int | None, seed: int, draws: int) -> Spread:
    """first - second of their first columns: what images that both tested share cancels."""
    points = of_group(first.points[..., 0], group) - of_group(second.points[..., 0], group)
    ours = first.draws("image", seed, draws)
    theirs = second.draws("image", seed, draws)
    drawn = of_group(ours[..., 0], group) - of_group(theirs[..., 0], group)
    effect, ways = _paired_effects(first, second, group)
    whole = [
        one - other
        for one, other in zip(first.whole_effect(group, 0), second.whole_effect(group, 0), strict=True)
    ]
    variance = max(multiway_variance(effect, *ways), learning_variance(whole[0], whole[1]))
    return _spread(points, drawn, drawn, variance, clustered_variance(effect, ways[0]), seed)


def relative(first: Tally, second: Tally, seed: int, draws: int) -> Spread:
    """(first - second) / (first + second) of their first columns, from -1 to 1."""
    ours, theirs = (estimate(tally, 0, None, seed, draws) for tally in (first, second))
    apart = difference(first, second, None, seed, draws)
    if ours.value is None or theirs.value is None or apart.value is None or ours.value + theirs.value <= 0:
        return Spread(Estimate.of(None))
    points = [of_group(tally.points[..., 0], None) for tally in (first, second)]
    with np.errstate(invalid="ignore", divide="ignore"):
        by_repeat = (points[0] - points[1]) / (points[0] + points[1])
    std = float(by_repeat.std(ddof=1)) if len(by_repeat) > 1 and np.isfinite(by_repeat).all() else None
    whole = ours.value + theirs.value
    if not len(apart.draws) or not len(ours.draws) or not len(theirs.draws):
        return Spread(Estimate.of(apart.value / whole), std)
    both = apart.draws / (ours.draws + theirs.draws)
    pairing = apart.estimate.replicates / (ours.estimate.replicates + theirs.estimate.replicates)
    (low,), (high,) = percentile_interval(both[:, None])
    if apart.estimate.se is None or not np.isfinite(low):
        return Spread(Estimate.of(apart.value / whole), std)
    se = apart.estimate.se / whole
    return Spread(Estimate(apart.value / whole, float(low), float(high), se, pairing), std, both)


def _paired_effects(first: Tally, second: Tally, group: int | None) -> tuple[Array, list[NDArray[np.int64]]]:
    """What each image adds to the difference in each repeat, and the clusters it is in.

    Those are images, and where texts are clusters too, the texts of both: images of which one speaker says the same
    are alike in what the other says of them.
    """
    parts = (first, second)
    effect = np.concatenate([first.influence(group, 0), -second.influence(group, 0)])
    _, image = sorted_clusters([tally.images[place] for tally in parts for place in tally.image])
    repeat = np.concatenate([tally.repeat for tally in parts])
    keys, pair = np.unique(repeat * (image.max(initial=0) + 1) + image, return_inverse=True)
    summed = np.bincount(pair, weights=effect).astype(np.float64)
    ways = [keys % (image.max(initial=0) + 1)]
    start = 0
    for tally in parts:
        mine = pair[start : start + len(tally.repeat)]
        start += len(tally.repeat)
        if tally.texts != tally.images:
            text = np.arange(
                len(tally.texts), len(tally.texts) + len(keys)
            )  # of an image it says nothing of: its own
            text[mine] = tally.text
            ways.append(np.unique(text, return_inverse=True)[1])
    return summed, ways


def _spread(
    points: Array, drawn: Array, pairing: Array, variance: float, drawn_variance: float, seed: int
) -> Spread:
    """points (repeats), draws (repeats, draws): the draws have one variance and should have another."""
    if not np.isfinite(points).all():
        return Spread(Estimate.of(None))
    value = float(points.mean()) * PERCENT
    std = float(points.std(ddof=1)) * PERCENT if len(points) > 1 else None
    if not drawn.shape[1] or drawn_variance <= 0:
        return Spread(Estimate.of(value), std)
    wider = math.sqrt(variance / drawn_variance)
    scaled = (points[:, None] + wider * (drawn - points[:, None])) * PERCENT
    data, both = scaled.mean(axis=0), replicates_over_seeds(scaled, points * PERCENT, seed)
    (low,), (high,) = percentile_interval(both[:, None])
    known = data[np.isfinite(data)]
    if not np.isfinite(low) or len(known) < 2:
        return Spread(Estimate.of(value), std)
    se = float(known.std(ddof=1))
    found = Estimate(value, float(low), float(high), se, pairing.mean(axis=0) * PERCENT)
    return Spread(found, std, both)
