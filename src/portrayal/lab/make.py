"""A study from the lab: scenes, what five annotators and several captioners say of them, and the labels."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from portrayal.lab.annotators import ANNOTATORS, Annotators
from portrayal.lab.captioners import DEMO_CAPTIONERS, Captioner
from portrayal.lab.language import object_label
from portrayal.lab.world import ATTRIBUTES, Scene, World, make_scenes
from portrayal.results import HUMAN
from portrayal.study import Study, tables


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
) -> Study:
    """What is said of these scenes, with their labels, as a study; without `references`, people are not asked."""
    ids = [scene.identifier for scene in scenes]
    written = (annotators or Annotators()).describe(scenes, seed) if references else []
    told = [captioner.describe(scenes, seed) for captioner in captioners]
    labels = [(scene.identifier, label) for scene in scenes for label in labels_of(scene)]
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
        objects=pl.DataFrame(
            {"image_id": [image for image, _ in labels], "label": [label for _, label in labels]},
            schema={"image_id": pl.String(), "label": pl.String()},
        )
        .with_columns(pl.lit("object").alias("kind"), pl.lit(HUMAN).alias("source"))
        .with_columns(
            pl.lit(None, dtype=kind).alias(column) for column, kind in list(tables.OBJECTS.items())[4:]
        ),
    )


def labels_of(scene: Scene) -> tuple[str, ...]:
    """The objects of a scene, as people label them."""
    label = object_label(scene.activity)
    return scene.extras if label is None else (label, *scene.extras)
