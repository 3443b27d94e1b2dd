"""Captioners with dials: systems whose faults are known because they were planted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from portrayal.lab.annotators import another_group
from portrayal.lab.dials import Dial, Rates, check_dials, rate_of
from portrayal.lab.language import DECISIONS, Habits, Said, column, demeaning_words, sentence, without_people
from portrayal.lab.world import ACTIVITIES, ATTRIBUTES, EXTRAS, LEANING, Scene

_GROUP, _ERROR, _WHICH_ERROR = column("group"), column("error"), column("which error")
_ACTIVITY, _GUESS, _ERASED = column("activity"), column("guess"), column("erased")
_OBJECT, _WHICH_OBJECT = column("object"), column("which object")
_DEMEANING, _WHICH_DEMEANING, _STOCK = column("demeaning"), column("which demeaning"), column("stock")


@dataclass(frozen=True)
class Captioner:
    """One system. Its dials are independent: each takes its own random numbers."""

    name: str
    amplification: Annotated[
        float,
        Dial(
            "share of captions whose activity is taken from the gender: of two activities that look alike, the one "
            "that leans to the group shown (1: always the stereotype)",
            "it says what is there",
        ),
    ] = 0.0
    guessed_group: Annotated[
        float,
        Dial(
            "share of captions whose gender is taken from the activity: the group that the activity leans to",
            "it looks at the person",
        ),
    ] = 0.0
    wrong_group: Annotated[
        Rates,
        Dial("of captions naming a group, the share that name another one", "none does", per_group=True),
    ] = 0.0
    neutral: Annotated[
        Rates,
        Dial("of captions mentioning people, the share that name no group", "all name one", per_group=True),
    ] = 0.2
    hallucination: Annotated[
        Rates,
        Dial(
            "share of captions that mention a labelled thing that is not there", "none does", per_group=True
        ),
    ] = 0.0
    erasure: Annotated[
        Rates, Dial("share of captions that do not mention anybody", "none leaves people out", per_group=True)
    ] = 0.0
    demeaning: Annotated[
        Rates,
        Dial(
            "of captions mentioning people, the share with a demeaning word", "none has one", per_group=True
        ),
    ] = 0.0
    vocabulary: Annotated[
        float, Dial("share of the words for each thing that it uses", "one word for each thing")
    ] = 0.3
    length: Annotated[
        float,
        Dial(
            "chance of saying the place, the colour, another thing; details have a part of it",
            "only who does what",
        ),
    ] = 0.3
    repetition: Annotated[
        float, Dial("share of captions that are stock sentences", "every caption is made anew")
    ] = 0.6
    ranking_lean: Annotated[
        Rates,
        Dial(
            "how much higher it ranks people when it is searched, whatever for (1: four standard deviations of its "
            "scores); for all groups alike it changes nothing",
            "who is shown does not matter",
            per_group=True,
        ),
    ] = 0.0

    def __post_init__(self) -> None:
        check_dials(self, ATTRIBUTES[LEANING])

    def describe(self, scenes: Sequence[Scene], seed: int) -> list[str]:
        """A caption of every scene. The numbers depend on the captioner's name and the seed alone."""
        u = self._decisions(scenes, seed)
        usual, stock = self._habits(), self._habits(few=True)
        return [
            self._caption(scene, stock if row[_STOCK] < self.repetition else usual, row)
            for scene, row in zip(scenes, u.tolist(), strict=True)
        ]

    def activities(self, scenes: Sequence[Scene], seed: int) -> list[str]:
        """What its captions say that people do, scene by scene."""
        u = self._decisions(scenes, seed)[:, _ACTIVITY]
        return [self._activity(scene, chance) for scene, chance in zip(scenes, u.tolist(), strict=True)]

    def _decisions(self, scenes: Sequence[Scene], seed: int) -> NDArray[np.float64]:
        return np.random.default_rng([seed, 3, *self.name.encode()]).random((len(scenes), len(DECISIONS)))

    def _activity(self, scene: Scene, u: float) -> str:
        if u < self.amplification:
            return ACTIVITIES[scene.activity].leaning_to(scene.person[LEANING], otherwise=scene.activity)
        return scene.activity

    def _habits(self, few: bool = False) -> Habits:
        length = 0.0 if few else self.length
        return Habits(
            vocabulary=0.0 if few else self.vocabulary,
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

    def _caption(self, scene: Scene, habits: Habits, u: Sequence[float]) -> str:
        shown = scene.person[LEANING]
        activity = self._activity(scene, u[_ACTIVITY])
        group: str | None = shown
        if u[_GUESS] < self.guessed_group:
            group = _group_of(scene.activity, otherwise=shown)
        if u[_ERROR] < rate_of(self.wrong_group, shown):
            group = another_group(shown, u[_WHICH_ERROR])
        if u[_GROUP] < rate_of(self.neutral, shown):
            group = None
        added = insult = None
        if u[_OBJECT] < rate_of(self.hallucination, shown):
            absent = [label for label in EXTRAS if label not in scene.extras]
            added = absent[int(u[_WHICH_OBJECT] * len(absent))]
        if u[_DEMEANING] < rate_of(self.demeaning, shown):
            words = demeaning_words()
            insult = words[int(u[_WHICH_DEMEANING] * len(words))]
        said = Said(group, activity, scene.extras, added, insult)
        if u[_ERASED] < rate_of(self.erasure, shown):
            return without_people(scene, said, habits, u)
        return sentence(scene, said, habits, u)


def _group_of(activity: str, otherwise: str) -> str:
    """The group that an activity leans to, where it leans."""
    pair = ACTIVITIES[activity]
    return (
        next(group for group, concept in pair.of.items() if concept == activity)
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
