"""Tasks of a metric: one per attribute and source, which an executor runs in any order and on any process."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from portrayal.engine import Task, code_digest
from portrayal.errors import Undefined
from portrayal.files import content_digest
from portrayal.metrics.base.metric import Metric
from portrayal.metrics.base.registry import find_metric
from portrayal.results import Results
from portrayal.study import Study

# Options that name a folder which a metric fills while it runs.
_CACHE_OPTIONS = ("cache_dir",)


def metric_tasks(
    study: Study, metric: Metric, attributes: Sequence[str], shared: dict[str, Any]
) -> list[Task[Results]]:
    """Return one task per attribute and source: long enough to be worth sending, short enough to keep cores busy."""
    tasks = []
    files = _file_digests(shared.get("options", {}))
    for attribute, source in product(attributes, metric.measured_sources(study, shared.get("options", {}))):
        arguments = {**shared, "attribute": attribute, "source": source}
        name = f"{metric.name} · {attribute} · {source}"
        tasks.append(Task(_task_key(study, {**arguments, "files": files}), name, run_metric_task, arguments))
    return tasks


def run_metric_task(
    study: Study,
    metric: str,
    attribute: str,
    source: str,
    seed: int,
    options: dict[str, Any],
) -> Results:
    """Run one task. If the metric is undefined for the attribute, the result is empty and lists the reason."""
    try:
        return find_metric(metric)(study, attribute=attribute, sources=[source], seed=seed, **options)
    except Undefined as reason:
        skip = {"metric": metric, "attribute": attribute, "reason": str(reason)}
        return Results((), provenance={"skipped": [skip]})


def _file_digests(options: Mapping[str, Any]) -> dict[str, str]:
    """Return digests of the files that options name: a word list or model may change while its path stays."""
    values = (
        value
        for name, option in options.items()
        if name not in _CACHE_OPTIONS
        for value in (option if isinstance(option, list | tuple) else [option])
    )
    paths = {str(value): Path(value) for value in values if isinstance(value, str | Path) and value}
    return {name: content_digest(path) for name, path in paths.items() if path.exists()}


def _task_key(study: Study, arguments: dict[str, object]) -> str:
    """Return a task's checkpoint key: a digest of everything that decides its result."""
    code = [code_digest(), _plugin_digest(find_metric(str(arguments["metric"])))]
    text = json.dumps([*code, study.digest, study.name, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _plugin_digest(metric: Metric) -> str | None:
    """Return the digest of the file of a metric that is not of this package, whose code `code_digest` does not know."""
    module = metric.compute.__module__
    if module.split(".")[0] == "portrayal":
        return None
    file = getattr(sys.modules[module], "__file__", None)
    return None if file is None else content_digest(Path(file))
