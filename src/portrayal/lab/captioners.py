"""Captioners with dials: simulated systems whose faults are known because they were planted."""

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

_GROUP, _ERROR, _WHICH_ERROR = (
    decision_column("group"),
    decision_column("error"),
    decision_column("which error"),
)
_ACTIVITY, _GUESS, _ERASED = decision_column("activity"), decision_column("guess"), decision_column("erased")
_OBJECT, _WHICH_OBJECT = decision_column("object"), decision_column("which object")
_DEMEANING, _WHICH_DEMEANING, _STOCK = (
    decision_column("demeaning"),
    decision_column("which demeaning"),
    decision_column("stock"),
)


@dataclass(frozen=True)
class Captioner:
    """One simulated captioning system. Its dials are independent: each has its own random numbers.

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
            "the one associated with the group shown (1: always the stereotype)",
            "the caption names the true activity",
        ),
    ] = 0.0
    guessed_group: Annotated[
        float,
        Dial(
            "share of captions whose gender follows the activity: the group that the activity is associated with",
            "the gender follows the person shown",
        ),
    ] = 0.0
    wrong_group: Annotated[
        Rates,
        Dial("share of captions naming a group that name another one", "none does", per_group=True),
    ] = 0.0
    neutral: Annotated[
        Rates,
        Dial("share of captions mentioning people that name no group", "all name one", per_group=True),
    ] = 0.2
    hallucination: Annotated[
        Rates,
        Dial(
            "share of captions that mention an object that is not in the scene", "none does", per_group=True
        ),
    ] = 0.0
    erasure: Annotated[
        Rates, Dial("share of captions that mention nobody", "every caption mentions people", per_group=True)
    ] = 0.0
    demeaning: Annotated[
        Rates,
        Dial(
            "share of captions mentioning people that have a demeaning word", "none has one", per_group=True
        ),
    ] = 0.0
    vocabulary: Annotated[
        float, Dial("share of the synonyms for each concept that it uses", "one word for each concept")
    ] = 0.3
    length: Annotated[
        float,
        Dial(
            "probability of naming the place, the colour or another object; details have a part of it",
            "captions only say who does what",
        ),
    ] = 0.3
    repetition: Annotated[
        float, Dial("share of captions that are stock sentences", "no caption is a stock sentence")
    ] = 0.6
    ranking_lean: Annotated[
        Rates,
        Dial(
            "how much higher it ranks people in image retrieval, for any query (1: four standard deviations of its "
            "scores); the same value for all groups changes nothing",
            "the group shown does not change the rank",
            per_group=True,
        ),
    ] = 0.0

    def __post_init__(self) -> None:
        check_dials(self, ATTRIBUTES[BIASED_ATTRIBUTE])

    def describe(self, scenes: Sequence[Scene], seed: int) -> list[str]:
        """Return a caption of every scene. The random numbers depend only on the captioner's name and the seed."""
        u = self._decisions(scenes, seed)
        usual_style, stock_style = self._style(), self._style(stock=True)
        return [
            self._caption(scene, stock_style if row[_STOCK] < self.repetition else usual_style, row)
            for scene, row in zip(scenes, u.tolist(), strict=True)
        ]

    def activities(self, scenes: Sequence[Scene], seed: int) -> list[str]:
        """Return the activity that its caption names, for each scene."""
        u = self._decisions(scenes, seed)[:, _ACTIVITY]
        return [
            self._activity(scene, u_activity) for scene, u_activity in zip(scenes, u.tolist(), strict=True)
        ]

    def _decisions(self, scenes: Sequence[Scene], seed: int) -> NDArray[np.float64]:
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
        if u[_GUESS] < self.guessed_group:
            group = _stereotyped_group(scene.activity, otherwise=shown_group)
        if u[_ERROR] < rate_of(self.wrong_group, shown_group):
            group = another_group(shown_group, u[_WHICH_ERROR])
        if u[_GROUP] < rate_of(self.neutral, shown_group):
            group = None
        added_object = insult = None
        if u[_OBJECT] < rate_of(self.hallucination, shown_group):
            absent = [label for label in EXTRAS if label not in scene.extras]
            added_object = absent[int(u[_WHICH_OBJECT] * len(absent))]
        if u[_DEMEANING] < rate_of(self.demeaning, shown_group):
            words = demeaning_words()
            insult = words[int(u[_WHICH_DEMEANING] * len(words))]
        content = CaptionContent(group, activity, scene.extras, added_object, insult)
        if u[_ERASED] < rate_of(self.erasure, shown_group):
            return write_caption_without_people(scene, content, style, u)
        return write_caption(scene, content, style, u)


def _stereotyped_group(activity: str, otherwise: str) -> str:
    """Return the group that an activity is associated with, or `otherwise` where it has no association."""
    pair = ACTIVITIES[activity]
    return (
        next(group for group, concept in pair.concepts.items() if concept == activity)
        if pair.strength
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
