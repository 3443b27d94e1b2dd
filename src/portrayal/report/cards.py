"""What the metrics' cards in results say about the display of numbers. Old and foreign results may lack any of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portrayal.results import Results

# Layouts of tables and charts; any other is that of terms.
CONCEPTS, METHODS = "concepts", "methods"


def metric_cards(results: Results) -> dict[str, Any]:
    """The metrics' cards in the results; foreign results may have none."""
    cards = results.provenance.get("cards")
    return (
        {name: card for name, card in cards.items() if isinstance(card, Mapping)}
        if isinstance(cards, Mapping)
        else {}
    )


def metrics_of_layout(results: Results, layout: str) -> frozenset[str]:
    """The metrics whose tables and charts have this layout."""
    return frozenset(name for name, card in metric_cards(results).items() if card.get("layout") == layout)


def headline_terms(card: Mapping[str, Any] | None, metric: str) -> tuple[str, ...]:
    """The terms that stand for a metric; by default the one with its name.

    >>> headline_terms({"headline": ["b@v-l"]}, "bias"), headline_terms(None, "bias")
    (('b@v-l',), ('bias',))
    """
    return tuple((card or {}).get("headline") or (metric,))


def prompt_ids(results: Results) -> list[str]:
    """Ids of the numbers whose evidence are prompts of a model, not captions."""
    metrics = metrics_of_layout(results, CONCEPTS)
    return [m.id for m in results.measurements if m.metric in metrics]
