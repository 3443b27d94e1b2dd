"""Recall at k of image-text retrieval, computed from a matrix of scores.

A row of the matrix is a query and its columns are the candidates; higher scores are better. Rows and columns
have an image index. A column is relevant to a row if both have the same index: the relevant candidates of an
image are its captions, that of a caption is the image that it describes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class RankPositions:
    """The rank of the best relevant column of each row. Arrays have one value per row."""

    n_above: IntArray  # number of columns with a higher score
    n_tied: IntArray  # number of columns with the same score, including the column itself
    n_tied_relevant: IntArray  # number of relevant columns among the tied ones
    first_relevant: IntArray  # index of the first relevant tied column

    @staticmethod
    def concat(parts: Sequence[RankPositions]) -> RankPositions:
        """Concatenate the rows of several parts."""
        return RankPositions(
            *(
                np.concatenate([getattr(part, field.name) for part in parts])
                for field in fields(RankPositions)
            )
        )

    @property
    def rank(self) -> IntArray:
        """Return the rank, from 1; of tied columns the best possible rank."""
        return self.n_above + 1


def rank_positions(scores: Array, rows: IntArray, columns: IntArray) -> RankPositions:
    """Return the rank of the best relevant column of each row. Each row needs a relevant column.

    >>> positions = rank_positions(np.array([[0.9, 0.4, 0.4, 0.1]]), np.array([7]), np.array([3, 7, 5, 7]))
    >>> positions.n_above.tolist(), positions.n_tied.tolist(), positions.n_tied_relevant.tolist()
    ([1], [2], [1])
    """
    relevant: Mask = rows[:, None] == columns[None, :]
    if not relevant.any(axis=1).all():
        raise ValueError("Every row must have a relevant column.")
    if np.isnan(scores).any():
        raise ValueError("Scores must be numbers.")
    best = np.where(relevant, scores, -np.inf).max(axis=1)[:, None]
    equal = scores == best
    relevant_tied = equal & relevant
    return RankPositions(
        (scores > best).sum(axis=1),
        equal.sum(axis=1),
        relevant_tied.sum(axis=1),
        relevant_tied.argmax(axis=1),
    )


def hit_probability(positions: RankPositions, k: int) -> Array:
    """Return the probability that a relevant column is among the first k of each row, with ties in random order.

    If s of the tied columns are among the first k, none of them is relevant with probability
    C(tied - relevant, s) / C(tied, s).

    >>> positions = rank_positions(np.array([[0.9, 0.4, 0.4, 0.1]]), np.array([7]), np.array([3, 7, 5, 7]))
    >>> [hit_probability(positions, k).tolist() for k in (1, 2, 3)]  # one is above; then a tie of two
    [[0.0], [0.5], [1.0]]
    >>> tied = rank_positions(np.zeros((1, 10)), np.array([0]), np.array([0, 0, 1, 2, 3, 4, 5, 6, 7, 8]))
    >>> hit_probability(tied, 5).round(4).tolist()  # 1 - (8 x 7 x 6 x 5 x 4) / (10 x 9 x 8 x 7 x 6)
    [0.7778]
    """
    n_tied_in_top = np.clip(k - positions.n_above, 0, positions.n_tied)
    p_miss = np.ones(len(n_tied_in_top))
    for n_sampled in range(int(n_tied_in_top.max(initial=0))):
        n_left = np.maximum(positions.n_tied - n_sampled, 1)
        n_irrelevant = np.maximum(positions.n_tied - positions.n_tied_relevant - n_sampled, 0)
        p_miss = np.where(n_sampled < n_tied_in_top, p_miss * n_irrelevant / n_left, p_miss)
    p_hit: Array = 1.0 - p_miss
    return p_hit


def chance_hit_probability(n_relevant: IntArray, n_columns: int, k: int) -> Array:
    """Return the hit probability of a random ranking, for rows with `n_relevant` relevant columns.

    >>> chance_hit_probability(np.array([1, 5]), 25, 5).round(4).tolist()
    [0.2, 0.7082]
    """
    zeros = np.zeros_like(n_relevant)
    return hit_probability(RankPositions(zeros, np.full_like(n_relevant, n_columns), n_relevant, zeros), k)


def top_k(scores: Array, k: int, weights: IntArray | None = None) -> Mask:
    """Return whether each column is among the first k of its row, or tied with one that is.

    The weight of a column is the number of identical columns that it stands for.

    >>> top_k(np.array([[0.9, 0.4, 0.4, 0.1]]), 2).tolist()
    [[True, True, True, False]]
    >>> top_k(np.array([[0.9, 0.4, 0.3, 0.1]]), 3, np.array([2, 1, 1, 1])).tolist()
    [[True, True, False, False]]
    """
    order = np.argsort(-scores, axis=1, kind="stable")
    cumulative = np.cumsum(np.ones_like(order) if weights is None else weights[order], axis=1)
    last_rank = np.minimum((cumulative < k).sum(axis=1), scores.shape[1] - 1)
    threshold = np.take_along_axis(scores, np.take_along_axis(order, last_rank[:, None], axis=1), axis=1)
    is_top: Mask = (scores >= threshold) if k > 0 else np.zeros(scores.shape, dtype=bool)
    return is_top


def rerank_order(scores: Array, match_scores: Array, candidates: Mask) -> Array:
    """Return scores that rank candidates first, by their match scores, and then the other columns by `scores`.

    >>> order = rerank_order(np.array([[0.9, 0.8, 0.7, 0.1, 0.7]]), np.array([[-3.0, -1.0, 5.0, 5.0, 5.0]]),
    ...                np.array([[True, True, False, False, False]]))
    >>> order.tolist()  # the second column, the first, two tied ones, the fourth
    [[7.0, 8.0, 2.0, 1.0, 2.0]]
    """
    rest_ranks = rankdata(scores, method="dense", axis=1)
    candidate_ranks = rankdata(np.where(candidates, match_scores, -np.inf), method="dense", axis=1)
    order: Array = np.where(candidates, scores.shape[1] + candidate_ranks, rest_ranks).astype(np.float64)
    return order
