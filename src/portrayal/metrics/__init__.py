"""The metrics: `portrayal.metrics.NAME(study, ...)` returns Results. `METRICS` has them by name, with their cards."""

from __future__ import annotations

from portrayal.metrics.base.by_group import Share, measure_by_group
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import Metric
from portrayal.metrics.base.options import Bootstrap
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import CARDS, METRICS, PACKAGES, PROBLEMS, discover, find_metric, metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.statements import GROUPS, HUMAN_CAPTIONS, Statement
from portrayal.stats import RESAMPLES

discover()

# After the walk, since functions have the names of their folders.
from portrayal.metrics.counterbias.metric import counterbias  # noqa: E402
from portrayal.metrics.harms.metric import stream_harms  # noqa: E402

globals().update({m.function.__name__: m.function for m in METRICS.values()})

__all__ = [
    "CARDS",
    "GROUPS",
    "HUMAN_CAPTIONS",
    "METRICS",
    "PACKAGES",
    "PROBLEMS",
    "RESAMPLES",
    "Bootstrap",
    "Card",
    "Metric",
    "ResultBuilder",
    "Share",
    "Statement",
    "Term",
    "counterbias",
    "find_metric",
    "measure_by_group",
    "metric",
    "preconditions_met",
    "stream_harms",
    *(m.function.__name__ for m in METRICS.values()),
]
