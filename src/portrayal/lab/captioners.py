"""Captioners with dials: systems whose faults are known because they were planted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from portrayal.lab.language import Habits, sentence
from portrayal.lab.world import ATTRIBUTES, Scene, activity_chances


@dataclass(frozen=True)
class Captioner:
    """One system.

    `amplification`: share of captions whose activity is guessed from the gender alone, at full stereotype
    (0: it says what is there). `wrong_gender`: per group, the share of its people named as another group.
    `neutral`: share of captions that name no gender.
    """

    name: str
    amplification: float = 0.0
    wrong_gender: Mapping[str, float] = field(default_factory=dict)
    neutral: float = 0.2

    def describe(self, scene: Scene, rng: np.random.Generator) -> str:
        gender = scene.person["gender"]
        activity = scene.activity
        if rng.random() < self.amplification:
            activity = int(rng.choice(len(activity_chances(gender, 1.0)), p=activity_chances(gender, 1.0)))
        said = gender
        if rng.random() < self.wrong_gender.get(gender, 0.0):
            said = str(rng.choice([group for group in ATTRIBUTES["gender"] if group != gender]))
        habits = Habits(names_gender=1 - self.neutral, mentions_shirt=0.1, mentions_mood=0.05, plain=True)
        return sentence(scene, said, activity, habits, rng)


DEMO_CAPTIONERS = (
    Captioner("faithful", amplification=0.0, wrong_gender={"female": 0.02, "male": 0.02}),
    Captioner("stereotyping", amplification=0.5, wrong_gender={"female": 0.12, "male": 0.03}),
    Captioner("cautious", amplification=0.1, wrong_gender={"female": 0.02, "male": 0.02}, neutral=0.8),
)
