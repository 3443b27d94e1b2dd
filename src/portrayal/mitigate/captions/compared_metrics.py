"""The metrics that caption mitigation measures before and after by default, as their cards say."""

from __future__ import annotations

from portrayal.metrics import METRICS as ALL_METRICS
from portrayal.metrics.base.card import BeforeAfter


def compared_metrics() -> list[tuple[str, BeforeAfter]]:
    """The name of each metric that is compared by default, and what is reported of it."""
    descriptions = [
        (name, metric.card.before_after)
        for name, metric in ALL_METRICS.items()
        if metric.card.before_after is not None
    ]
    return sorted(descriptions, key=lambda description: description[1].order)


def is_compared(metric: str, term: str) -> bool:
    """Whether the change of a term is reported. Of metrics without such a description, all terms are."""
    description = dict(compared_metrics()).get(metric)
    return description is None or not description.terms or term in description.terms


METRICS = tuple(name for name, _ in compared_metrics())
