"""BLEU: n-gram precision of captions with a brevity penalty (Papineni et al. 2002)."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import MAX_N, Array, Indices, ReferenceComparison

# Constants that coco-caption adds to counts, so that the score of a caption without a match is defined.
_MATCH_SMOOTHING, _TOTAL_SMOOTHING = 1e-15, 1e-9


def bleu_counts(comparison: ReferenceComparison) -> Array:
    """The counts that BLEU sums, with a row for each image.

    Columns are clipped n-gram matches and n-grams for each n, words of the caption, and words of the reference that is
    closest in length.
    """
    n_images = len(comparison)
    matches = np.zeros((n_images, MAX_N))
    for size_index, shared in enumerate(comparison.shared_ngrams):
        max_count = np.zeros(len(shared.caption_index), dtype=np.int64)  # maximum count in a reference
        np.maximum.at(max_count, shared.shared_caption, shared.reference_count[shared.shared_reference])
        clipped = np.minimum(max_count, shared.caption_count)
        matches[:, size_index] = np.bincount(shared.caption_index, weights=clipped, minlength=n_images)
    caption_lengths = comparison.sentences.lengths[comparison.captions]
    ngram_totals = np.maximum(caption_lengths[:, None] - np.arange(MAX_N), 0)
    return np.column_stack(
        [matches, ngram_totals, caption_lengths, _closest_reference_lengths(comparison, caption_lengths)]
    ).astype(np.float64)


def _closest_reference_lengths(comparison: ReferenceComparison, caption_lengths: Indices) -> Array:
    """The length of the closest reference in length for each image; the shorter of two that are equally close."""
    reference_lengths = comparison.sentences.lengths[comparison.references]
    order = np.lexsort(
        (
            reference_lengths,
            np.abs(reference_lengths - caption_lengths[comparison.image_index]),
            comparison.image_index,
        )
    )
    first_in_order = np.concatenate([[0], np.cumsum(comparison.references_per_image)[:-1]])
    return np.asarray(reference_lengths[order][first_in_order], dtype=np.float64)


def bleu(counts: Array) -> Array:
    """BLEU-1 to BLEU-4 from summed counts: shape (resamples, counts) to (resamples, 4)."""
    matches, ngram_totals = counts[:, :MAX_N], counts[:, MAX_N : 2 * MAX_N]
    caption_length, reference_length = counts[:, -2], counts[:, -1]
    log_precision = np.cumsum(
        np.log((matches + _MATCH_SMOOTHING) / (ngram_totals + _TOTAL_SMOOTHING)), axis=1
    ) / np.arange(1, MAX_N + 1)
    length_ratio = (caption_length + _MATCH_SMOOTHING) / (reference_length + _TOTAL_SMOOTHING)
    scores: Array = np.exp(log_precision + np.minimum(1 - 1 / length_ratio, 0.0)[:, None])
    return scores
