"""ROUGE-L: the longest run of words, with gaps, that a caption and a reference have in common."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import Array, Places, Round

_BETA = 1.2  # how much more recall counts than precision, as coco-caption has it
_TOGETHER = 4096  # pairs that are compared at once


def rouge_l(round_: Round) -> Array:
    """Of every image: from the best precision and the best recall among its references."""
    common = _common(round_)
    lengths = np.maximum(round_.sentences.lengths, 1)
    precision, recall = np.zeros(len(round_)), np.zeros(len(round_))
    np.maximum.at(precision, round_.image, common / lengths[round_.captions][round_.image])
    np.maximum.at(recall, round_.image, common / lengths[round_.references])
    below = recall + _BETA**2 * precision
    made: Array = np.divide(
        (1 + _BETA**2) * precision * recall, below, out=np.zeros_like(below), where=below > 0
    )
    return made


def _common(round_: Round) -> Places:
    """Words in common, in order, of every reference and its image's caption."""
    lengths = round_.sentences.lengths
    captions = round_.captions[round_.image]
    made = np.zeros(len(captions), dtype=np.int64)
    order = np.lexsort(
        (lengths[captions], lengths[round_.references])
    )  # alike in length: little is filled up
    for start in range(0, len(order), _TOGETHER):
        pairs = order[start : start + _TOGETHER]
        made[pairs] = longest_common(
            round_.sentences.table(captions[pairs]), round_.sentences.table(round_.references[pairs])
        )
    return made


def longest_common(left: Places, right: Places) -> Places:
    """Length of the longest common subsequence of each pair of rows; -1 on the right is no word."""
    best = np.zeros((len(left), left.shape[1] + 1), dtype=np.int16)  # with the first i words of the left row
    for column in range(right.shape[1]):
        word = right[:, column, None]
        longer = best[:, :-1] + ((left == word) & (word >= 0))
        np.maximum(best[:, 1:], longer, out=best[:, 1:])
        np.maximum.accumulate(best, axis=1, out=best)
    return best[:, -1].astype(np.int64)
