"""Images with the captions of a system and of humans side by side, and what a classifier predicts from each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from portrayal.documents import json_object
from portrayal.report.cards import metric_cards
from portrayal.results import HUMAN, Measurement, Results

MAX_IMAGES = 6  # of a system
_MAX_HUMAN_CAPTIONS = 5  # of an image


def side_by_side(results: Results) -> list[dict[str, Any]]:
    """For each system and setting, images with both sources' captions and the predictions from them.

    The terms come from metrics' cards. Images are sampled in the order of their ids, not by their content.
    """
    groups = []
    for metric, pair in compared_terms(results).items():
        own, human = (_headlines(results, metric, term) for term in pair)
        for key, m in own.items():
            if key in human:
                images = _images(
                    _explained_captions(results, m), _explained_captions(results, human[key]), m.system or ""
                )
                if images:
                    groups.append({"system": m.system, "about": _title(m), "images": images})
    return groups


def compared_terms(results: Results) -> dict[str, tuple[str, str]]:
    """By metric the terms about a system's captions and about human captions of the same images, from the cards."""
    pairs = {metric: card.get("side_by_side") for metric, card in metric_cards(results).items()}
    return {
        metric: (pair[0], pair[1])
        for metric, pair in pairs.items()
        if isinstance(pair, list | tuple) and len(pair) == 2 and all(isinstance(term, str) for term in pair)
    }


def _headlines(results: Results, metric: str, term: str) -> dict[str, Measurement]:
    matching = [
        m for m in results.measurements if (m.metric, m.term, m.group, m.item) == (metric, term, None, None)
    ]
    return {json.dumps([m.system, m.attribute, m.settings], sort_keys=True): m for m in matching}


def _title(m: Measurement) -> str:
    parts = [m.attribute, *(m.settings.get(name) for name in ("classifier", "split"))]
    return ", ".join(str(part) for part in parts if part)


def _explained_captions(results: Results, m: Measurement) -> dict[str, list[dict[str, Any]]]:
    """By image, captions with the prediction and the contribution of each word."""
    by_image: dict[str, list[dict[str, Any]]] = {}
    for image, caption, detail in results.evidence_of(m).select("image_id", "caption", "detail").iter_rows():
        values = json_object(detail)
        if values is not None and isinstance(values.get("parts"), list) and "predicted" in values:
            shown = {
                name: values.get(name) for name in ("labelled", "predicted", "confidence", "total", "parts")
            }
            by_image.setdefault(image, []).append({"caption": caption, **shown})
    return by_image


def _images(
    own: Mapping[str, list[dict[str, Any]]], human: Mapping[str, list[dict[str, Any]]], system: str
) -> list[dict[str, Any]]:
    both = sorted(set(own) & set(human))
    step = max(1, len(both) // MAX_IMAGES)
    return [
        {
            "image": image,
            "captions": [
                *({"source": system, **caption} for caption in own[image][:1]),
                *({"source": HUMAN, **caption} for caption in human[image][:_MAX_HUMAN_CAPTIONS]),
            ],
        }
        for image in both[step // 2 :: step][:MAX_IMAGES]
    ]
