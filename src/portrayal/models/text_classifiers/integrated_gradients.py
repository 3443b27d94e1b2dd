"""Integrated gradients (Sundararajan, Taly and Yan 2017): the contribution of each word to a prediction.

The gradient is averaged along the straight path from a baseline to the caption and multiplied by their
difference. The functions here do not depend on the classifier.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def quadrature(steps: int) -> tuple[Array, Array]:
    """Return the points in (0, 1) where gradients are evaluated, and their weights (Gauss-Legendre
    quadrature).

    >>> points, weights = quadrature(2)
    >>> points.round(3).tolist(), weights.tolist()
    ([0.211, 0.789], [0.5, 0.5])
    """
    points, weights = np.polynomial.legendre.leggauss(steps)
    return (1 + points) / 2, weights / 2


def unit_norm(attributions: Array) -> Array:
    """Scale the attributions of one caption to unit norm, so that captions compare; zeros stay 0."""
    norm = float(np.linalg.norm(attributions))
    return attributions / norm if norm else attributions
