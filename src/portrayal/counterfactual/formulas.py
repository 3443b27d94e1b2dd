"""From what a model says of factual and counterfactual pairs to bias (Zhang, Wang and Sang 2022, equations 3 to 6).

Arrays have a row for each instance. A picture is factual, counterfactual or that of the placebo; a text names the
person's own group or the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FACTUAL, COUNTERFACTUAL, PLACEBO = range(3)
OWN, OTHER = range(2)
LEAST_DROP = 0.1  # by which P(B | V) must fall: less, and the picture was not changed


@dataclass(frozen=True)
class Bias:
    """(instances, templates), as fractions, toward the instance's own group; nan where it is not defined."""

    by_both: Array  # b@v-l
    by_picture: Array  # b@v
    by_text: Array  # b@l

    def signed(self, signs: Array) -> Bias:
        """Toward the first group: signs are 1 where the person is of it, and -1 where of the second."""
        column = signs[:, None]
        return Bias(self.by_both * column, self.by_picture * column, self.by_text * column)


def drops(present: Array) -> Array:
    """By how much P(B | V) falls: (instances, pictures) -> (instances)."""
    return np.asarray(present[:, FACTUAL] - present[:, COUNTERFACTUAL])


def bias(target: Array, present: Array) -> Bias:
    """`target` is P(T | V, L): (instances, templates, pictures, texts); `present` is P(B | V).

    What Figure 6 of the paper prints: P(T) falls from .84 to .57 when P(B) is made to fall from .98 to .04.

    >>> target = np.array([[[[0.84, 0.84], [0.57, 0.57]]]])
    >>> float(bias(target, np.array([[0.98, 0.04]])).by_picture.round(3)[0, 0])
    0.287
    """
    by_both, by_picture = _denominators(present)
    fact = target[:, :, FACTUAL, OWN]
    return Bias(
        (target[:, :, COUNTERFACTUAL, OTHER] - fact) / by_both,
        (target[:, :, COUNTERFACTUAL, OWN] - fact) / by_picture,
        (target[:, :, FACTUAL, OTHER] - fact) / -1.0,
    )


def placebo(target: Array, present: Array) -> Bias:
    """What an attack as large, aimed at something else, does to the same numbers: damage that is no bias.

    The text of a pair is what it is in the counterfactual, so that only pixels differ; a text alone is not attacked.
    """
    by_both, by_picture = _denominators(present)
    return Bias(
        (target[:, :, PLACEBO, OTHER] - target[:, :, FACTUAL, OTHER]) / by_both,
        (target[:, :, PLACEBO, OWN] - target[:, :, FACTUAL, OWN]) / by_picture,
        np.zeros(target.shape[:2]),
    )


def _denominators(present: Array) -> tuple[Array, Array]:
    """P(B | cf) - P(B | f), with both changed and with the picture changed; nan where the picture was not.

    P(B | V, L) is the mean of P(B | V) and P(B | L), which is 1 and becomes 0. So a picture that stays as it was
    leaves a denominator of -.5, and one that becomes more of B turns the sign: only a fall counts.
    """
    fell = drops(present)
    fell = np.where(fell >= LEAST_DROP, fell, np.nan)[:, None]
    return -(1.0 + fell) / 2, -fell
