"""CIDEr: similarity of captions and references by tf-idf weighted n-grams (Vedantam et al. 2015)."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import MAX_N, Array, ReferenceComparison

# Standard deviation of the length penalty, in bigrams.
SIGMA = 6.0
SCALE = 10.0


def cider_scores(comparison: ReferenceComparison) -> tuple[Array, Array]:
    """CIDEr-D (which coco-caption calls CIDEr) and plain CIDEr of each image.

    CIDEr-D clips the weights of a caption to those of the reference and penalises a difference in length. Plain CIDEr
    is the cosine similarity only.
    """
    n_images, n_references = len(comparison), len(comparison.references)
    max_idf = np.log(n_images)
    clipped, plain = np.zeros(n_references), np.zeros(n_references)
    for shared in comparison.shared_ngrams:
        caption_tfidf = shared.caption_count * (
            max_idf - np.log(np.maximum(shared.caption_document_frequency, 1))
        )
        reference_tfidf = shared.reference_count * (
            max_idf - np.log(np.maximum(shared.reference_document_frequency, 1))
        )
        # N-grams that occur once in the corpus have the maximum idf and no match.
        caption_norm = (
            np.bincount(shared.caption_index, weights=caption_tfidf**2, minlength=n_images)
            + shared.caption_unique * max_idf**2
        )
        reference_norm = np.bincount(
            shared.reference_index, weights=reference_tfidf**2, minlength=n_references
        )
        norm = np.sqrt(caption_norm)[comparison.image_index] * np.sqrt(
            reference_norm + shared.reference_unique * max_idf**2
        )
        caption_weight, reference_weight = (
            caption_tfidf[shared.shared_caption],
            reference_tfidf[shared.shared_reference],
        )
        reference_index = shared.reference_index[shared.shared_reference]
        for reference_scores, product in (
            (clipped, np.minimum(caption_weight, reference_weight) * reference_weight),
            (plain, caption_weight * reference_weight),
        ):
            dot = np.bincount(reference_index, weights=product, minlength=n_references)
            reference_scores += np.divide(dot, norm, out=np.zeros(n_references), where=norm > 0)
    # coco-caption measures length in bigrams. The difference is the same unless a text has no bigram.
    n_bigrams = np.maximum(comparison.sentences.lengths - 1, 0)
    length_difference = (
        n_bigrams[comparison.captions][comparison.image_index] - n_bigrams[comparison.references]
    )
    clipped *= np.exp(-(length_difference**2) / (2 * SIGMA**2))
    return _mean_per_image(comparison, clipped), _mean_per_image(comparison, plain)


def _mean_per_image(comparison: ReferenceComparison, values: Array) -> Array:
    sums = np.bincount(comparison.image_index, weights=values, minlength=len(comparison))
    return np.asarray(SCALE / MAX_N * sums / comparison.references_per_image)
