"""Integrated gradients (Sundararajan, Taly and Yan 2017): what each word of a caption adds to a guess.

The gradient of the guess is averaged along the straight way from a caption of nothing to the caption, and multiplied by
the difference. What is given here does not depend on the classifier.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def points_along(steps: int) -> tuple[Array, Array]:
    """Where on the way from 0 to 1 gradients are taken, and how much each counts (Gauss and Legendre).

    >>> places, counts = points_along(2)
    >>> places.round(3).tolist(), counts.tolist()
    ([0.211, 0.789], [0.5, 0.5])
    """
    places, counts = np.polynomial.legendre.leggauss(steps)
    return (1 + places) / 2, counts / 2


def scaled(parts: Array) -> Array:
    """The parts of one caption divided by their length as a vector, so that captions compare; 0 stays 0."""
    length = float(np.linalg.norm(parts))
    return parts / length if length else parts
