"""Portrayal audits how image captioners and vision-language models portray people."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from portrayal import metrics as metrics
    from portrayal.auditing import audit as audit
    from portrayal.results import Measurement as Measurement
    from portrayal.results import Results as Results
    from portrayal.study import Study as Study
    from portrayal.study import read_study as read_study

# Names are imported on first use: modules that run on a minimal GPU machine must import without polars.
_HOMES = {
    "audit": "portrayal.auditing",
    "Measurement": "portrayal.results",
    "Results": "portrayal.results",
    "Study": "portrayal.study",
    "read_study": "portrayal.study",
}

__all__ = ["Measurement", "Results", "Study", "__version__", "audit", "metrics", "read_study"]


def __getattr__(name: str) -> Any:
    if name == "metrics":
        return importlib.import_module("portrayal.metrics")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'portrayal' has no attribute {name!r}")
