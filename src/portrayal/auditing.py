"""An audit: every metric that a study allows, for every attribute it has."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from portrayal.errors import Undefined
from portrayal.metrics import METRICS, Metric, find_metric
from portrayal.results import Results, command_line, provenance
from portrayal.study import Study

Progress = Callable[[str, int, int], None]  # what is done now, steps done, steps in all


def audit(
    study: Study,
    *,
    metrics: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Results:
    """Run the metrics a study allows; what it does not allow is listed in the provenance with its reason."""
    started = time.time()
    chosen = [find_metric(name) for name in dict.fromkeys(metrics if metrics is not None else METRICS)]
    if systems is not None:
        study = study.only(systems)
    parts: list[Results] = []
    skipped: list[dict[str, str | None]] = []
    steps: list[tuple[Metric, str]] = []
    for metric in chosen:
        try:
            steps += [(metric, attribute) for attribute in metric.attributes_of(study, None)]
        except Undefined as reason:
            skipped.append({"metric": metric.name, "attribute": None, "reason": str(reason)})
    for number, (metric, attribute) in enumerate(steps):
        if progress is not None:
            progress(f"{metric.name} · {attribute}", number, len(steps))
        try:
            parts.append(metric(study, attribute=attribute, seed=seed))
        except Undefined as reason:
            skipped.append({"metric": metric.name, "attribute": attribute, "reason": str(reason)})
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=describe(study),
        cards={metric.name: metric.card.as_dict() for metric in chosen},
        skipped=skipped,
    )
    return Results.join(parts, origin)


def describe(study: Study) -> dict[str, object]:
    """What was audited, in the words and counts that a reader of the results needs."""
    return {
        "name": study.name,
        "digest": study.digest,
        "systems": list(study.systems),
        "images": study.image_ids.len(),
        "captions": study.captions.height,
        "references": study.references.height,
        "objects": study.objects.height,
        "groups": {name: study.group_counts(name) for name in study.attribute_names},
        "left_out": study.left_out,
    }
