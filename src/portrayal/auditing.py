"""Audits: run every metric that a study allows, for every attribute that it has."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from portrayal.engine import (
    Checkpoint,
    Progress,
    Task,
    executor_for,
    limit_cores,
    progress_listener,
    run_tasks,
)
from portrayal.errors import PortrayalError, Undefined, unknown_name
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon
from portrayal.metrics import METRICS, Metric, find_metric
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.cautions import study_cautions
from portrayal.metrics.base.options import GENERAL_OPTIONS
from portrayal.metrics.base.tasks import metric_tasks
from portrayal.metrics.shared.lexicon_use import group_words
from portrayal.provenance import command_line, provenance
from portrayal.results import Results
from portrayal.study import Study
from portrayal.study.study import COMBINED

QUICK_BOOTSTRAP = 200


@dataclass(frozen=True)
class MetricRun:
    """One metric for one attribute, with its options in an audit."""

    metric: Metric
    attribute: str
    options: Mapping[str, Any]


def audit(
    study: Study,
    *,
    metrics: Sequence[str] | None = None,
    systems: Sequence[str] | None = None,
    attribute: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    quick: bool = False,
    workers: int = 1,
    checkpoint: Path | str | None = None,
    progress: Progress | None = None,
    **general: Any,
) -> Results:
    """Run the metrics that a study allows, and return their results.

    Parameters
    ----------
    study : Study
        Captions, with references, attribute labels and objects as far as there are any.
    metrics : sequence of str, optional
        Names of the metrics to run. By default all that the study allows.
    systems : sequence of str, optional
        Names of the systems to audit. By default all.
    attribute : str, optional
        Attribute whose groups are compared. By default every attribute of the study.
    options : mapping, optional
        Options of single metrics, such as `{"lic": {"split": "paper"}}`.
    seed : int
        Random seed.
    quick : bool
        Use fewer bootstrap resamples and repeats, which gives less precise intervals.
    workers : int
        Number of processes. A script with more than one needs the usual `if __name__ == "__main__":`.
    checkpoint : path, optional
        Folder for finished tasks: the same call resumes from it. Remove it once the results are saved.
    progress : callable, optional
        Called with (task, tasks done, tasks in all).
    **general
        Options for every metric that takes them: lexicon, mask, model, language_model, encoder, vectors, confidence.

    Returns
    -------
    Results
        Metrics that the study does not allow are listed in the provenance (`skipped`), with the reason.

    Examples
    --------
    >>> from portrayal.lab import make_study
    >>> study = make_study(scenes=40, seed=1)
    >>> audit(study, metrics=["error"], attribute="gender", quick=True)
    <Results of "the lab's world": 72 measurements of 1 metric; faithful, stereotyping, cautious, human>
    """
    started = time.time()
    selected = list(dict.fromkeys(find_metric(name) for name in (METRICS if metrics is None else metrics)))
    if systems is not None:
        study = study.select_systems(systems)
    runs, skipped = plan(study, selected, attribute=attribute, options=options, quick=quick, **general)
    tasks: list[Task[Results]] = []
    for run in runs:
        shared = {"metric": run.metric.name, "seed": seed, "options": dict(run.options)}
        tasks += metric_tasks(study, run.metric, [run.attribute], shared)
    store = None if checkpoint is None else Checkpoint(Path(checkpoint), Results.save, Results.load)
    parts = run_tasks(tasks, study, executor=executor_for(workers), checkpoint=store, progress=progress)
    skipped += _merge_skipped(parts)
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study={**describe_study(study), "words": _group_words(study, runs)},
        cards={metric.name: metric.card.as_dict() for metric in selected},
        skipped=skipped,
        cautions=[caution.as_dict() for caution in study_cautions(study)],
        options=_recorded_options({"attribute": attribute, **general, **(options or {})}),
    )
    return Results.join(parts, origin)


def plan(
    study: Study,
    metrics: Sequence[Metric],
    *,
    attribute: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    quick: bool = False,
    **general: Any,
) -> tuple[list[MetricRun], list[dict[str, str | None]]]:
    """Return the runs of an audit, and the metrics that it skips with their reasons; nothing is computed.

    The metrics' own code checks the preconditions, so `check-study` reports exactly what `audit` does.
    """
    general = {name: value for name, value in general.items() if value is not None}
    for name in general:
        if name not in GENERAL_OPTIONS:
            raise unknown_name("option of an audit", name, GENERAL_OPTIONS)
    options = {find_metric(name).name: metric_options for name, metric_options in (options or {}).items()}
    known = {*study.attribute_names, *study.ranked_attributes}
    if attribute is not None and known:
        attribute = resolve_attribute(attribute, sorted(known))
        parts = [attribute] if attribute in known else attribute.split(COMBINED)
        if not set(parts) <= known or len(set(parts)) < len(parts):
            raise unknown_name("attribute", attribute, known)
    lexicon_attribute = _lexicon_attribute(study, attribute, general.get("lexicon"))
    runs: list[MetricRun] = []
    skipped: list[dict[str, str | None]] = []
    for metric in metrics:
        metric_options = _audit_options(metric, quick) | {
            name: general[name] for name in general if metric.takes(name)
        }
        metric_options |= metric.check_options(dict(options.get(metric.name, {})))
        has_own_lexicon = "lexicon" in options.get(metric.name, {})
        try:
            attributes = metric.attributes_of(
                study,
                attribute,
                metric_options
                if lexicon_attribute is None or has_own_lexicon
                else _without_lexicon(metric_options),
            )
        except Undefined as reason:
            skipped.append({"metric": metric.name, "attribute": None, "reason": str(reason)})
            continue
        # Attributes of images are not attributes of ranked items, and the other way round.
        except PortrayalError as reason:
            if attribute is None:
                raise
            skipped.append({"metric": metric.name, "attribute": attribute, "reason": str(reason)})
            continue
        for name in attributes:
            run_options = (
                metric_options
                if has_own_lexicon or lexicon_attribute in (None, name)
                else _without_lexicon(metric_options)
            )
            unmet = metric.unmet(study, name, run_options)
            if unmet is None:
                runs.append(MetricRun(metric, name, run_options))
            else:
                skipped.append({"metric": metric.name, "attribute": name, "reason": unmet})
    return runs, skipped


def _audit_options(metric: Metric, quick: bool) -> dict[str, Any]:
    """Return the options that an audit passes to a metric by default."""
    quick_options = {"bootstrap": QUICK_BOOTSTRAP} if "bootstrap" in metric.options else {}
    return {**metric.audit_options, **({**quick_options, **metric.quick_options} if quick else {})}


def _without_lexicon(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "lexicon"}


def _lexicon_attribute(study: Study, attribute: str | None, lexicon: str | Lexicon | None) -> str | None:
    """Return the attribute that a general lexicon applies to, or None if it applies to all attributes."""
    known = study.attribute_names
    if lexicon is None or attribute is not None or not known:
        return None
    words = load_lexicon(lexicon)
    named = words.attribute or words.name
    resolved = resolve_attribute(named, known)
    if resolved in known:
        return resolved
    # A single attribute accepts a user's own lexicon, but not a shipped one of another attribute if it has its own.
    if len(known) > 1 or (find_lexicon(named) is not None and find_lexicon(known[0]) is not None):
        raise PortrayalError(
            f"The lexicon '{words.name}' is for '{named}', and the study has labels of {', '.join(known)}; choose the "
            "attribute with --attribute."
        )
    return None


def _recorded_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON values for the provenance, without those that are None."""
    set_options = {name: value for name, value in options.items() if value is not None}
    recorded: dict[str, Any] = json.loads(json.dumps(set_options, default=str))
    return recorded


