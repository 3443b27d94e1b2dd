"""Count a study part by part: the same numbers, with memory for one part at a time.

Only additive measurements can be counted so. Measurements that need all images at once (regressions, permutation tests)
are undefined, with that reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.engine import Progress, Task, executor_for, run_tasks
from portrayal.errors import PortrayalError, find_name
from portrayal.metrics.harms.counting import count_images, sources_of
from portrayal.metrics.harms.measurement import HarmMeasurement
from portrayal.metrics.harms.prepare import WORD_LISTS, HarmOptions, prepare, with_study_data
from portrayal.metrics.harms.settings import Stage
from portrayal.metrics.harms.survey import Survey
from portrayal.results import HUMAN
from portrayal.study import Study, count_parts, read_part

NEEDS_ALL_IMAGES = "it needs all images at once: measure the study as a whole, without stream"


def survey_part(
    _: Any, path: str, part: int, senses: bool, attribute: str
) -> tuple[Survey, NDArray[np.uint64]]:
    """The survey of a part, and hashes of its image ids, by which an image in two parts is found."""
    study = read_part(path, part)
    names = study.captions["image_id"].unique().to_list()
    hashes = [int.from_bytes(hashlib.blake2b(n.encode(), digest_size=8).digest(), "little") for n in names]
    return Survey.of(study, senses, attribute), np.array(hashes, dtype=np.uint64)


def count_part(
    _: Any,
    path: str,
    part: int,
    options: HarmOptions,
    survey: Survey,
    selected: Sequence[type[HarmMeasurement]],
    sources: Sequence[str],
) -> dict[str, list[HarmMeasurement]]:
    """The measurements of one part."""
    study: Study = read_part(path, part)
    settings, _ = prepare(options, survey, selected)
    present = [source for source in sources if source in study.sources]
    return count_images(study, with_study_data(settings, options, study, selected), selected, present)


def count_in_parts(
    path: Path,
    options: HarmOptions,
    stages: Sequence[Stage],
    selected: Sequence[type[HarmMeasurement]],
    systems: Sequence[str] | None,
    workers: int,
    progress: Progress | None,
) -> tuple[Survey, dict[Stage, dict[str, list[HarmMeasurement]]]]:
    """The survey of a whole study, and its measurements by stage and source, merged from those of its parts."""
    parts = count_parts(path)
    executor = executor_for(workers)
    senses = any(kind.needs_senses for kind in selected)
    survey_tasks = [
        Task(f"survey {part}", f"reading part {part + 1}", survey_part,
             {"path": str(path), "part": part, "senses": senses, "attribute": options.attribute})
        for part in range(parts)
    ]  # fmt: skip
    survey = Survey()
    image_hashes: list[NDArray[np.uint64]] = []
    for part_survey, images in run_tasks(survey_tasks, None, executor=executor, progress=progress):
        survey.merge(part_survey)
        image_hashes.append(images)
    if len(np.unique(np.concatenate(image_hashes))) < sum(len(images) for images in image_hashes):
        raise PortrayalError(f"{path}: expected all captions of an image in one part, found an image in two.")
    all_systems = list(survey.systems)
    if systems is not None and not systems:
        raise PortrayalError("No system was named; name at least one of the study's systems.")
    chosen_systems = dict.fromkeys(find_name("system", system, all_systems) for system in systems or ())
    all_sources = [*(chosen_systems or all_systems), *([HUMAN] if survey.images_with_references else [])]
    measurements: dict[Stage, dict[str, list[HarmMeasurement]]] = {}
    for stage in stages:
        sources = sources_of(stage, all_sources, survey)
        if not sources:
            continue
        settings, _ = prepare(options.at_stage(stage), survey, selected)
        if options.entities != WORD_LISTS:  # each part detects the entities of its own captions
            settings = replace(settings, word_lists=settings.word_lists.with_entities({}))
        tasks = [
            Task(f"count {stage} {part}", f"counting part {part + 1}", count_part,
                 {"path": str(path), "part": part, "options": options.at_stage(stage), "survey": survey,
                  "selected": selected, "sources": sources})
            for part in range(parts)
        ]  # fmt: skip
        totals = {source: [kind(settings) for kind in selected] for source in sources}
        for counted in run_tasks(tasks, None, executor=executor, progress=progress):
            for source, part_measurements in counted.items():
                for total, part_measurement in zip(totals[source], part_measurements, strict=True):
                    total.merge(part_measurement)
        measurements[stage] = totals
    return survey, measurements
