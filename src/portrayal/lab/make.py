"""A study from the lab: scenes, what five annotators and several captioners say of them, and the labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from portrayal.lab.captioners import DEMO_CAPTIONERS, Captioner
from portrayal.lab.language import Habits, sentence
from portrayal.lab.world import ACTIVITIES, ATTRIBUTES, make_scenes
from portrayal.study import Study, tables

_ANNOTATORS = (
    Habits(),
    Habits(names_gender=0.9, mentions_shirt=0.5, uses_pronoun=0.3),
    Habits(names_gender=0.6, mentions_place=0.9),
    Habits(mentions_mood=0.4),
    Habits(names_gender=0.7, mentions_place=0.3, plain=True),
)


def make_study(
    scenes: int = 1500,
    seed: int = 0,
    data_bias: float = 0.5,
    captioners: Sequence[Captioner] = DEMO_CAPTIONERS,
    name: str = "the lab's demo world",
) -> Study:
    """A study with known faults. Each speaker has a random stream of its own: adding one changes no other."""
    streams = np.random.SeedSequence(seed).spawn(2)
    world = make_scenes(scenes, np.random.default_rng(streams[0]), data_bias)
    annotator_rng = np.random.default_rng(streams[1])
    references = [
        (scene.identifier, sentence(scene, scene.person["gender"], scene.activity, habits, annotator_rng))
        for scene in world
        for habits in _ANNOTATORS
    ]
    captions = []
    for captioner in captioners:
        rng = np.random.default_rng([seed, *captioner.name.encode()])
        captions += [(scene.identifier, captioner.name, 0, captioner.describe(scene, rng)) for scene in world]
    people = {"image_id": [scene.identifier for scene in world]} | {
        attribute: [scene.person[attribute] for scene in world] for attribute in ATTRIBUTES
    }
    labels = [{"image_id": scene.identifier, "label": ACTIVITIES[scene.activity].label} for scene in world]
    return Study(
        name=name,
        captions=pl.DataFrame(captions, schema=tables.CAPTIONS, orient="row"),
        references=pl.DataFrame(references, schema=tables.REFERENCES, orient="row"),
        attributes=pl.DataFrame(people),
        objects=pl.DataFrame(labels, schema=tables.OBJECTS).with_columns(
            pl.lit("object").alias("kind"), pl.lit("human").alias("source")
        ),
    )
