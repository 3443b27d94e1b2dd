"""Select detected objects by a vote of several models, as in the Gender Score paper.

The paper (Sabir and Padró 2023) takes the three most confident classes of each of three models, excludes
*person* and classes with a confidence below 0.2, and keeps the classes on which models agree by the cosine
similarity of the labels' word vectors. It does not state the minimum similarity, for which this project uses
0.5. With 50-dimensional GloVe vectors the similarity is 0.81 for racket and tennis racket, 0.52 for notebook
and laptop, and 0.30 for pizza and umbrella. Of all pairs of an ImageNet class and a COCO category, 7 % have
at least 0.5.
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
    """The parameters of the four steps of the selection, in the order of the steps."""

    top_k: int = 3  # number of most confident labels of each model
    excluded_words: tuple[str, ...] = ("person",)  # labels that contain one of these words are dropped
    min_confidence: float = 0.2  # labels with a lower confidence are dropped
    min_similarity: float = 0.5  # minimum cosine similarity at which two labels agree


def confident_detections(detections: Sequence[Detection], vote: Vote) -> list[Detection]:
    """Return the detections of one model that remain after the first three steps; dropped ones are not replaced.

    >>> detected = [("person", 0.9), ("dog", 0.6), ("cat", 0.1), ("car", 0.1)]
    >>> confident_detections([Detection(*pair) for pair in detected], Vote())
    [Detection(label='dog', confidence=0.6)]
    """
    excluded_words = {word.lower() for word in vote.excluded_words}
    top_detections = sorted(detections, key=lambda detection: -detection.confidence)[: vote.top_k]
    return [
        detection
        for detection in top_detections
        if detection.confidence >= vote.min_confidence
        and excluded_words.isdisjoint(_WORD.findall(detection.label.lower()))
    ]


def agreed_detections(
    detections_by_source: Mapping[str, Sequence[Detection]], vote: Vote, similarity: Similarity
) -> dict[str, list[Detection]]:
    """Return the detections of each model in one image that remain after all four steps.

    A detection is kept if another model has a detection with the same label, or with a label of similarity
    `min_similarity` or more. A label without a word vector agrees with an identical label only. With a single
    model the fourth step is skipped.
    """
    confident = {
        source: confident_detections(detections, vote) for source, detections in detections_by_source.items()
    }
    if len(confident) < 2:
        return confident
    return {
        source: [
            detection
            for detection in source_detections
            if any(
                _agree(detection.label, other.label, vote.min_similarity, similarity)
                for other_source, other_detections in confident.items()
                if other_source != source
                for other in other_detections
            )
        ]
        for source, source_detections in confident.items()
    }


def _agree(first: str, second: str, min_similarity: float, similarity: Similarity) -> bool:
    if first.lower() == second.lower():
        return True
    cosine = similarity(first, second)
    return cosine is not None and cosine >= min_similarity
