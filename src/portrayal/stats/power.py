"""The minimum detectable effect of a study of this size."""

from __future__ import annotations

from scipy.special import ndtri

from portrayal.stats.bootstrap import LEVEL

POWER = 0.8


def minimum_detectable_effect(standard_error: float, level: float = LEVEL, power: float = POWER) -> float:
    """The minimum detectable effect (MDE): the smallest effect that a two-sided test finds with this power.

    >>> round(minimum_detectable_effect(1.0), 2)
    2.8
    """
    return float((ndtri((1 + level) / 2) + ndtri(power)) * standard_error)
