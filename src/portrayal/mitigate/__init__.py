"""Mitigation methods, measured before and after mitigation together with their cost.

`mitigate_captions` rewrites captions and balances images without a model. `compare_methods` trains a model with FairVLP
and other methods, on the lab's world (`lab_comparison`) or on a study (`study_comparison`), and needs the extra
`neural`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portrayal.mitigate.captions import mitigate_captions as mitigate_captions
    from portrayal.mitigate.lab_data import lab_comparison as lab_comparison
    from portrayal.mitigate.results import compare_methods as compare_methods
    from portrayal.mitigate.settings import ComparisonOptions as ComparisonOptions
    from portrayal.mitigate.study_data import study_comparison as study_comparison

# Imported on first use: training runs on machines without polars.
_HOMES = {
    "ComparisonOptions": "portrayal.mitigate.settings",
    "compare_methods": "portrayal.mitigate.results",
    "lab_comparison": "portrayal.mitigate.lab_data",
    "mitigate_captions": "portrayal.mitigate.captions",
    "study_comparison": "portrayal.mitigate.study_data",
}

__all__ = [
    "ComparisonOptions",
    "compare_methods",
    "lab_comparison",
    "mitigate_captions",
    "study_comparison",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'portrayal.mitigate' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
