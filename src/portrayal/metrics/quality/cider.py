"""CIDEr: how like the references a caption is, where words that are said of few images count more."""

from __future__ import annotations

import numpy as np

from portrayal.metrics.quality.ngrams import LONGEST, Array, Round

SPREAD = 6.0  # of the penalty for another length, in pairs of words
TIMES = 10.0


def consensus(round_: Round) -> tuple[Array, Array]:
    """CIDEr-D (what coco-caption calls CIDEr) and plain CIDEr of every image.

    D clips what a caption repeats to what the reference has, and lowers the score of a caption that is longer or
    shorter than it; plain CIDEr is the cosine alone.
    """
    images, references = len(round_), len(round_.references)
    rarity = np.log(images)
    clipped, plain = np.zeros(references), np.zeros(references)
    for shared in round_.shared:
        said = shared.caption_count * (rarity - np.log(np.maximum(shared.caption_frequency, 1)))
        written = shared.reference_count * (rarity - np.log(np.maximum(shared.reference_frequency, 1)))
        # A run that is nowhere else is as rare as can be, and shared with nothing.
        own = (
            np.bincount(shared.caption, weights=said**2, minlength=images) + shared.caption_alone * rarity**2
        )
        theirs = np.bincount(shared.reference, weights=written**2, minlength=references)
        norm = np.sqrt(own)[round_.image] * np.sqrt(theirs + shared.reference_alone * rarity**2)
        mine, other = said[shared.of_caption], written[shared.of_reference]
        whose = shared.reference[shared.of_reference]
        for total, product in ((clipped, np.minimum(mine, other) * other), (plain, mine * other)):
            dot = np.bincount(whose, weights=product, minlength=references)
            total += np.divide(dot, norm, out=np.zeros(references), where=norm > 0)
    # coco-caption takes the number of pairs of words for the length, which differs only for captions without one.
    pairs = np.maximum(round_.sentences.lengths - 1, 0)
    apart = pairs[round_.captions][round_.image] - pairs[round_.references]
    clipped *= np.exp(-(apart**2) / (2 * SPREAD**2))
    return _mean_of_image(round_, clipped), _mean_of_image(round_, plain)


def _mean_of_image(round_: Round, values: Array) -> Array:
    sums = np.bincount(round_.image, weights=values, minlength=len(round_))
    return np.asarray(TIMES / LONGEST * sums / round_.per_image)
