"""Select the detected objects that count, as the Gender Score paper does.

The paper (Sabir and Padró 2023) takes the three most confident classes of each of three models, drops
*person*, drops classes with a confidence below 0.2, and keeps those that the models agree on by the cosine of
the labels' vectors. It does not state the cosine's threshold. 0.5 is this project's choice: with GloVe of 50
dimensions, racket and tennis racket have 0.81, notebook and laptop 0.52, pizza and umbrella 0.30; of all
pairs of an ImageNet class and a COCO category 7 % reach it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from portrayal.models.vision.detections import Detection

Similarity = Callable[[str, str], float | None]  # None: one of the labels is unknown
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Vote:
    """The four steps of the selection, in order."""

    top: int = 3  # labels of each model
    person: tuple[str, ...] = ("person",)  # a label with one of these words is dropped
    threshold: float = 0.2  # a label with a lower confidence is dropped
    agree: float = 0.5  # minimum cosine at which two labels agree


def confident_detections(detections: Sequence[Detection], vote: Vote) -> list[Detection]:
    """Return the result of the first three steps for one model. A dropped label is not replaced.

    >>> detected = [("person", 0.9), ("dog", 0.6), ("cat", 0.1), ("car", 0.1)]
    >>> confident_detections([Detection(*pair) for pair in detected], Vote())
    [Detection(label='dog', confidence=0.6)]
    """
    person_words = {word.lower() for word in vote.person}
    top_detections = sorted(detections, key=lambda detection: -detection.confidence)[: vote.top]
    return [
        detection
        for detection in top_detections
        if detection.confidence >= vote.threshold
        and person_words.isdisjoint(_WORD.findall(detection.label.lower()))
    ]


def agreed_detections(
    sources: Mapping[str, Sequence[Detection]], vote: Vote, similarity: Similarity
) -> dict[str, list[Detection]]:
    """Return the detections of each model in one image that remain after all four steps.

    An object is kept if at least one other model has one that agrees with it: the same label, or a similarity
    of `agree` or more. An unknown label agrees with itself only. With a single model the fourth step is
    skipped.
    """
    confident = {source: confident_detections(detections, vote) for source, detections in sources.items()}
    if len(confident) < 2:
        return confident
    return {
        source: [
            detection
            for detection in detections_of_model
            if any(
                _agree(detection.label, other.label, vote.agree, similarity)
                for name, other_detections in confident.items()
                if name != source
                for other in other_detections
            )
        ]
        for source, detections_of_model in confident.items()
    }


def _agree(first: str, second: str, threshold: float, similarity: Similarity) -> bool:
    if first.lower() == second.lower():
        return True
    cosine = similarity(first, second)
    return cosine is not None and cosine >= threshold
