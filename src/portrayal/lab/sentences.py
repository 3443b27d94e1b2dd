"""Plain sentences about a scene, so that masked models are trained on the forms of their prompts.

Captions of annotators vary freely; a prompt such as "a [MASK] is in the picture" needs sentences of its form.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from portrayal.lab.annotators import Annotators
from portrayal.lab.language import group_noun, job_phrase, plural
from portrayal.lab.world import BIASED_ATTRIBUTE, Scene

GROUP_FORM = "{a}{noun} {is} in the picture"
ACTIVITY_FORMS = (
    "the {noun} {is} {activity}",
    "the {noun} in the photo {is} {activity}",
    "{a}{noun} who {is} {activity}",
    "a photo of {a}{noun} who {is} {activity}",
)
OCCUPATION_FORMS = tuple(form.replace("{activity}", "{job}") for form in ACTIVITY_FORMS)
COLOUR_FORMS = ("the {noun} wears a {colour} shirt", "the color of the shirt is {colour}")
PLACE_FORMS = ("the place is a {place}", "a photo of a {place}")
_FORMS = ((GROUP_FORM,), ACTIVITY_FORMS, COLOUR_FORMS, PLACE_FORMS, OCCUPATION_FORMS)
# Shares of the forms. Without an occupation, the second form replaces the last.
_SHARES = (0.16, 0.5, 0.14, 0.08, 0.12)
# Share of sentences about young people with "girl" or "boy".
_YOUNG = 0.5


def plain_sentences(
    scenes: Sequence[Scene], n_sentences: int, seed: int, annotators: Annotators | None = None
) -> list[list[str]]:
    """Return `n_sentences` sentences of each scene. They name groups at the rates of the annotators."""
    annotators = annotators or Annotators()
    u = np.random.default_rng([seed, 7]).random((len(scenes), n_sentences, 6))
    return [
        [_sentence(scene, annotators, row) for row in rows]
        for scene, rows in zip(scenes, u.tolist(), strict=True)
    ]


def _sentence(scene: Scene, annotators: Annotators, u: Sequence[float]) -> str:
    group = annotators.group_named(scene.person[BIASED_ATTRIBUTE], u[0], u[1], u[2])
    age = scene.person["age"]
    noun = group_noun(group, age if age != "young" or u[3] < _YOUNG else "old")
    kind = int(np.searchsorted(np.cumsum(_SHARES), u[4], side="right"))
    if kind >= len(_FORMS) - 1 and scene.occupation is None:
        kind = 1
    forms = _FORMS[min(kind, len(_FORMS) - 1)]
    plural_subject = scene.people > 1
    return forms[int(u[5] * len(forms))].format(
        a="" if plural_subject else "a ",
        noun=plural(noun) if plural_subject else noun,
        activity=scene.activity,
        colour=scene.colour,
        place=scene.place,
        job="" if scene.occupation is None else job_phrase(scene.occupation, plural_subject),
        **{"is": "are" if plural_subject else "is"},
    )
