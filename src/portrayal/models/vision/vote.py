"""Which of the objects that models see in a picture count, as the Gender Score paper chooses them.

The paper (Sabir and Padró 2023) takes the three surest classes of each of three models, drops *person*, drops what is
less sure than 0.2, and keeps what the models agree on by the cosine of the labels' vectors. It does not state how large
that cosine must be. 0.5 is this project's choice: with GloVe of 50 numbers, racket and tennis racket have 0.81,
notebook and laptop 0.52, pizza and umbrella 0.30; of all pairs of an ImageNet class and a COCO category 7 % reach it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from portrayal.models.vision.detections import Seen

Similarity = Callable[[str, str], float | None]  # None: one of the labels is unknown
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Vote:
    """The four steps of the choice, in their order."""

    top: int = 3  # labels of each model
    person: tuple[str, ...] = ("person",)  # a label with one of these words is dropped
    threshold: float = 0.2  # what is less sure is dropped
    agree: float = 0.5  # the least cosine at which two labels agree


def noticed(seen: Sequence[Seen], vote: Vote) -> list[Seen]:
    """The first three steps, which look at one model alone. A dropped label is not replaced by the next one.

    >>> noticed([Seen("person", 0.9), Seen("dog", 0.6), Seen("cat", 0.1), Seen("car", 0.1)], Vote())
    [Seen(label='dog', confidence=0.6)]
    """
    people = {word.lower() for word in vote.person}
    surest = sorted(seen, key=lambda one: -one.confidence)[: vote.top]
    return [
        one
        for one in surest
        if one.confidence >= vote.threshold and people.isdisjoint(_WORD.findall(one.label.lower()))
    ]


def agreed(
    sources: Mapping[str, Sequence[Seen]], vote: Vote, similarity: Similarity
) -> dict[str, list[Seen]]:
    """Of what each source sees in one picture, what counts after all four steps.

    An object is kept where at least one other source has one that agrees with it: the same label, or one whose
    similarity is `agree` or more. An unknown label agrees with its equal only. A single source has nobody to ask.
    """
    kept = {source: noticed(seen, vote) for source, seen in sources.items()}
    if len(kept) < 2:
        return kept
    return {
        source: [
            one
            for one in objects
            if any(
                _agree(one.label, other.label, vote.agree, similarity)
                for name, others in kept.items()
                if name != source
                for other in others
            )
        ]
        for source, objects in kept.items()
    }


def _agree(one: str, other: str, least: float, similarity: Similarity) -> bool:
    if one.lower() == other.lower():
        return True
    similar = similarity(one, other)
    return similar is not None and similar >= least
