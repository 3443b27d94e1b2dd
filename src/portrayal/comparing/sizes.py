"""Numbers whose expected value changes with how many images there are cannot be compared across sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portrayal.results import Measurement

ALIKE = 1.1  # how many times as many images one side may have


def depends_on_n(cards: Mapping[str, Any], m: Measurement) -> bool:
    """Whether the card says so of the term; counts always do."""
    card = cards.get(m.metric)
    terms = card.get("terms", ()) if isinstance(card, dict) else ()
    flagged = (
        term.get("name") == m.term and term.get("depends_on_n") for term in terms if isinstance(term, dict)
    )
    return m.unit == "count" or any(flagged)


def caution_about_sizes(cards: Mapping[str, Any], a: Measurement, b: Measurement) -> str | None:
    """What a reader has to know where a term depends on how many images there are, and these are not as many."""
    if a.n is None or b.n is None or not depends_on_n(cards, a):
        return None
    few, many = sorted((a.n, b.n))
    if many <= ALIKE * few:
        return None
    unit = f"{a.n_unit or 'image'}s"
    return (
        f"It depends on how many {unit} there are: {a.n:,} in the first, {b.n:,} in the second. Compare equally many; "
        "this difference is called neither better nor worse."
    )
