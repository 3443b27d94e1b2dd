"""ROUGE-L: longest common subsequence of words of a caption and a reference (Lin 2004)."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import Array, Indices, ReferenceComparison

# Weight of recall relative to precision, as in coco-caption.
_BETA = 1.2
# Number of pairs that are compared at once.
_BATCH_SIZE = 4096


def rouge_l(comparison: ReferenceComparison) -> Array:
    """F score of every image, from the best precision and the best recall among its references."""
    common = _common_lengths(comparison)
    lengths = np.maximum(comparison.sentences.lengths, 1)
    precision, recall = np.zeros(len(comparison)), np.zeros(len(comparison))
    np.maximum.at(
        precision, comparison.image_index, common / lengths[comparison.captions][comparison.image_index]
    )
    np.maximum.at(recall, comparison.image_index, common / lengths[comparison.references])
    denominator = recall + _BETA**2 * precision
    scores: Array = np.divide(
        (1 + _BETA**2) * precision * recall,
        denominator,
        out=np.zeros_like(denominator),
        where=denominator > 0,
    )
    return scores


def _common_lengths(comparison: ReferenceComparison) -> Indices:
    """Length of the longest common subsequence of every reference and the caption of its image."""
    lengths = comparison.sentences.lengths
    captions = comparison.captions[comparison.image_index]
    common = np.zeros(len(captions), dtype=np.int64)
    # Pairs of similar length together, so that little is padded.
    order = np.lexsort((lengths[captions], lengths[comparison.references]))
    for start in range(0, len(order), _BATCH_SIZE):
        pairs = order[start : start + _BATCH_SIZE]
        common[pairs] = longest_common(
            comparison.sentences.table(captions[pairs]),
            comparison.sentences.table(comparison.references[pairs]),
        )
    return common


def longest_common(left: Indices, right: Indices) -> Indices:
    """Length of the longest common subsequence of each pair of rows; -1 on the right is padding."""
    best = np.zeros((len(left), left.shape[1] + 1), dtype=np.int16)  # for the first i words of the left row
    for column in range(right.shape[1]):
        word = right[:, column, None]
        longer = best[:, :-1] + ((left == word) & (word >= 0))
        np.maximum(best[:, 1:], longer, out=best[:, 1:])
        np.maximum.accumulate(best, axis=1, out=best)
    return best[:, -1].astype(np.int64)
