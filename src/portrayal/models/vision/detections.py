"""What a model sees in a picture: labels, each with how sure the model is of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from PIL.Image import Image

MOST = 100  # labels kept of a picture; the rest of a thousand classes are noise
_NO_LABEL = {"", "n/a"}  # detectors trained on COCO have numbers that stand for nothing


@dataclass(frozen=True)
class Seen:
    label: str
    confidence: float  # 0 to 1, on the model's own scale


class Seer(Protocol):
    """Anything that names what is in pictures."""

    name: str

    def see(self, pictures: Sequence[Image]) -> list[list[Seen]]:
        """For each picture what is seen in it, the surest first."""
        ...


def plain_label(name: str) -> str:
    """A class name as a label: its first synonym, in lower case, with spaces.

    >>> plain_label("tench, Tinca tinca"), plain_label("Traffic_light")
    ('tench', 'traffic light')
    """
    return " ".join(name.split(",")[0].replace("_", " ").lower().split())


def surest_first(named: Iterable[tuple[str, float]]) -> list[Seen]:
    """Class names with their confidence as labels, each once; of one label the highest confidence counts.

    >>> surest_first([("dog", 0.2), ("Cat", 0.5), ("dog", 0.4)])
    [Seen(label='cat', confidence=0.5), Seen(label='dog', confidence=0.4)]
    """
    best: dict[str, float] = {}
    for name, confidence in named:
        label = plain_label(name)
        if label not in _NO_LABEL:
            best[label] = max(best.get(label, 0.0), min(confidence, 1.0))
    ordered = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    return [Seen(label, confidence) for label, confidence in ordered[:MOST]]


def shipped_names(file: str) -> tuple[str, ...]:
    """The names in a file of this room's data, one a line; lines with # in front say where they come from."""
    path = resources.files("portrayal.models.vision") / "data" / file
    return tuple(line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
