"""Portrayal audits how image captioners and vision-language models portray people."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from portrayal import lab as lab
    from portrayal import metrics as metrics
    from portrayal import mitigate as mitigate
    from portrayal.auditing import audit as audit
    from portrayal.auditing import score as score
    from portrayal.comparing.compare import compare as compare
    from portrayal.gating.gate import gate as gate
    from portrayal.metrics.counterbias.metric import counterbias as counterbias
    from portrayal.results import Measurement as Measurement
    from portrayal.results import Results as Results
    from portrayal.results import load_results as load_results
    from portrayal.study import Study as Study
    from portrayal.study import read_study as read_study

# Names are imported on first use: modules that run on a minimal GPU machine must import without polars.
_HOMES = {
    "Measurement": "portrayal.results",
    "Results": "portrayal.results",
    "Study": "portrayal.study",
    "audit": "portrayal.auditing",
    "compare": "portrayal.comparing",
    "counterbias": "portrayal.metrics",
    "gate": "portrayal.gating",
    "load_results": "portrayal.results",
    "read_study": "portrayal.study",
    "score": "portrayal.auditing",
}
_PACKAGES = ("lab", "metrics", "mitigate")

__all__ = [
    "Measurement",
    "Results",
    "Study",
    "__version__",
    "audit",
    "compare",
    "counterbias",
    "gate",
    "lab",
    "load_results",
    "metrics",
    "mitigate",
    "read_study",
    "score",
]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"portrayal.{name}")
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'portrayal' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
