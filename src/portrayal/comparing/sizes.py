"""Numbers whose expected value changes with how many images there are cannot be compared across sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portrayal.results import Measurement, Results

ALIKE = 1.1  # how many times as many images one side may have
_SEARCHED = "searched"  # on how many images are searched, of which the number's own n says nothing
_QUERY = "query"  # a mean over queries is such a number, whatever an older card says


def depends_on_n(cards: Mapping[str, Any], m: Measurement) -> object:
    """What the card says of the term, if anything; counts always do."""
    card = cards.get(m.metric)
    terms = card.get("terms", ()) if isinstance(card, dict) else ()
    flags = [
        term.get("depends_on_n")
        for term in terms or ()
        if isinstance(term, dict) and term.get("name") == m.term
    ]
    return next(filter(None, flags), m.unit == "count")


def images_of(results: Results) -> int | None:
    """How many images were audited; where that was not recorded, the most that any number rests on."""
    study = results.provenance.get("study")
    known = study.get("images") if isinstance(study, dict) else None
    if isinstance(known, int):
        return known
    return max((m.n for m in results.measurements if m.n and m.n_unit in ("image", "item")), default=None)


def caution_about_sizes(
    cards: Mapping[str, Any], a: Measurement, b: Measurement, images: tuple[int | None, int | None]
) -> str | None:
    """What a reader has to know where a term depends on how many images there are, and these are not as many.

    `images`: how many the audit of either side has.
    """
    depends = depends_on_n(cards, a)
    searched = depends == _SEARCHED or a.n_unit == _QUERY
    first, second = images if searched else (a.n, b.n)
    if first is None or second is None or not depends:
        return None
    if max(first, second) <= ALIKE * min(first, second):
        return None
    unit = "images" if searched else f"{a.n_unit or 'image'}s"
    return (
        f"It depends on how many {unit} there are: {first:,} in the first, {second:,} in the second. Compare equally "
        "many; this difference is called neither better nor worse."
    )
