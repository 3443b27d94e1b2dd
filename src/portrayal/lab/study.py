"""Make a study of the lab: human and system captions of scenes, rankings, and labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from portrayal.lab.annotators import N_ANNOTATORS, Annotators
from portrayal.lab.captioners import DEMO_CAPTIONERS, Captioner
from portrayal.lab.language import object_label
from portrayal.lab.rankings import rank_scenes
from portrayal.lab.world import ATTRIBUTES, Scene, World, make_scenes
from portrayal.results import HUMAN
from portrayal.study import Study, tables

DETECTOR = "detector"
# Labels of a scene, at most.
_MAX_LABELS = 3
# Parameters of the beta distribution of the detector's confidence; its mode is a third.
_CONFIDENCE = (2.0, 3.0)


def make_study(
    scenes: int = 1500,
    seed: int = 0,
    world: World | None = None,
    annotators: Annotators | None = None,
    captioners: Sequence[Captioner] = DEMO_CAPTIONERS,
    name: str = "the lab's world",
) -> Study:
    """Make a study with known bias.

    Each source has its own random stream: adding a captioner changes no other caption.

    Parameters
    ----------
    scenes
        Number of scenes.
    seed
        Seed of all random numbers.
    world, annotators, captioners
        The dials of the world, of the annotators and of each captioner.
    name
        Name of the study.

    Returns
    -------
    Study
        With captions, references, attributes, objects and rankings, and without images.

    Examples
    --------
    >>> make_study(scenes=20, seed=1).systems
    ('faithful', 'stereotyping', 'cautious')
    """
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
    """Return the study of these scenes; `references` and `rankings` say whether it has human captions and rankings."""
    ids = [scene.identifier for scene in scenes]
    human_captions = (annotators or Annotators()).describe(scenes, seed) if references else []
    system_captions = [captioner.describe(scenes, seed) for captioner in captioners]
    return Study(
        name=name,
        captions=pl.DataFrame(
            {
                "image_id": ids * len(captioners),
                "system": [captioner.name for captioner in captioners for _ in ids],
                "sample": [0] * (len(captioners) * len(ids)),
                "caption": [caption for captions in system_captions for caption in captions],
            },
            schema=tables.CAPTIONS,
        ),
        references=pl.DataFrame(
            {
                "image_id": [image for image in ids for _ in range(N_ANNOTATORS) if references],
                "caption": [caption for captions in human_captions for caption in captions],
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
    """Return the object labels of a scene."""
    label = object_label(scene.activity)
    return scene.extras if label is None else (label, *scene.extras)


def _objects(scenes: Sequence[Scene], seed: int) -> pl.DataFrame:
    """Return human labels, and detections of the same objects: the detector misses none, but confidence varies."""
    confidences = np.random.default_rng([seed, 5]).beta(*_CONFIDENCE, size=(len(scenes), _MAX_LABELS))
    labels = [
        (scene.identifier, label, float(confidences[scene_index, label_index]))
        for scene_index, scene in enumerate(scenes)
        for label_index, label in enumerate(labels_of(scene))
    ]
    rows: list[tuple[str, str, str, float | None]] = [
        (image, label, HUMAN, None) for image, label, _ in labels
    ]
    rows += [(image, label, DETECTOR, confidence) for image, label, confidence in labels]
    schema_of_known = {
        "image_id": pl.String(),
        "label": pl.String(),
        "source": pl.String(),
        "confidence": pl.Float64(),
    }
    objects = pl.DataFrame(rows, schema=schema_of_known, orient="row").with_columns(
        pl.lit("object").alias("kind")
    )
    empty_columns = [
        pl.lit(None, dtype=dtype_of_column).alias(name)
        for name, dtype_of_column in tables.OBJECTS.items()
        if name not in objects
    ]
    return objects.with_columns(empty_columns).select(list(tables.OBJECTS))
