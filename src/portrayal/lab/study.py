"""A study from the lab: scenes, what annotators and captioners say of them, how these rank them, and the labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from portrayal.lab.annotators import ANNOTATORS, Annotators
from portrayal.lab.captioners import DEMO_CAPTIONERS, Captioner
from portrayal.lab.language import object_label
from portrayal.lab.rankings import rank_scenes
from portrayal.lab.world import ATTRIBUTES, Scene, World, make_scenes
from portrayal.results import HUMAN
from portrayal.study import Study, tables

DETECTOR = "detector"
_LABELS = 3  # that a scene has at most
_SURE = (2.0, 3.0)  # of the beta distribution of its confidence: most often around a third


def make_study(
    scenes: int = 1500,
    seed: int = 0,
    world: World | None = None,
    annotators: Annotators | None = None,
    captioners: Sequence[Captioner] = DEMO_CAPTIONERS,
    name: str = "the lab's world",
) -> Study:
    """A study with known faults. Each speaker has a random stream of its own: adding one changes no other."""
    return describe_scenes(make_scenes(scenes, seed, world), seed, annotators, captioners, name)


def describe_scenes(
    scenes: Sequence[Scene],
    seed: int,
    annotators: Annotators | None = None,
    captioners: Sequence[Captioner] = DEMO_CAPTIONERS,
    name: str = "the lab's world",
    references: bool = True,
    rankings: bool = True,
) -> Study:
    """What is said of these scenes, with their labels, as a study; without `references`, people are not asked, without
    `rankings`, nobody searches.
    """
    ids = [scene.identifier for scene in scenes]
    written = (annotators or Annotators()).describe(scenes, seed) if references else []
    told = [captioner.describe(scenes, seed) for captioner in captioners]
    return Study(
        name=name,
        captions=pl.DataFrame(
            {
                "image_id": ids * len(captioners),
                "system": [captioner.name for captioner in captioners for _ in ids],
                "sample": [0] * (len(captioners) * len(ids)),
                "caption": [caption for captions in told for caption in captions],
            },
            schema=tables.CAPTIONS,
        ),
        references=pl.DataFrame(
            {
                "image_id": [image for image in ids for _ in range(ANNOTATORS) if references],
                "caption": [caption for captions in written for caption in captions],
            },
            schema=tables.REFERENCES,
        ),
        attributes=pl.DataFrame(
            {"image_id": ids}
            | {attribute: [scene.person[attribute] for scene in scenes] for attribute in ATTRIBUTES}
        ),
        objects=_objects(scenes, seed),
        rankings=rank_scenes(captioners if rankings else (), scenes, seed),
    )


def labels_of(scene: Scene) -> tuple[str, ...]:
    """The objects of a scene, as people label them."""
    label = object_label(scene.activity)
    return scene.extras if label is None else (label, *scene.extras)


def _objects(scenes: Sequence[Scene], seed: int) -> pl.DataFrame:
    """What people label, and the same things as a detector sees them: it misses none, but is not equally sure."""
    sure = np.random.default_rng([seed, 5]).beta(*_SURE, size=(len(scenes), _LABELS))
    seen = [
        (scene.identifier, label, float(sure[number, place]))
        for number, scene in enumerate(scenes)
        for place, label in enumerate(labels_of(scene))
    ]
    rows: list[tuple[str, str, str, float | None]] = [(image, label, HUMAN, None) for image, label, _ in seen]
    rows += [(image, label, DETECTOR, confidence) for image, label, confidence in seen]
    known = {"image_id": pl.String(), "label": pl.String(), "source": pl.String(), "confidence": pl.Float64()}
    made = pl.DataFrame(rows, schema=known, orient="row").with_columns(pl.lit("object").alias("kind"))
    rest = [pl.lit(None, dtype=kind).alias(name) for name, kind in tables.OBJECTS.items() if name not in made]
    return made.with_columns(rest).select(list(tables.OBJECTS))