def score(
    study: Study,
    metric: str | Metric | Callable[..., Results],
    *,
    attribute: str | None = None,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Results:
    """Run one metric with its own options, one task per source, on `workers` processes.

    Parameters
    ----------
    study : Study
    metric : Metric or str
        A metric of `portrayal.metrics`, or its name.
    attribute, systems, seed, workers, progress
        As in `audit`.
    **options
        Options of the metric.

    Returns
    -------
    Results

    Examples
    --------
    >>> from portrayal.lab import make_study
    >>> score(make_study(scenes=40, seed=1), "error", attribute="gender", systems=["faithful"], bootstrap=20)
    <Results of "the lab's world": 36 measurements of 1 metric; faithful, human>
    """
    started = time.time()
    metric = find_metric(metric)
    if systems is not None:
        study = study.select_systems(systems)
    shared = {"metric": metric.name, "seed": seed, "options": options}
    tasks = metric_tasks(study, metric, metric.attributes_of(study, attribute, options), shared)
    if metric.sources_together(options):
        with progress_listener(progress), limit_cores(workers):
            return metric(study, attribute=attribute, seed=seed, **options)
    if workers == 1 or len(tasks) == 1:
        return metric(study, attribute=attribute, seed=seed, **options)
    parts = run_tasks(tasks, study, executor=executor_for(workers), progress=progress)
    skipped = _merge_skipped(parts)
    if skipped and (attribute is not None or not any(part.measurements for part in parts)):
        raise Undefined(" ".join(str(skip["reason"]) for skip in skipped))
    return Results.join(parts, metric.provenance(study, seed, started, skipped))


def _merge_skipped(parts: Sequence[Results]) -> list[dict[str, str | None]]:
    """Return the skipped metrics of all parts, each once: the tasks of all sources give the same reason."""
    skipped: list[dict[str, str | None]] = []
    for part in parts:
        skipped += [skip for skip in part.provenance["skipped"] if skip not in skipped]
    return skipped


def describe_study(study: Study) -> dict[str, object]:
    """Return a summary of the audited study for the provenance: names, counts and digests."""
    return {
        "name": study.name,
        "digest": study.digest,
        "systems": list(dict.fromkeys((*study.systems, *study.rankers))),
        "images": study.image_ids.len(),
        "image_set": _image_set_digest(study),
        "captions": study.captions.height,
        "references": study.references.height,
        "objects": study.objects["label"].count(),
        "groups": {name: study.group_counts(name) for name in study.attribute_names},
        "left_out": study.left_out,
        "truncated": dict(study.truncated),
    }


def lexicons_by_attribute(runs: Sequence[MetricRun]) -> dict[str, Any]:
    """Return the lexicon of each attribute's metrics; None is the attribute's own."""
    lexicons: dict[str, Any] = {}
    for run in runs:
        if run.metric.takes("lexicon"):
            lexicons.setdefault(run.attribute, run.options.get("lexicon"))
    return lexicons


def _group_words(study: Study, runs: Sequence[MetricRun]) -> dict[str, dict[str, list[str]]]:
    """Return the words that name the groups of each attribute."""
    lexicons = lexicons_by_attribute(runs)
    words_by_attribute = {
        name: group_words(study, name, lexicons[name]) for name in study.attribute_names if name in lexicons
    }
    return {name: words for name, words in words_by_attribute.items() if words}


def _image_set_digest(study: Study) -> str:
    """Return an order-independent digest of the captioned image ids (of all image ids if there are no captions)."""
    images = study.captions["image_id"].unique() if study.captions.height else study.image_ids
    return hashlib.sha256("\n".join(sorted(images)).encode()).hexdigest()[:16]
