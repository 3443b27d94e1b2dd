"""Belief revision: the probability of a caption given an object in the image."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from portrayal.errors import PortrayalError

# Tolerance for cosines outside of their range.
_ROUNDING = 1e-6


def belief_revision(
    hypothesis: ArrayLike, similarity: ArrayLike, confidence: ArrayLike, evidence: str = "positive"
) -> NDArray[np.float64]:
    """P(caption | object): the probability of a caption, revised by an object in the image.

    alpha = ((1 - s) / (1 + s)) ** (1 - c); positive evidence: P ** alpha, negative: 1 - (1 - P) ** alpha (Blok, Medin
    and Osherson 2003, as Sabir and Padro 2023 use it). Similarity 0 or confidence 1 change nothing; a similarity near 1
    makes a caption certain under positive evidence, one below 0 makes it less probable.

    Parameters
    ----------
    hypothesis
        P, the probability of the caption: a number or an array.
    similarity
        s, the similarity of caption and object, -1 to 1.
    confidence
        c, the probability of the object.
    evidence
        "positive" or "negative".

    Returns
    -------
    ndarray
        The revised probabilities; nan where an input is nan.

    Examples
    --------
    >>> round(float(belief_revision(0.12759140133857727, 0.5452305674552917, 0.2183)), 12)
    0.453207141502
    >>> belief_revision([0.25, 0.25], [0.0, 0.6], 0.5).tolist()
    [0.25, 0.5]
    """
    prior = _checked_range("hypothesis", hypothesis, 0.0, 1.0)
    if evidence not in ("positive", "negative"):
        raise PortrayalError(f"The 'evidence' must be positive or negative. Got {evidence!r} instead.")
    alpha = exponent(similarity, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):  # log of 0 where P is 1
        revised = prior**alpha if evidence == "positive" else -np.expm1(alpha * np.log1p(-prior))
    certain = evidence == "negative" and (prior == 1) & (alpha == 0)
    unknown = np.isnan(prior) | np.isnan(alpha)  # numpy: 1**nan and nan**0 are 1
    return np.where(unknown, np.nan, np.where(certain, 0.0, revised))


def exponent(similarity: ArrayLike, confidence: ArrayLike) -> NDArray[np.float64]:
    """alpha: 1 where the object changes nothing, below 1 where it makes the caption more probable."""
    similarities = _checked_range("similarity", similarity, -1.0, 1.0)
    confidences = _checked_range("confidence", confidence, 0.0, 1.0)
    with np.errstate(divide="ignore"):  # division by 0 at similarity -1, which excludes the caption
        alpha = ((1 - similarities) / (1 + similarities)) ** (1 - confidences)
    return np.where(np.isnan(similarities) | np.isnan(confidences), np.nan, alpha)


def _checked_range(name: str, values: ArrayLike, low: float, high: float) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if np.any((array < low - _ROUNDING) | (array > high + _ROUNDING)):
        first_outside = array[(array < low - _ROUNDING) | (array > high + _ROUNDING)].reshape(-1)[0]
        raise PortrayalError(
            f"The '{name}' must lie between {low:g} and {high:g}. Got {first_outside:g} instead."
        )
    return np.clip(array, low, high)
