"""BLEU: n-gram precision of captions with a brevity penalty (Papineni et al. 2002)."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import MAX_N, Array, Indices, ReferenceComparison

# Constants that coco-caption adds, so that a caption without a match has a score.
_TINY, _SMALL = 1e-15, 1e-9


def bleu_counts(comparison: ReferenceComparison) -> Array:
    """Counts that BLEU sums, a row per image: clipped n-gram matches, n-grams, words, and words of the closest
    reference in length."""
    images = len(comparison)
    matches = np.zeros((images, MAX_N))
    for column, shared in enumerate(comparison.shared_ngrams):
        max_count = np.zeros(len(shared.caption), dtype=np.int64)  # maximum count in a reference
        np.maximum.at(max_count, shared.shared_caption, shared.reference_count[shared.shared_reference])
        clipped = np.minimum(max_count, shared.caption_count)
        matches[:, column] = np.bincount(shared.caption, weights=clipped, minlength=images)
    caption_lengths = comparison.sentences.lengths[comparison.captions]
    ngram_totals = np.maximum(caption_lengths[:, None] - np.arange(MAX_N), 0)
    return np.column_stack(
        [matches, ngram_totals, caption_lengths, _nearest_length(comparison, caption_lengths)]
    ).astype(np.float64)


def _nearest_length(comparison: ReferenceComparison, caption_lengths: Indices) -> Array:
    """Length of the reference closest in length, for each image; of two equally close, the shorter."""
    lengths = comparison.sentences.lengths[comparison.references]
    order = np.lexsort(
        (lengths, np.abs(lengths - caption_lengths[comparison.image_index]), comparison.image_index)
    )
    first = np.concatenate([[0], np.cumsum(comparison.references_per_image)[:-1]])
    return np.asarray(lengths[order][first], dtype=np.float64)


def bleu(counts: Array) -> Array:
    """BLEU-1 to BLEU-4 of summed counts: (resamples, counts) to (resamples, 4)."""
    matches, ngram_totals = counts[:, :MAX_N], counts[:, MAX_N : 2 * MAX_N]
    caption_length, reference_length = counts[:, -2], counts[:, -1]
    precision = np.cumsum(np.log((matches + _TINY) / (ngram_totals + _SMALL)), axis=1) / np.arange(
        1, MAX_N + 1
    )
    ratio = (caption_length + _TINY) / (reference_length + _SMALL)
    scores: Array = np.exp(precision + np.minimum(1 - 1 / ratio, 0.0)[:, None])
    return scores
