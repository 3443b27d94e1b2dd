"""CounterBias: bias from factual and counterfactual probabilities (Zhang, Wang and Sang 2022, equations 3 to 6).

The first axis of an array is the instances. The axis "images" has the factual image, the counterfactual one and the
placebo. The axis "texts" has the text with the word of the person's own group and the text with the word of the other.
T is the target concept, B the bias concept (the person's own group), V the image and L the text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FACTUAL, COUNTERFACTUAL, PLACEBO = range(3)
OWN_GROUP, OTHER_GROUP = range(2)
MIN_DROP = 0.1  # minimum drop of P(B | V); with a smaller one the bias is undefined


@dataclass(frozen=True)
class Bias:
    """Biases (instances, templates): fractions, positive toward the instance's own group; nan where undefined."""

    vision_language: Array  # b@v-l: image and text change
    vision: Array  # b@v: the image changes
    language: Array  # b@l: the text changes

    def toward_first_group(self, signs: Array) -> Bias:
        """Return the biases with positive values toward the first group.

        `signs` is 1 for each instance of the first group and -1 for each of the second.
        """
        sign_column = signs[:, None]
        return Bias(
            self.vision_language * sign_column, self.vision * sign_column, self.language * sign_column
        )


def group_prob_drop(group_probs: Array) -> Array:
    """Return the drop of P(B | V) from the factual to the counterfactual image: (instances, images) -> (instances)."""
    return np.asarray(group_probs[:, FACTUAL] - group_probs[:, COUNTERFACTUAL])


def counterfactual_bias(concept_probs: Array, group_probs: Array) -> Bias:
    """Return the biases of instances.

    Parameters
    ----------
    concept_probs
        P(T | V, L): (instances, templates, images, texts).
    group_probs
        P(B | V): (instances, images).

    Examples
    --------
    Figure 6 of the paper: P(T) falls from .84 to .57 where P(B) falls from .98 to .04.

    >>> target = np.array([[[[0.84, 0.84], [0.57, 0.57]]]])
    >>> float(counterfactual_bias(target, np.array([[0.98, 0.04]])).vision.round(3)[0, 0])
    0.287
    """
    by_both, by_image = _denominators(group_probs)
    factual_prob = concept_probs[:, :, FACTUAL, OWN_GROUP]
    return Bias(
        (concept_probs[:, :, COUNTERFACTUAL, OTHER_GROUP] - factual_prob) / by_both,
        (concept_probs[:, :, COUNTERFACTUAL, OWN_GROUP] - factual_prob) / by_image,
        (concept_probs[:, :, FACTUAL, OTHER_GROUP] - factual_prob) / -1.0,
    )


def placebo_bias(concept_probs: Array, group_probs: Array) -> Bias:
    """Return the biases that an equally large attack on the control prompt causes, which is unrelated to the group.

    The compared inputs have the same text and differ in pixels only. The bias of the text alone is therefore 0.
    """
    by_both, by_image = _denominators(group_probs)
    return Bias(
        (concept_probs[:, :, PLACEBO, OTHER_GROUP] - concept_probs[:, :, FACTUAL, OTHER_GROUP]) / by_both,
        (concept_probs[:, :, PLACEBO, OWN_GROUP] - concept_probs[:, :, FACTUAL, OWN_GROUP]) / by_image,
        np.zeros(concept_probs.shape[:2]),
    )


def _denominators(group_probs: Array) -> tuple[Array, Array]:
    """Return P(B | counterfactual) - P(B | factual) for image and text, and for the image alone.

    P(B | V, L) is the mean of P(B | V) and P(B | L), and P(B | L) changes from 1 to 0. With an unchanged image the
    first denominator would be -.5, and with an image of higher P(B | V) the sign of the second would change. Both are
    therefore nan if P(B | V) drops by less than `MIN_DROP`.
    """
    drop = group_prob_drop(group_probs)
    drop = np.where(drop >= MIN_DROP, drop, np.nan)[:, None]
    return -(1.0 + drop) / 2, -drop
