"""Counting a study part by part: memory for one part, however many there are, and the same numbers.

Measurements that are sums can be made so. Those that need every image at once (regressions, and what is dealt anew to
find out what chance does) cannot, and say so.
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
from portrayal.metrics.harms.counting import count_scenes, speakers_of
from portrayal.metrics.harms.measurement import Measure
from portrayal.metrics.harms.prepare import WORDS, Asked, prepare, with_study
from portrayal.metrics.harms.setup import Stage
from portrayal.metrics.harms.survey import Survey
from portrayal.results import HUMAN
from portrayal.study import Study, count_parts, read_part

NOT_IN_PARTS = "it needs all images at once: measure the study as a whole, without stream"


def survey_part(
    _: Any, path: str, part: int, senses: bool, attribute: str
) -> tuple[Survey, NDArray[np.uint64]]:
    """What a part holds, and its images as numbers: an image must not be in two parts."""
    study = read_part(path, part)
    names = study.captions["image_id"].unique().to_list()
    numbers = [int.from_bytes(hashlib.blake2b(n.encode(), digest_size=8).digest(), "little") for n in names]
    return Survey.of(study, senses, attribute), np.array(numbers, dtype=np.uint64)


def count_part(
    _: Any,
    path: str,
    part: int,
    asked: Asked,
    survey: Survey,
    chosen: Sequence[type[Measure]],
    sources: Sequence[str],
) -> dict[str, list[Measure]]:
    """The measurements of one part."""
    study: Study = read_part(path, part)
    setup, _settings = prepare(asked, survey, chosen)
    here = [source for source in sources if source in study.sources]
    return count_scenes(study, with_study(setup, asked, study, chosen), chosen, here)


def count_in_parts(
    path: Path,
    asked: Asked,
    stages: Sequence[Stage],
    chosen: Sequence[type[Measure]],
    systems: Sequence[str] | None,
    workers: int,
    progress: Progress | None,
) -> tuple[Survey, dict[Stage, dict[str, list[Measure]]]]:
    """The measurements of a whole study, added up from its parts; the survey says what the study holds."""
    parts = count_parts(path)
    place = executor_for(workers)
    senses = any(kind.needs_senses for kind in chosen)
    looks = [
        Task(f"survey {part}", f"reading part {part + 1}", survey_part,
             {"path": str(path), "part": part, "senses": senses, "attribute": asked.attribute})
        for part in range(parts)
    ]  # fmt: skip
    survey = Survey()
    seen: list[NDArray[np.uint64]] = []
    for found, images in run_tasks(looks, None, executor=place, progress=progress):
        survey.merge(found)
        seen.append(images)
    if len(np.unique(np.concatenate(seen))) < sum(len(images) for images in seen):
        raise PortrayalError(f"{path}: expected all captions of an image in one part, found an image in two.")
    everybody = list(survey.systems)
    if systems is not None and not systems:
        raise PortrayalError("No system was named; name at least one of the study's systems.")
    asked_for = dict.fromkeys(find_name("system", system, everybody) for system in systems or ())
    voices = [*(asked_for or everybody), *([HUMAN] if survey.described else [])]
    made: dict[Stage, dict[str, list[Measure]]] = {}
    for stage in stages:
        sources = speakers_of(stage, voices, survey)
        if not sources:
            continue
        setup, _ = prepare(asked.at(stage), survey, chosen)
        if asked.entities != WORDS:  # parts found entities by the model, each in its own captions
            setup = replace(setup, lists=setup.lists.seeing({}))
        tasks = [
            Task(f"count {stage} {part}", f"counting part {part + 1}", count_part,
                 {"path": str(path), "part": part, "asked": asked.at(stage), "survey": survey, "chosen": chosen,
                  "sources": sources})
            for part in range(parts)
        ]  # fmt: skip
        whole = {source: [kind(setup) for kind in chosen] for source in sources}
        for counted in run_tasks(tasks, None, executor=place, progress=progress):
            for source, measures in counted.items():
                for mine, theirs in zip(whole[source], measures, strict=True):
                    mine.merge(theirs)
        made[stage] = whole
    return survey, made
