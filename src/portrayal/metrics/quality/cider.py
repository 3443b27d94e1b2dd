"""CIDEr: similarity of captions and references by tf-idf weighted n-grams (Vedantam et al. 2015)."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import MAX_N, Array, ReferenceComparison

# Standard deviation of the length penalty, in bigrams.
SIGMA = 6.0
SCALE = 10.0


def cider_scores(comparison: ReferenceComparison) -> tuple[Array, Array]:
    """CIDEr-D (which coco-caption calls CIDEr) and plain CIDEr of every image.

    CIDEr-D clips the counts of a caption to those of the reference, and penalises a difference in length; plain CIDEr
    is the cosine alone.
    """
    images, references = len(comparison), len(comparison.references)
    max_idf = np.log(images)
    clipped, plain = np.zeros(references), np.zeros(references)
    for shared in comparison.shared_ngrams:
        caption_tfidf = shared.caption_count * (max_idf - np.log(np.maximum(shared.caption_frequency, 1)))
        reference_tfidf = shared.reference_count * (
            max_idf - np.log(np.maximum(shared.reference_frequency, 1))
        )
        # An n-gram that occurs once in the corpus has the maximum idf and no match.
        caption_norm = (
            np.bincount(shared.caption, weights=caption_tfidf**2, minlength=images)
            + shared.caption_unique * max_idf**2
        )
        reference_norm = np.bincount(shared.reference, weights=reference_tfidf**2, minlength=references)
        norm = np.sqrt(caption_norm)[comparison.image_index] * np.sqrt(
            reference_norm + shared.reference_unique * max_idf**2
        )
        caption_weight, reference_weight = (
            caption_tfidf[shared.shared_caption],
            reference_tfidf[shared.shared_reference],
        )
        reference_index = shared.reference[shared.shared_reference]
        for total, product in (
            (clipped, np.minimum(caption_weight, reference_weight) * reference_weight),
            (plain, caption_weight * reference_weight),
        ):
            dot = np.bincount(reference_index, weights=product, minlength=references)
            total += np.divide(dot, norm, out=np.zeros(references), where=norm > 0)
    # coco-caption uses the number of bigrams as length, which differs only for captions without one.
    n_bigrams = np.maximum(comparison.sentences.lengths - 1, 0)
    length_difference = (
        n_bigrams[comparison.captions][comparison.image_index] - n_bigrams[comparison.references]
    )
    clipped *= np.exp(-(length_difference**2) / (2 * SIGMA**2))
    return _mean_per_image(comparison, clipped), _mean_per_image(comparison, plain)


def _mean_per_image(comparison: ReferenceComparison, values: Array) -> Array:
    sums = np.bincount(comparison.image_index, weights=values, minlength=len(comparison))
    return np.asarray(SCALE / MAX_N * sums / comparison.references_per_image)
