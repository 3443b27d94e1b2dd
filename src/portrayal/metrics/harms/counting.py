"""One pass over the images of a study: every measurement sees each of them once."""

from __future__ import annotations

import gc
import heapq
from collections.abc import Iterator, Sequence

from portrayal.metrics.harms.image_records import Scene, scenes
from portrayal.metrics.harms.measurement import Measure
from portrayal.metrics.harms.parsed_captions import Reading, Telling, Together
from portrayal.metrics.harms.setup import Reference, Setup, Stage
from portrayal.metrics.harms.survey import Survey
from portrayal.results import HUMAN
from portrayal.study import Study


def count_scenes(
    study: Study, setup: Setup, chosen: Sequence[type[Measure]], sources: Sequence[str]
) -> dict[str, list[Measure]]:
    """The measurements of each speaker, having seen every image."""
    measures = {source: [kind(setup) for kind in chosen] for source in sources}
    able = {source: [one for one in made if one.undefined() is None] for source, made in measures.items()}
    gc.freeze()  # word lists are large and stay: looking through them for garbage takes a third of the time
    try:
        for source, scene in _all_scenes(study, setup, [source for source in sources if able[source]]):
            said, people = tellings(setup, scene)
            for measure in able[source]:
                measure.see(scene, said, people)
    finally:
        gc.unfreeze()
    return measures


def _all_scenes(study: Study, setup: Setup, sources: Sequence[str]) -> Iterator[tuple[str, Scene]]:
    """Image by image, so that what people say of one is read once for all speakers."""

    def of(source: str) -> Iterator[tuple[str, Scene]]:
        return ((source, scene) for scene in scenes(study, source, setup.attribute))

    return heapq.merge(*(of(source) for source in sources), key=lambda entry: entry[1].image)


def tellings(setup: Setup, scene: Scene) -> tuple[Sequence[Telling], Sequence[Telling]]:
    """What the speaker says, caption by caption, and what it is held against: people's captions, several as one where
    any of them may speak for all."""
    people = setup.lists.read_all(scene.people)
    said = people if setup.stage in ("1", "3") else setup.lists.read_all(scene.said)
    return said, _joined(people, setup.reference)


def _joined(readings: Sequence[Reading], reference: Reference) -> Sequence[Telling]:
    if reference == "any" and len(readings) > 1:
        return [Together(readings)]
    return readings


def speakers_of(stage: Stage, sources: Sequence[str], survey: Survey) -> list[str]:
    """Whose captions or labels a stage is about: people's, where there are any, or systems'."""
    if stage in ("1", "3"):
        return [HUMAN] if HUMAN in sources and survey.described else []
    return [source for source in sources if source != HUMAN]
