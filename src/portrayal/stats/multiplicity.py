"""Corrections for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction (family-wise error). None stays None and is not counted.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    return _adjusted(p_values, _holm)


def benjamini_hochberg(p_values: Sequence[float | None]) -> list[float | None]:
    """Benjamini-Hochberg q values (false discovery rate). None stays None and is not counted.

    >>> benjamini_hochberg([0.01, None, 0.04, 0.03])
    [0.03, None, 0.04, 0.04]
    """
    return _adjusted(p_values, _benjamini_hochberg)


def _adjusted(p_values: Sequence[float | None], correct: object) -> list[float | None]:
    indices = [index for index, p in enumerate(p_values) if p is not None]
    known = np.array([p_values[index] for index in indices], dtype=np.float64)
    if np.any((known < 0) | (known > 1)):
        raise ValueError("A p value must lie between 0 and 1.")
    corrected: list[float | None] = [None] * len(p_values)
    if indices:
        for index, q in zip(indices, correct(known), strict=True):  # type: ignore[operator]
            corrected[index] = float(round(q, 15))
    return corrected


def _holm(known: np.ndarray) -> np.ndarray:
    order = np.argsort(known, kind="stable")
    scaled = known[order] * (len(known) - np.arange(len(known)))
    adjusted = np.empty(len(known))
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1)
    return adjusted


def _benjamini_hochberg(known: np.ndarray) -> np.ndarray:
    order = np.argsort(known, kind="stable")
    scaled = known[order] * len(known) / np.arange(1, len(known) + 1)
    adjusted = np.empty(len(known))
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1)
    return adjusted
