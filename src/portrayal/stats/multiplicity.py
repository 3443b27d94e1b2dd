"""Many questions asked at once: corrected p values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction, for a few headline comparisons. None stays None and does not count.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    return _corrected(p_values, _holm)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """False discovery rates (q values), for scans over words or objects. None stays None and does not count.

    >>> benjamini_hochberg([0.01, None, 0.04, 0.03])
    [0.03, None, 0.04, 0.04]
    """
    return _corrected(p_values, _hochberg)


def _corrected(p_values: Sequence[float | None], correct: object) -> list[float | None]:
    places = [index for index, p in enumerate(p_values) if p is not None]
    known = np.array([p_values[index] for index in places], dtype=np.float64)
    if np.any((known < 0) | (known > 1)):
        raise ValueError("A p value must lie between 0 and 1.")
    corrected: list[float | None] = [None] * len(p_values)
    if places:
        for index, q in zip(places, correct(known), strict=True):  # type: ignore[operator]
            corrected[index] = float(round(q, 15))
    return corrected


def _holm(known: np.ndarray) -> np.ndarray:
    order = np.argsort(known, kind="stable")
    scaled = known[order] * (len(known) - np.arange(len(known)))
    made = np.empty(len(known))
    made[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return made


def _hochberg(known: np.ndarray) -> np.ndarray:
    order = np.argsort(known, kind="stable")
    scaled = known[order] * len(known) / np.arange(1, len(known) + 1)
    made = np.empty(len(known))
    made[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return made
