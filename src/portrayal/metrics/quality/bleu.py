"""BLEU: how many of a caption's runs of words are in a reference, and whether the caption is long enough."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import LONGEST, Array, Places, Round

_TINY, _SMALL = 1e-15, 1e-9  # what coco-caption adds, so that a caption without a match has a score


def overlap_parts(round_: Round) -> Array:
    """What BLEU adds up, a row per image: runs that a reference has too (as often), runs, words, and the words of the
    reference nearest in length."""
    images = len(round_)
    right = np.zeros((images, LONGEST))
    for column, shared in enumerate(round_.shared):
        most = np.zeros(len(shared.caption), dtype=np.int64)  # times in any one reference
        np.maximum.at(most, shared.of_caption, shared.reference_count[shared.of_reference])
        agreed = np.minimum(most, shared.caption_count)
        right[:, column] = np.bincount(shared.caption, weights=agreed, minlength=images)
    said = round_.sentences.lengths[round_.captions]
    runs = np.maximum(said[:, None] - np.arange(LONGEST), 0)
    return np.column_stack([right, runs, said, _nearest_length(round_, said)]).astype(np.float64)


def _nearest_length(round_: Round, said: Places) -> Array:
    """Of the references of each image; of two as near, the shorter."""
    lengths = round_.sentences.lengths[round_.references]
    order = np.lexsort((lengths, np.abs(lengths - said[round_.image]), round_.image))
    first = np.concatenate([[0], np.cumsum(round_.per_image)[:-1]])
    return np.asarray(lengths[order][first], dtype=np.float64)


def bleu(parts: Array) -> Array:
    """BLEU-1 to BLEU-4 of summed parts: (draws, parts) to (draws, 4)."""
    right, runs = parts[:, :LONGEST], parts[:, LONGEST : 2 * LONGEST]
    said, expected = parts[:, -2], parts[:, -1]
    precision = np.cumsum(np.log((right + _TINY) / (runs + _SMALL)), axis=1) / np.arange(1, LONGEST + 1)
    ratio = (said + _TINY) / (expected + _SMALL)
    made: Array = np.exp(precision + np.minimum(1 - 1 / ratio, 0.0)[:, None])
    return made
