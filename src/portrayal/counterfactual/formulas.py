"""Bias from probabilities of factual and counterfactual pairs (Zhang, Wang and Sang 2022, equations 3 to 6).

Arrays have a row for each instance. An image is factual, counterfactual or the placebo; a text names the person's own
group or the other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FACTUAL, COUNTERFACTUAL, PLACEBO = range(3)
OWN, OTHER = range(2)
MIN_DROP = 0.1  # of P(B | V): with a smaller drop the image counts as unchanged


@dataclass(frozen=True)
class Bias:
    """(instances, templates): fractions, positive toward the instance's own group; nan where undefined."""

    by_both: Array  # b@v-l
    by_image: Array  # b@v
    by_text: Array  # b@l

    def signed(self, signs: Array) -> Bias:
        """The bias with positive values toward the first group: signs are 1 for persons of it, -1 of the second."""
        column = signs[:, None]
        return Bias(self.by_both * column, self.by_image * column, self.by_text * column)


def drops(present: Array) -> Array:
    """The drop of P(B | V) from factual to counterfactual: (instances, images) -> (instances)."""
    return np.asarray(present[:, FACTUAL] - present[:, COUNTERFACTUAL])


def bias(target: Array, present: Array) -> Bias:
    """Bias of a concept.

    Parameters
    ----------
    target
        P(T | V, L): (instances, templates, images, texts).
    present
        P(B | V): (instances, images).

    Examples
    --------
    Figure 6 of the paper: P(T) falls from .84 to .57 where P(B) falls from .98 to .04.

    >>> target = np.array([[[[0.84, 0.84], [0.57, 0.57]]]])
    >>> float(bias(target, np.array([[0.98, 0.04]])).by_image.round(3)[0, 0])
    0.287
    """
    by_both, by_image = _denominators(present)
    fact = target[:, :, FACTUAL, OWN]
    return Bias(
        (target[:, :, COUNTERFACTUAL, OTHER] - fact) / by_both,
        (target[:, :, COUNTERFACTUAL, OWN] - fact) / by_image,
        (target[:, :, FACTUAL, OTHER] - fact) / -1.0,
    )


def placebo(target: Array, present: Array) -> Bias:
    """The same numbers for an equally large attack on the control prompt: damage that is no bias.

    Both sides have the text of the counterfactual, so that only pixels differ. Texts alone have no placebo: 0.
    """
    by_both, by_image = _denominators(present)
    return Bias(
        (target[:, :, PLACEBO, OTHER] - target[:, :, FACTUAL, OTHER]) / by_both,
        (target[:, :, PLACEBO, OWN] - target[:, :, FACTUAL, OWN]) / by_image,
        np.zeros(target.shape[:2]),
    )


def _denominators(present: Array) -> tuple[Array, Array]:
    """P(B | cf) - P(B | f), for image and text, and for the image alone; nan if the image is unchanged.

    P(B | V, L) is the mean of P(B | V) and P(B | L); the latter changes from 1 to 0. So an unchanged image would leave
    a denominator of -.5, and an image with more of B would change the sign: only drops count.
    """
    drop = drops(present)
    drop = np.where(drop >= MIN_DROP, drop, np.nan)[:, None]
    return -(1.0 + drop) / 2, -drop
