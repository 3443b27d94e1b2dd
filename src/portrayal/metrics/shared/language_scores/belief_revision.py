"""Belief revision: how likely a caption is once an object has been seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from portrayal.errors import PortrayalError

_ROUNDING = 1e-6  # a cosine may lie this far outside of its range


def belief_revision(
    hypothesis: ArrayLike, similarity: ArrayLike, confidence: ArrayLike, evidence: str = "positive"
) -> NDArray[np.float64]:
    """P(caption | object) from P(caption), sim(caption, object) and P(object), each a number or an array.

    alpha = ((1 - s) / (1 + s)) ** (1 - c); positive evidence: P ** alpha, negative: 1 - (1 - P) ** alpha (Blok, Medin
    and Osherson 2003, as Sabir and Padro 2023 use it). Similarity 0 or confidence 1 change nothing; a similarity near 1
    makes a caption certain under positive evidence, one below 0 makes it less likely. What is unknown (nan) stays so.

    >>> round(float(belief_revision(0.12759140133857727, 0.5452305674552917, 0.2183)), 12)
    0.453207141502
    >>> belief_revision([0.25, 0.25], [0.0, 0.6], 0.5).tolist()
    [0.25, 0.5]
    """
    prior = _within("hypothesis", hypothesis, 0.0, 1.0)
    if evidence not in ("positive", "negative"):
        raise PortrayalError(f"The 'evidence' must be positive or negative. Got {evidence!r} instead.")
    alpha = exponent(similarity, confidence)
    with np.errstate(divide="ignore", invalid="ignore"):  # a caption that is certain: log of 0
        revised = prior**alpha if evidence == "positive" else -np.expm1(alpha * np.log1p(-prior))
    certain = evidence == "negative" and (prior == 1) & (alpha == 0)
    unknown = np.isnan(prior) | np.isnan(alpha)  # numpy takes 1 and 0 to any power for known
    return np.where(unknown, np.nan, np.where(certain, 0.0, revised))


def exponent(similarity: ArrayLike, confidence: ArrayLike) -> NDArray[np.float64]:
    """alpha: 1 where seeing the object changes nothing, below 1 where it makes the caption more likely."""
    close = _within("similarity", similarity, -1.0, 1.0)
    sure = _within("confidence", confidence, 0.0, 1.0)
    with np.errstate(divide="ignore"):  # similarity -1: the object rules the caption out
        made = ((1 - close) / (1 + close)) ** (1 - sure)
    return np.where(np.isnan(close) | np.isnan(sure), np.nan, made)


def _within(name: str, values: ArrayLike, low: float, high: float) -> NDArray[np.float64]:
    made = np.asarray(values, dtype=np.float64)
    if np.any((made < low - _ROUNDING) | (made > high + _ROUNDING)):
        wrong = made[(made < low - _ROUNDING) | (made > high + _ROUNDING)].reshape(-1)[0]
        raise PortrayalError(f"The '{name}' must lie between {low:g} and {high:g}. Got {wrong:g} instead.")
    return np.clip(made, low, high)
