"""Detections of an image model: labels with confidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image

MAX_DETECTIONS = 100  # number of labels kept for each image; ImageNet classifiers have a thousand
_NO_LABEL = {"", "n/a"}  # detectors trained on COCO have class ids without a class


@dataclass(frozen=True)
class Detection:
    label: str
    confidence: float  # 0 to 1, on the model's own scale


class ImageModel(Protocol):
    """A model that predicts labels of images."""

    name: str

    def detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        """Return the detections of each image, highest confidence first."""
        ...


def normalize_label(name: str) -> str:
    """Return a class name as a label: its first synonym, in lower case, with spaces.

    >>> normalize_label("tench, Tinca tinca"), normalize_label("Traffic_light")
    ('tench', 'traffic light')
    """
    return " ".join(name.split(",")[0].replace("_", " ").lower().split())


def by_confidence(scores: Iterable[tuple[str, float]]) -> list[Detection]:
    """Return detections by decreasing confidence; a repeated label has its highest confidence.

    >>> by_confidence([("dog", 0.2), ("Cat", 0.5), ("dog", 0.4)])
    [Detection(label='cat', confidence=0.5), Detection(label='dog', confidence=0.4)]
    """
    confidence_by_label: dict[str, float] = {}
    for name, confidence in scores:
        label = normalize_label(name)
        if label not in _NO_LABEL:
            confidence_by_label[label] = max(confidence_by_label.get(label, 0.0), min(confidence, 1.0))
    ordered = sorted(confidence_by_label.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Detection(label, confidence) for label, confidence in ordered[:MAX_DETECTIONS]]


def packaged_labels(file: str) -> tuple[str, ...]:
    """Return the labels of a packaged file, one per line; lines that start with # are comments."""
    path = resources.files("portrayal.models.vision") / "data" / file
    return tuple(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
