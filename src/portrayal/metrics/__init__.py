"""One file per published measurement. `portrayal.metrics.NAME(study, ...)` returns Results."""

from __future__ import annotations

from portrayal.errors import unknown_name
from portrayal.metrics.error import error
from portrayal.metrics.metric import Metric

METRICS: dict[str, Metric] = {metric.name: metric for metric in (error,)}


def find_metric(name: str) -> Metric:
    if name not in METRICS:
        raise unknown_name("metric", name, METRICS)
    return METRICS[name]


__all__ = ["METRICS", "Metric", "error", "find_metric"]
