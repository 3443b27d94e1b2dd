"""Five simulated annotators who describe each scene, each with a caption style of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np

from portrayal.lab.dials import Dial, Rates, check_dials, rate_of
from portrayal.lab.language import DECISIONS, CaptionContent, CaptionStyle, decision_column, write_caption
from portrayal.lab.world import ATTRIBUTES, BIASED_ATTRIBUTE, Scene

_STYLES = (
    CaptionStyle(),
    CaptionStyle(first_choice=1, colour=0.7, pronoun=0.3, mood=0.35, job=0.4, punctuated=True),
    CaptionStyle(vocabulary=0.6, place=0.9, place_first=0.35, extra=0.6, opening=0.0, detail=0.05),
    CaptionStyle(first_choice=2, colour=0.4, time=0.3, detail=0.35, opening=0.4, place=0.4, punctuated=True),
    CaptionStyle(
        vocabulary=0.5, colour=0.4, place=0.4, time=0.05, pronoun=0.0, mood=0.05, extra=0.4, detail=0.1
    ),
)
N_ANNOTATORS = len(_STYLES)
_GROUP, _ERROR, _WHICH_ERROR = (
    decision_column("group"),
    decision_column("error"),
    decision_column("which error"),
)


@dataclass(frozen=True)
class Annotators:
    """The dials of the annotators who write references.

    Annotators know what happens in a scene even where the image does not show it.
    """

    names_gender: Annotated[float, Dial("share of captions that name the gender", "none does")] = 0.8
    names_age: Annotated[
        float, Dial("share of captions with an adjective of age (nouns such as girl name it too)", "none")
    ] = 0.1
    names_skin: Annotated[float, Dial("share of captions that name the skin tone", "none does")] = 0.02
    mistakes: Annotated[
        Rates,
        Dial("share of captions naming a gender that name another one", "none does", per_group=True),
    ] = 0.03
    bare: Annotated[
        float, Dial('share of captions that only name the person ("a man is in the picture")', "none")
    ] = 0.04

    def __post_init__(self) -> None:
        check_dials(self, ATTRIBUTES[BIASED_ATTRIBUTE])

    def describe(self, scenes: Sequence[Scene], seed: int) -> list[list[str]]:
        """Return five captions of every scene."""
        styles = [
            replace(style, names_age=self.names_age, names_skin=self.names_skin, bare=self.bare)
            for style in _STYLES
        ]
        u = np.random.default_rng([seed, 2]).random((len(scenes), N_ANNOTATORS, len(DECISIONS)))
        return [
            [self._caption(scene, style, row) for style, row in zip(styles, u[index].tolist(), strict=True)]
            for index, scene in enumerate(scenes)
        ]

    def group_named(self, group: str, names: float, error: float, which: float) -> str | None:
        """Return the group that a text names for people of `group`, or None.

        `names`, `error` and `which` are uniform random numbers from 0 to 1.
        """
        if names >= self.names_gender:
            return None
        return another_group(group, which) if error < rate_of(self.mistakes, group) else group

    def _caption(self, scene: Scene, style: CaptionStyle, u: Sequence[float]) -> str:
        group = self.group_named(scene.person[BIASED_ATTRIBUTE], u[_GROUP], u[_ERROR], u[_WHICH_ERROR])
        return write_caption(scene, CaptionContent(group, scene.activity, scene.extras), style, u)


def another_group(group: str, u: float) -> str:
    """Return one of the other groups of the attribute, each with the same probability."""
    others = [other for other in ATTRIBUTES[BIASED_ATTRIBUTE] if other != group]
    return others[int(u * len(others))]
