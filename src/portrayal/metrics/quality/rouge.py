"""ROUGE-L: longest common subsequence of words of a caption and a reference (Lin 2004)."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import Array, Indices, ReferenceComparison

# Weight of recall relative to precision, as in coco-caption.
_BETA = 1.2
# Number of pairs in a batch.
_BATCH_SIZE = 4096


def rouge_l(comparison: ReferenceComparison) -> Array:
    """The F score of each image, from the best precision and the best recall among its references."""
    lcs = _lcs_lengths_by_reference(comparison)
    lengths = np.maximum(comparison.sentences.lengths, 1)
    precision, recall = np.zeros(len(comparison)), np.zeros(len(comparison))
    np.maximum.at(
        precision, comparison.image_index, lcs / lengths[comparison.captions][comparison.image_index]
    )
    np.maximum.at(recall, comparison.image_index, lcs / lengths[comparison.references])
    denominator = recall + _BETA**2 * precision
    scores: Array = np.divide(
        (1 + _BETA**2) * precision * recall,
        denominator,
        out=np.zeros_like(denominator),
        where=denominator > 0,
    )
    return scores


def _lcs_lengths_by_reference(comparison: ReferenceComparison) -> Indices:
    """The length of the longest common subsequence (LCS) of each reference and the caption of its image."""
    lengths = comparison.sentences.lengths
    captions = comparison.captions[comparison.image_index]
    lcs = np.zeros(len(captions), dtype=np.int64)
    # Pairs of similar length are in the same batch, so that there is little padding.
    order = np.lexsort((lengths[captions], lengths[comparison.references]))
    for start in range(0, len(order), _BATCH_SIZE):
        pairs = order[start : start + _BATCH_SIZE]
        lcs[pairs] = lcs_lengths(
            comparison.sentences.padded_words(captions[pairs]),
            comparison.sentences.padded_words(comparison.references[pairs]),
        )
    return lcs


def lcs_lengths(left: Indices, right: Indices) -> Indices:
    """The length of the longest common subsequence of each pair of rows. -1 on the right is padding."""
    lengths = np.zeros(
        (len(left), left.shape[1] + 1), dtype=np.int16
    )  # for the first i words of the left row
    for column in range(right.shape[1]):
        word = right[:, column, None]
        extended = lengths[:, :-1] + ((left == word) & (word >= 0))
        np.maximum(lengths[:, 1:], extended, out=lengths[:, 1:])
        np.maximum.accumulate(lengths, axis=1, out=lengths)
    return lengths[:, -1].astype(np.int64)
