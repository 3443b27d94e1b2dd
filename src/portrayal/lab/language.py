"""How the lab's annotators and captioners put a scene into words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from portrayal.lab.world import ACTIVITIES, Scene

# Nouns for a person of this gender and age; the key "" is for a speaker who names no gender.
_NOUNS: dict[str, dict[str, tuple[str, ...]]] = {
    "female": {"old": ("woman", "woman", "lady"), "young": ("girl", "girl", "young woman")},
    "male": {"old": ("man", "man", "guy"), "young": ("boy", "boy", "young man")},
    "": {"old": ("person", "person", "adult"), "young": ("child", "kid", "person")},
}
_SHIRTS = ("red", "blue", "green", "white", "black", "yellow", "striped")
_MOODS = ("smiling", "happy", "busy", "tired")


@dataclass(frozen=True)
class Habits:
    """How one speaker writes: shares from 0 (never) to 1 (always)."""

    names_gender: float = 0.8
    mentions_shirt: float = 0.3
    mentions_mood: float = 0.15
    mentions_place: float = 0.7
    uses_pronoun: float = 0.1
    plain: bool = False  # always the first word for a thing, as captioners tend to do


def sentence(
    scene: Scene, gender: str | None, activity: int, habits: Habits, rng: np.random.Generator
) -> str:
    """One caption of a scene; `gender` and `activity` are what the speaker says, which may not be what is there."""
    said = gender if gender is not None and rng.random() < habits.names_gender else ""
    nouns = _NOUNS[said][scene.person["age"]]
    noun = nouns[0] if habits.plain else str(rng.choice(nouns))
    doing = ACTIVITIES[activity]
    verb = doing.verbs[0] if habits.plain else str(rng.choice(doing.verbs))
    thing = doing.things[0] if habits.plain else str(rng.choice(doing.things))
    mood = f"{rng.choice(_MOODS)} " if rng.random() < habits.mentions_mood else ""
    start = f"{mood}{noun}"
    words = [f"{_article(start)} {start}"]
    if rng.random() < habits.mentions_shirt:
        words.append(f"in a {rng.choice(_SHIRTS)} shirt")
    words += ["is" if rng.random() < 0.4 else "", verb, thing]
    if rng.random() < habits.mentions_place:
        words.append(
            f"{'on' if scene.place in ('street', 'ramp', 'beach', 'field') else 'in'} the {scene.place}"
        )
    if said and rng.random() < habits.uses_pronoun:
        words.append(f"with {_POSSESSIVES[said]} friend")
    return " ".join(word for word in words if word)


_POSSESSIVES = {"female": "her", "male": "his"}


def _article(phrase: str) -> str:
    return "an" if phrase[0] in "aeiou" else "a"
