"""How often a search finds what it was asked for: recall among the first k, on bare matrices of scores.

A row of scores is a search, and its columns are what can be found; the higher the better. Rows and columns are numbered
by what they are about, and a column is a row's own where both have the same number: of captions that are searched by
a picture all those that were said of it, of pictures that are searched by a caption the one it was said of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Standing:
    """Where the best of each row's own stands, an entry for each row."""

    better: Whole  # columns that come before it for certain
    tied: Whole  # columns of its score, itself among them
    own: Whole  # how many of these are the row's own
    column: Whole  # the first of these

    @staticmethod
    def together(parts: Sequence[Standing]) -> Standing:
        """Rows that were looked at apart."""
        return Standing(
            *(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Standing))
        )

    @property
    def rank(self) -> Whole:
        """1 for the first; where scores are equal, the best place that it can have."""
        return self.better + 1


def standing(scores: Array, rows: Whole, columns: Whole) -> Standing:
    """Each row needs a column of its own.

    >>> found = standing(np.array([[0.9, 0.4, 0.4, 0.1]]), np.array([7]), np.array([3, 7, 5, 7]))
    >>> found.better.tolist(), found.tied.tolist(), found.own.tolist()  # its own: 0.4, tied with one other, and 0.1
    ([1], [2], [1])
    """
    mine: Mask = rows[:, None] == columns[None, :]
    if not mine.any(axis=1).all():
        raise ValueError("Every row must have a column of its own to find.")
    if np.isnan(scores).any():
        raise ValueError("Scores must be numbers.")
    best = np.where(mine, scores, -np.inf).max(axis=1)[:, None]
    equal = scores == best
    both = equal & mine
    return Standing((scores > best).sum(axis=1), equal.sum(axis=1), both.sum(axis=1), both.argmax(axis=1))


def hits(found: Standing, k: int) -> Array:
    """How likely one of a row's own is among its first k, if columns of equal score come in random order.

    Of the tied block the first k hold s places, and all of these go to others in C(tied - own, s) of C(tied, s) orders.

    >>> found = standing(np.array([[0.9, 0.4, 0.4, 0.1]]), np.array([7]), np.array([3, 7, 5, 7]))
    >>> [hits(found, k).tolist() for k in (1, 2, 3)]  # one is better; then a coin is tossed
    [[0.0], [0.5], [1.0]]
    >>> level = standing(np.zeros((1, 10)), np.array([0]), np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8]))
    >>> hits(level, 5).round(4).tolist()  # two of ten are its own: 1 - (8 x 7 x 6 x 5 x 4) / (10 x 9 x 8 x 7 x 6)
    [0.7778]
    """
    places = np.clip(k - found.better, 0, found.tied)
    missed = np.ones(len(places))
    for taken in range(int(places.max(initial=0))):
        left = np.maximum(found.tied - taken, 1)
        others = np.maximum(found.tied - found.own - taken, 0)
        missed = np.where(taken < places, missed * others / left, missed)
    made: Array = 1.0 - missed
    return made


def chance(own: Whole, columns: int, k: int) -> Array:
    """What random order gives a row with so many columns of its own.

    >>> chance(np.array([1, 5]), 25, 5).round(4).tolist()
    [0.2, 0.7082]
    """
    nothing = np.zeros_like(own)
    return hits(Standing(nothing, np.full_like(own, columns), own, nothing), k)


def first(scores: Array, many: int, weights: Whole | None = None) -> Mask:
    """The columns among the first `many` of each row, and those that have the last one's score too.

    With `weights` a column stands for several that are all alike.

    >>> first(np.array([[0.9, 0.4, 0.4, 0.1]]), 2).tolist()
    [[True, True, True, False]]
    >>> first(np.array([[0.9, 0.4, 0.3, 0.1]]), 3, np.array([2, 1, 1, 1])).tolist()
    [[True, True, False, False]]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    before = np.cumsum(np.ones_like(order) if weights is None else weights[order], axis=1)
    last = np.minimum((before < many).sum(axis=1), scores.shape[1] - 1)
    least = np.take_along_axis(scores, np.take_along_axis(order, last[:, None], axis=1), axis=1)
    made: Mask = (scores >= least) if many > 0 else np.zeros(scores.shape, dtype=bool)
    return made


def merged(scores: Array, second: Array, chosen: Mask) -> Array:
    """One order from two: the chosen columns come first, by the second scores; the others follow by their own.

    >>> order = merged(np.array([[0.9, 0.8, 0.7, 0.1, 0.7]]), np.array([[-3.0, -1.0, 5.0, 5.0, 5.0]]),
    ...                np.array([[True, True, False, False, False]]))
    >>> order.tolist()  # the second column before the first; then two that are tied; then the fourth
    [[7.0, 8.0, 2.0, 1.0, 2.0]]
    """
    behind = rankdata(scores, method="dense", axis=1)
    ahead = rankdata(np.where(chosen, second, -np.inf), method="dense", axis=1)
    made: Array = np.where(chosen, scores.shape[1] + ahead, behind).astype(np.float64)
    return made
