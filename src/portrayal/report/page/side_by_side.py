"""One image at a time: what a system says of it beside what people say, and what a classifier makes of both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from portrayal.documents import json_object
from portrayal.results import HUMAN, Measurement, Results

IMAGES = 6  # shown for each system
_PEOPLE = 5  # captions of people shown for each image


def beside(results: Results) -> list[dict[str, Any]]:
    """For each system and setting: images with the captions of both and what was guessed from them.

    Which terms those are, a metric's card says. Images come by their names, not by what is told of them.
    """
    made = []
    for metric, pair in compared_terms(results).items():
        mine, theirs = (_headlines(results, metric, term) for term in pair)
        for key, m in mine.items():
            if key in theirs:
                images = _images(_told(results, m), _told(results, theirs[key]), m.system or "")
                if images:
                    made.append({"system": m.system, "about": _about(m), "images": images})
    return made


def compared_terms(results: Results) -> dict[str, tuple[str, str]]:
    """Of metrics whose cards say so: the term about a system's captions, and that about people's of the same images."""
    cards = results.provenance.get("cards")
    pairs = {
        metric: card.get("beside")
        for metric, card in (cards if isinstance(cards, Mapping) else {}).items()
        if isinstance(card, Mapping)
    }
    return {
        metric: (pair[0], pair[1])
        for metric, pair in pairs.items()
        if isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(term, str) for term in pair)
    }


def _headlines(results: Results, metric: str, term: str) -> dict[str, Measurement]:
    found = [
        m for m in results.measurements if (m.metric, m.term, m.group, m.item) == (metric, term, None, None)
    ]
    return {json.dumps([m.system, m.attribute, m.settings], sort_keys=True): m for m in found}


def _about(m: Measurement) -> str:
    told = [m.attribute, *(m.settings.get(name) for name in ("classifier", "split"))]
    return ", ".join(str(one) for one in told if one)


def _told(results: Results, m: Measurement) -> dict[str, list[dict[str, Any]]]:
    """By image: captions with what was guessed from each, where it is told what its words add."""
    found: dict[str, list[dict[str, Any]]] = {}
    for image, caption, detail in results.evidence_of(m).select("image_id", "caption", "detail").iter_rows():
        about = json_object(detail)
        if about is not None and isinstance(about.get("parts"), list) and "guessed" in about:
            kept = {name: about.get(name) for name in ("labelled", "guessed", "sure", "total", "parts")}
            found.setdefault(image, []).append({"caption": caption, **kept})
    return found


def _images(
    mine: Mapping[str, list[dict[str, Any]]], theirs: Mapping[str, list[dict[str, Any]]], system: str
) -> list[dict[str, Any]]:
    both = sorted(set(mine) & set(theirs))
    step = max(1, len(both) // IMAGES)
    return [
        {
            "image": image,
            "said": [
                *({"source": system, **one} for one in mine[image][:1]),
                *({"source": HUMAN, **one} for one in theirs[image][:_PEOPLE]),
            ],
        }
        for image in both[step // 2 :: step][:IMAGES]
    ]
