"""Integrated gradients (Sundararajan, Taly and Yan 2017): the contribution of each word to a prediction.

The attribution is the mean gradient along the straight path from a baseline to the caption, times their
difference. The functions of this module do not depend on the classifier.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def gauss_legendre(n_points: int) -> tuple[Array, Array]:
    """Return the points in (0, 1) and the weights of Gauss-Legendre quadrature.

    >>> points, weights = gauss_legendre(2)
    >>> points.round(3).tolist(), weights.tolist()
    ([0.211, 0.789], [0.5, 0.5])
    """
    points, weights = np.polynomial.legendre.leggauss(n_points)
    return (1 + points) / 2, weights / 2


def unit_norm(attributions: Array) -> Array:
    """Return the attributions of one caption scaled to unit norm; zeros stay 0."""
    norm = float(np.linalg.norm(attributions))
    return attributions / norm if norm else attributions
