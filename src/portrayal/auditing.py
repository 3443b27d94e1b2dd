"""An audit: every metric that a study allows, for every attribute it has."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from portrayal.engine import Journal, Progress, Task, at_most, code_digest, listening, place_for, run_tasks
from portrayal.errors import Undefined
from portrayal.metrics import METRICS, Metric, find_metric
from portrayal.results import Results, command_line, provenance
from portrayal.study import Study

QUICK_DRAWS = 200


def audit(
    study: Study,
    *,
    metrics: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    quick: bool = False,
    workers: int = 1,
    journal: Path | str | None = None,
    progress: Progress | None = None,
) -> Results:
    """Run the metrics a study allows; what it does not allow is listed in the provenance with its reason.

    `quick` draws fewer times, so that intervals are rougher. With a `journal` folder, what is finished is kept
    there, and the same call goes on from it; remove it once the results are saved. A script that asks for more
    than one of the `workers` needs the usual `if __name__ == "__main__":`.
    """
    started = time.time()
    chosen = list(dict.fromkeys(find_metric(name) for name in (METRICS if metrics is None else metrics)))
    if systems is not None:
        study = study.only(systems)
    skipped: list[dict[str, str | None]] = []
    tasks: list[Task[Results]] = []
    for metric in chosen:
        try:
            shared = {"metric": metric.name, "seed": seed, "quick": quick}
            tasks += _tasks(study, metric, metric.attributes_of(study, None), shared)
        except Undefined as reason:
            skipped.append({"metric": metric.name, "attribute": None, "reason": str(reason)})
    kept = None if journal is None else Journal(Path(journal), Results.save, Results.load)
    parts = run_tasks(tasks, study, place=place_for(workers), journal=kept, progress=progress)
    skipped += _skipped(parts)
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=describe(study),
        cards={metric.name: metric.card.as_dict() for metric in chosen},
        skipped=skipped,
    )
    return Results.join(parts, origin)


def score(
    study: Study,
    metric: Metric,
    *,
    attribute: str | None = None,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Results:
    """One metric with options of its own, a speaker at a time, on as many cores as there are workers."""
    started = time.time()
    if systems is not None:
        study = study.only(systems)
    shared = {"metric": metric.name, "seed": seed, "quick": False, "options": options}
    tasks = _tasks(study, metric, metric.attributes_of(study, attribute, options), shared)
    if metric.at_once(options):
        with listening(progress), at_most(workers):
            return metric(study, attribute=attribute, seed=seed, **options)
    if workers == 1 or len(tasks) == 1:
        return metric(study, attribute=attribute, seed=seed, **options)
    parts = run_tasks(tasks, study, place=place_for(workers), progress=progress)
    skipped = _skipped(parts)
    if skipped and (attribute is not None or not any(part.measurements for part in parts)):
        raise Undefined(" ".join(str(skip["reason"]) for skip in skipped))
    return Results.join(parts, metric.provenance(study, seed, started, skipped))


def measure(
    study: Study,
    metric: str,
    attribute: str,
    speaker: str,
    seed: int,
    quick: bool,
    options: dict[str, Any] | None = None,
) -> Results:
    """One task. An attribute for which the metric is undefined is a result too: an empty one.

    Unless options are given, they are those of an audit.
    """
    found = find_metric(metric)
    if options is None:
        rougher = {"draws": QUICK_DRAWS} if "draws" in found.options else {}
        options = {**found.audit, **({**rougher, **found.quick} if quick else {})}
    try:
        return found(study, attribute=attribute, speakers=[speaker], seed=seed, **options)
    except Undefined as reason:
        skip = {"metric": metric, "attribute": attribute, "reason": str(reason)}
        return Results((), provenance={"skipped": [skip]})


def _tasks(
    study: Study, metric: Metric, attributes: Sequence[str], shared: dict[str, Any]
) -> list[Task[Results]]:
    """A task per speaker: long enough to be worth sending, short enough to keep every core busy."""
    made = []
    for attribute, speaker in product(attributes, metric.voices(study, shared.get("options", {}))):
        arguments = {**shared, "attribute": attribute, "speaker": speaker}
        name = f"{metric.name} · {attribute} · {speaker}"
        made.append(Task(_key(study, arguments), name, measure, arguments))
    return made


def _skipped(parts: Sequence[Results]) -> list[dict[str, str | None]]:
    """Every speaker's task gives the same reason."""
    skipped: list[dict[str, str | None]] = []
    for part in parts:
        skipped += [skip for skip in part.provenance["skipped"] if skip not in skipped]
    return skipped


def describe(study: Study) -> dict[str, object]:
    """What was audited, in the words and counts that a reader of the results needs."""
    return {
        "name": study.name,
        "digest": study.digest,
        "systems": list(dict.fromkeys((*study.systems, *study.rankers))),
        "images": study.image_ids.len(),
        "captions": study.captions.height,
        "references": study.references.height,
        "objects": study.objects.height,
        "groups": {name: study.group_counts(name) for name in study.attribute_names},
        "left_out": study.left_out,
    }


def _key(study: Study, arguments: dict[str, object]) -> str:
    """Names a task's journal entry by everything that decides its result."""
    text = json.dumps([code_digest(), study.digest, study.name, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
