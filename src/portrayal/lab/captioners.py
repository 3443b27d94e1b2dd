"""Simulated captioning systems, whose biases and errors are known because they are set by dials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from portrayal.lab.annotators import another_group
from portrayal.lab.dials import Dial, Rates, check_dials, rate_of
from portrayal.lab.language import (
    DECISIONS,
    CaptionContent,
    CaptionStyle,
    decision_column,
    demeaning_words,
    write_caption,
    write_caption_without_people,
)
from portrayal.lab.world import ACTIVITIES, ATTRIBUTES, BIASED_ATTRIBUTE, EXTRAS, Scene

_GROUP, _ERROR, _WRONG_GROUP_CHOICE = (
    decision_column("group"),
    decision_column("error"),
    decision_column("which error"),
)
_ACTIVITY, _INFERRED_GROUP, _ERASURE = (
    decision_column("activity"),
    decision_column("inferred group"),
    decision_column("erased"),
)
_OBJECT, _OBJECT_CHOICE = decision_column("object"), decision_column("which object")
_DEMEANING, _DEMEANING_CHOICE, _STOCK = (
    decision_column("demeaning"),
    decision_column("which demeaning"),
    decision_column("stock"),
)


@dataclass(frozen=True)
class Captioner:
    """A simulated captioning system. Its dials are independent, since each has its own random numbers.

    Examples
    --------
    >>> from portrayal.lab import make_scenes
    >>> len(Captioner("biased", amplification=0.6).describe(make_scenes(3), seed=0))
    3
    """

    name: str
    amplification: Annotated[
        float,
        Dial(
            "share of captions whose activity follows the gender: of two activities that look alike, the caption names "
            "the one associated with the gender of the person (1: always the stereotypical one)",
            "the caption names the true activity",
        ),
    ] = 0.0
    guessed_group: Annotated[
        float,
        Dial(
            "share of captions whose gender follows the activity: the caption names the gender that the activity is "
            "associated with",
            "the caption names the gender of the person",
        ),
    ] = 0.0
    wrong_group: Annotated[
        Rates,
        Dial(
            "share of captions naming a group that name a wrong one",
            "no caption names a wrong group",
            per_group=True,
        ),
    ] = 0.0
    neutral: Annotated[
        Rates,
        Dial(
            "share of captions mentioning people that name no group",
            "every such caption names a group",
            per_group=True,
        ),
    ] = 0.2
    hallucination: Annotated[
        Rates,
        Dial(
            "share of captions that mention an object that is not in the scene",
            "no caption mentions an absent object",
            per_group=True,
        ),
    ] = 0.0
    erasure: Annotated[
        Rates, Dial("share of captions that mention nobody", "every caption mentions people", per_group=True)
    ] = 0.0
    demeaning: Annotated[
        Rates,
        Dial(
            "share of captions mentioning people that contain a demeaning word",
            "no caption contains one",
            per_group=True,
        ),
    ] = 0.0
    vocabulary: Annotated[
        float,
        Dial("share of the synonyms of each concept that the captioner uses", "one word for each concept"),
    ] = 0.3
    length: Annotated[
        float,
        Dial(
            "probability that a caption names the place, the colour or another object; rarer details have a fraction "
            "of it",
            "captions name only the person and the activity",
        ),
    ] = 0.3
    repetition: Annotated[
        float, Dial("share of captions that are stock sentences", "no caption is a stock sentence")
    ] = 0.6
    ranking_lean: Annotated[
        Rates,
        Dial(
            "amount added to the retrieval score of images of the group, for any query (1: four standard deviations of "
            "the scores); the same value for all groups changes no rank",
            "the group does not change the rank of an image",
            per_group=True,
        ),
    ] = 0.0

    def __post_init__(self) -> None:
        check_dials(self, ATTRIBUTES[BIASED_ATTRIBUTE])

    def describe(self, scenes: Sequence[Scene], seed: int) -> list[str]:
        """Return a caption for each scene. The random numbers depend only on the captioner's name and the seed."""
        u = self._decisions(scenes, seed)
        usual_style, stock_style = self._style(), self._style(stock=True)
        return [
            self._caption(scene, stock_style if row[_STOCK] < self.repetition else usual_style, row)
            for scene, row in zip(scenes, u.tolist(), strict=True)
        ]

    def activities(self, scenes: Sequence[Scene], seed: int) -> list[str]:
        """Return the activity that the caption of each scene names."""
        u = self._decisions(scenes, seed)[:, _ACTIVITY]
        return [
            self._activity(scene, u_activity) for scene, u_activity in zip(scenes, u.tolist(), strict=True)
        ]

    def _decisions(self, scenes: Sequence[Scene], seed: int) -> NDArray[np.float64]:
        """Return uniform random numbers (scenes, decisions)."""
        return np.random.default_rng([seed, 3, *self.name.encode()]).random((len(scenes), len(DECISIONS)))

    def _activity(self, scene: Scene, u: float) -> str:
        if u < self.amplification:
            return ACTIVITIES[scene.activity].concept_for(
                scene.person[BIASED_ATTRIBUTE], otherwise=scene.activity
            )
        return scene.activity

    def _style(self, stock: bool = False) -> CaptionStyle:
        length = 0.0 if stock else self.length
        return CaptionStyle(
            vocabulary=0.0 if stock else self.vocabulary,
            names_age=length / 5,
            names_skin=0.0,
            colour=length,
            mood=length / 2,
            job=length,
            opening=length / 4,
            extra=length,
            place=length,
            place_first=0.0,
            time=length / 4,
            detail=length / 4,
            sight=length / 10,
            pronoun=length / 4,
        )

    def _caption(self, scene: Scene, style: CaptionStyle, u: Sequence[float]) -> str:
        shown_group = scene.person[BIASED_ATTRIBUTE]
        activity = self._activity(scene, u[_ACTIVITY])
        group: str | None = shown_group
        if u[_INFERRED_GROUP] < self.guessed_group:
            group = _stereotyped_group(scene.activity, otherwise=shown_group)
        if u[_ERROR] < rate_of(self.wrong_group, shown_group):
            group = another_group(shown_group, u[_WRONG_GROUP_CHOICE])
        if u[_GROUP] < rate_of(self.neutral, shown_group):
            group = None
        added_object = demeaning_word = None
        if u[_OBJECT] < rate_of(self.hallucination, shown_group):
            absent_objects = [label for label in EXTRAS if label not in scene.extras]
            added_object = absent_objects[int(u[_OBJECT_CHOICE] * len(absent_objects))]
        if u[_DEMEANING] < rate_of(self.demeaning, shown_group):
            words = demeaning_words()
            demeaning_word = words[int(u[_DEMEANING_CHOICE] * len(words))]
        content = CaptionContent(group, activity, scene.extras, added_object, demeaning_word)
        if u[_ERASURE] < rate_of(self.erasure, shown_group):
            return write_caption_without_people(scene, content, style, u)
        return write_caption(scene, content, style, u)


def _stereotyped_group(activity: str, otherwise: str) -> str:
    """Return the group that an activity is associated with, or `otherwise` where it has no association."""
    activity_pair = ACTIVITIES[activity]
    return (
        next(group for group, concept in activity_pair.concepts.items() if concept == activity)
        if activity_pair.strength
        else otherwise
    )


FAITHFUL = Captioner("faithful", wrong_group=0.02)
DEMO_CAPTIONERS = (
    FAITHFUL,
    Captioner(
        "stereotyping", amplification=0.6, wrong_group={"female": 0.12, "male": 0.03},
        hallucination={"female": 0.05, "male": 0.05}, demeaning={"female": 0.01, "male": 0.0},
    ),
    Captioner(
        "cautious", amplification=0.1, wrong_group=0.01, neutral=0.8, erasure={"female": 0.06, "male": 0.02},
        ranking_lean={"male": 0.3},
    ),
)  # fmt: skip
