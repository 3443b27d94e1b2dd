"""Cautions for terms whose expected value depends on the number of images, if the two sides differ in size."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portrayal.results import Measurement, Results

MAX_SIZE_RATIO = 1.1  # largest ratio of the two sides' numbers of images
_SEARCHED = "searched"  # depends on the number of searched images, which the row's own n does not give
_QUERY = "query"  # a mean over queries depends on it too, whatever an older card says


def depends_on_n(cards: Mapping[str, Any], m: Measurement) -> object:
    """Return the card's `depends_on_n` of a term; counts always depend on n."""
    card = cards.get(m.metric)
    terms = card.get("terms", ()) if isinstance(card, dict) else ()
    flags = [
        term.get("depends_on_n")
        for term in terms or ()
        if isinstance(term, dict) and term.get("name") == m.term
    ]
    return next(filter(None, flags), m.unit == "count")


def images_of(results: Results) -> int | None:
    """Return the number of audited images; if it was not recorded, the largest n of any row."""
    study = results.provenance.get("study")
    n_images = study.get("images") if isinstance(study, dict) else None
    if isinstance(n_images, int):
        return n_images
    return max((m.n for m in results.measurements if m.n and m.n_unit in ("image", "item")), default=None)


def size_caution(
    cards: Mapping[str, Any], a: Measurement, b: Measurement, images: tuple[int | None, int | None]
) -> str | None:
    """Return a caution if a term depends on the number of images and the two sides differ in it.

    `images` holds the numbers of images in the two audits.
    """
    dependence = depends_on_n(cards, a)
    searched = dependence == _SEARCHED or a.n_unit == _QUERY
    first, second = images if searched else (a.n, b.n)
    if first is None or second is None or not dependence:
        return None
    if max(first, second) <= MAX_SIZE_RATIO * min(first, second):
        return None
    unit = "images" if searched else f"{a.n_unit or 'image'}s"
    return (
        f"It depends on how many {unit} there are: {first:,} in the first, {second:,} in the second. Compare equally "
        "many; this difference is called neither better nor worse."
    )
