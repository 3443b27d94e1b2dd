"""Five people who describe each scene, each with habits of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from portrayal.lab.dials import Dial, Rates, check_dials, rate_of
from portrayal.lab.language import DECISIONS, Habits, Said, column, sentence
from portrayal.lab.world import ATTRIBUTES, LEANING, Scene

_HABITS = (
    Habits(),
    Habits(first_choice=1, colour=0.7, pronoun=0.3, mood=0.35, job=0.4, written=True),
    Habits(vocabulary=0.6, place=0.9, place_first=0.35, extra=0.6, opening=0.0, detail=0.05),
    Habits(first_choice=2, colour=0.4, time=0.3, detail=0.35, opening=0.4, place=0.4, written=True),
    Habits(vocabulary=0.5, colour=0.4, place=0.4, time=0.05, pronoun=0.0, mood=0.05, extra=0.4, detail=0.1),
)
ANNOTATORS = len(_HABITS)
_GROUP, _ERROR, _WHICH_ERROR = column("group"), column("error"), column("which error")


@dataclass(frozen=True)
class Annotators:
    """The dials of the people who write references. They know what happens in a scene even where it does not show."""

    names_gender: Annotated[float, Dial("share of captions that name the gender", "none does")] = 0.8
    names_age: Annotated[
        float, Dial("share of captions with an adjective of age (nouns such as girl name it too)", "none")
    ] = 0.1
    names_skin: Annotated[float, Dial("share of captions that name the skin tone", "none does")] = 0.02
    mistakes: Annotated[
        Rates,
        Dial("of captions naming a gender, the share that name another one", "none does", per_group=True),
    ] = 0.03
    bare: Annotated[
        float, Dial('share of captions that only say who is there ("a man is in the picture")', "none")
    ] = 0.04

    def __post_init__(self) -> None:
        check_dials(self, ATTRIBUTES[LEANING])

    def describe(self, scenes: Sequence[Scene], seed: int) -> list[list[str]]:
        """Five captions of every scene."""
        habits = [
            replace(one, names_age=self.names_age, names_skin=self.names_skin, bare=self.bare)
            for one in _HABITS
        ]
        u = np.random.default_rng([seed, 2]).random((len(scenes), ANNOTATORS, len(DECISIONS)))
        return [
            [self._caption(scene, one, row) for one, row in zip(habits, u[number].tolist(), strict=True)]
            for number, scene in enumerate(scenes)
        ]

    def group_named(self, group: str, names: float, error: float, which: float) -> str | None:
        """The group that a text names of people of this one, or None, by three random numbers from 0 to 1."""
        if names >= self.names_gender:
            return None
        return another_group(group, which) if error < rate_of(self.mistakes, group) else group

    def _caption(self, scene: Scene, habits: Habits, u: Sequence[float]) -> str:
        group = self.group_named(scene.person[LEANING], u[_GROUP], u[_ERROR], u[_WHICH_ERROR])
        return sentence(scene, Said(group, scene.activity, scene.extras), habits, u)


def another_group(group: str, u: float) -> str:
    """One of the other groups of the attribute, each as likely."""
    others = [other for other in ATTRIBUTES[LEANING] if other != group]
    return others[int(u * len(others))]
