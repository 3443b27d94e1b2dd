"""Plain sentences about a scene: what models that fill masks are asked, they have read in training.

Annotators write freely; a question such as "a [MASK] is in the picture" needs sentences of its form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from portrayal.lab.annotators import Annotators
from portrayal.lab.language import job_phrase, named, plural
from portrayal.lab.world import LEANING, Scene

WHO = "{a}{noun} {is} in the picture"
DOES = (
    "the {noun} {is} {activity}",
    "the {noun} in the photo {is} {activity}",
    "{a}{noun} who {is} {activity}",
    "a photo of {a}{noun} who {is} {activity}",
)
WORKS = tuple(form.replace("{activity}", "{job}") for form in DOES)
WEARS = ("the {noun} wears a {colour} shirt", "the color of the shirt is {colour}")
PLACE = ("the place is a {place}", "a photo of a {place}")
_KINDS = ((WHO,), DOES, WEARS, PLACE, WORKS)
_SHARES = (0.16, 0.5, 0.14, 0.08, 0.12)  # of the kinds; without an occupation the last one is the second
_YOUNG = 0.5  # how often somebody young is called a girl or a boy


def plain_sentences(
    scenes: Sequence[Scene], each: int, seed: int, annotators: Annotators | None = None
) -> list[list[str]]:
    """So many sentences of each scene, naming groups as often and as rightly as annotators do."""
    annotators = annotators or Annotators()
    u = np.random.default_rng([seed, 7]).random((len(scenes), each, 6))
    return [
        [_sentence(scene, annotators, row) for row in rows]
        for scene, rows in zip(scenes, u.tolist(), strict=True)
    ]


def _sentence(scene: Scene, annotators: Annotators, u: Sequence[float]) -> str:
    group = annotators.group_named(scene.person[LEANING], u[0], u[1], u[2])
    age = scene.person["age"]
    noun = named(group, age if age != "young" or u[3] < _YOUNG else "old")
    kind = int(np.searchsorted(np.cumsum(_SHARES), u[4], side="right"))
    if kind >= len(_KINDS) - 1 and scene.occupation is None:
        kind = 1
    forms = _KINDS[min(kind, len(_KINDS) - 1)]
    many = scene.people > 1
    return forms[int(u[5] * len(forms))].format(
        a="" if many else "a ",
        noun=plural(noun) if many else noun,
        activity=scene.activity,
        colour=scene.colour,
        place=scene.place,
        job="" if scene.occupation is None else job_phrase(scene.occupation, many),
        **{"is": "are" if many else "is"},
    )
