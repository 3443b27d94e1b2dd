"""An audit: every metric that a study allows, for every attribute it has."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from portrayal.engine import (
    Checkpoint,
    Progress,
    Task,
    code_digest,
    executor_for,
    limit_cores,
    progress_listener,
    run_tasks,
)
from portrayal.errors import PortrayalError, Undefined, unknown_name
from portrayal.files import content_digest
from portrayal.lexicon import Lexicon, find_lexicon, load_lexicon
from portrayal.metrics import METRICS, Metric, find_metric
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.cautions import study_cautions
from portrayal.metrics.base.options import GENERAL
from portrayal.metrics.shared.lexicon_use import words_of_groups
from portrayal.results import Results, command_line, provenance
from portrayal.study import Study
from portrayal.study.study import COMBINED

QUICK_BOOTSTRAP = 200
_CACHES = ("trainings",)  # options that name a folder which fills while a metric runs


@dataclass(frozen=True)
class Run:
    """One metric for one attribute, with the options that an audit gives it."""

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
    """Run the metrics a study allows; what it does not allow is listed in the provenance with its reason.

    `options` has options of single metrics, such as `{"lic": {"split": "paper"}}`; `general` ones (lexicon, mask,
    model, language_model, encoder, vectors, confidence) go to every metric that takes them. `quick` draws fewer
    times, so that intervals are rougher. With a `journal` folder, what is finished is kept there, and the same call
    goes on from it; remove it once the results are saved. A script that asks for more than one of the `workers`
    needs the usual `if __name__ == "__main__":`.
    """
    started = time.time()
    chosen = list(dict.fromkeys(find_metric(name) for name in (METRICS if metrics is None else metrics)))
    if systems is not None:
        study = study.only(systems)
    runs, skipped = plan(study, chosen, attribute=attribute, options=options, quick=quick, **general)
    tasks: list[Task[Results]] = []
    for run in runs:
        shared = {"metric": run.metric.name, "seed": seed, "options": dict(run.options)}
        tasks += _tasks(study, run.metric, [run.attribute], shared)
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), Results.save, Results.load)
    parts = run_tasks(tasks, study, executor=executor_for(workers), checkpoint=kept, progress=progress)
    skipped += _skipped(parts)
    origin = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study={**describe(study), "words": _words(study, runs)},
        cards={metric.name: metric.card.as_dict() for metric in chosen},
        skipped=skipped,
        cautions=[caution.as_dict() for caution in study_cautions(study)],
        options=_told({"attribute": attribute, **general, **(options or {})}),
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
) -> tuple[list[Run], list[dict[str, str | None]]]:
    """What an audit will run, and what it will skip with the reason of each; nothing is computed.

    Preconditions are checked by the code of the metrics themselves, so that `check-study` tells what `audit` does.
    """
    general = {name: value for name, value in general.items() if value is not None}
    for name in general:
        if name not in GENERAL:
            raise unknown_name("option of an audit", name, GENERAL)
    options = {find_metric(name).name: given for name, given in (options or {}).items()}
    known = {*study.attribute_names, *study.ranked_attributes}
    if attribute is not None and known:
        attribute = resolve_attribute(attribute, sorted(known))
        parts = [attribute] if attribute in known else attribute.split(COMBINED)
        if not set(parts) <= known or len(set(parts)) < len(parts):
            raise unknown_name("attribute", attribute, known)
    words_for = _attribute_of_lexicon(study, attribute, general.get("lexicon"))
    runs: list[Run] = []
    skipped: list[dict[str, str | None]] = []
    for metric in metrics:
        given = _options(metric, quick) | {name: general[name] for name in general if metric.takes(name)}
        given |= metric.checked(dict(options.get(metric.name, {})))
        own_words = "lexicon" in options.get(metric.name, {})
        try:
            found = metric.attributes_of(
                study, attribute, given if words_for is None or own_words else _less(given)
            )
        except Undefined as reason:
            skipped.append({"metric": metric.name, "attribute": None, "reason": str(reason)})
            continue
        except (
            PortrayalError
        ) as reason:  # labels of images are not labels of ranked items, and the other way round
            if attribute is None:
                raise
            skipped.append({"metric": metric.name, "attribute": attribute, "reason": str(reason)})
            continue
        for name in found:
            here = given if own_words or words_for in (None, name) else _less(given)
            unmet = metric.unmet(study, name, here)
            if unmet is None:
                runs.append(Run(metric, name, here))
            else:
                skipped.append({"metric": metric.name, "attribute": name, "reason": unmet})
    return runs, skipped


def _options(metric: Metric, quick: bool) -> dict[str, Any]:
    """What an audit gives a metric unless a user says otherwise."""
    rougher = {"bootstrap": QUICK_BOOTSTRAP} if "bootstrap" in metric.options else {}
    return {**metric.audit, **({**rougher, **metric.quick} if quick else {})}


def _less(options: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "lexicon"}


def _attribute_of_lexicon(study: Study, attribute: str | None, lexicon: str | Lexicon | None) -> str | None:
    """The attribute that a general lexicon is for, so that it names no group of another; None: it is for all."""
    known = study.attribute_names
    if lexicon is None or attribute is not None or not known:
        return None
    words = load_lexicon(lexicon)
    named = words.attribute or words.name
    meant = resolve_attribute(named, known)
    if meant in known:
        return meant
    # The only attribute there is takes words of its user's, but not those of another attribute: it has words itself.
    if len(known) > 1 or (find_lexicon(named) is not None and find_lexicon(known[0]) is not None):
        raise PortrayalError(
            f"The lexicon '{words.name}' is for '{named}', and the study has labels of {', '.join(known)}; say which "
            "of them it is for with --attribute."
        )
    return None


def _told(given: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a results file has them: without those that nobody gave."""
    kept = {name: value for name, value in given.items() if value is not None}
    told: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    return told


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
    shared = {"metric": metric.name, "seed": seed, "options": options}
    tasks = _tasks(study, metric, metric.attributes_of(study, attribute, options), shared)
    if metric.at_once(options):
        with progress_listener(progress), limit_cores(workers):
            return metric(study, attribute=attribute, seed=seed, **options)
    if workers == 1 or len(tasks) == 1:
        return metric(study, attribute=attribute, seed=seed, **options)
    parts = run_tasks(tasks, study, executor=executor_for(workers), progress=progress)
    skipped = _skipped(parts)
    if skipped and (attribute is not None or not any(part.measurements for part in parts)):
        raise Undefined(" ".join(str(skip["reason"]) for skip in skipped))
    return Results.join(parts, metric.provenance(study, seed, started, skipped))


def measure(
    study: Study,
    metric: str,
    attribute: str,
    source: str,
    seed: int,
    options: dict[str, Any],
) -> Results:
    """One task. An attribute for which the metric is undefined is a result too: an empty one."""
    try:
        return find_metric(metric)(study, attribute=attribute, sources=[source], seed=seed, **options)
    except Undefined as reason:
        skip = {"metric": metric, "attribute": attribute, "reason": str(reason)}
        return Results((), provenance={"skipped": [skip]})


def _tasks(
    study: Study, metric: Metric, attributes: Sequence[str], shared: dict[str, Any]
) -> list[Task[Results]]:
    """A task per speaker: long enough to be worth sending, short enough to keep every core busy."""
    made = []
    files = _files(shared.get("options", {}))
    for attribute, source in product(attributes, metric.voices(study, shared.get("options", {}))):
        arguments = {**shared, "attribute": attribute, "source": source}
        name = f"{metric.name} · {attribute} · {source}"
        made.append(Task(_key(study, {**arguments, "files": files}), name, measure, arguments))
    return made


def _files(options: Mapping[str, Any]) -> dict[str, str]:
    """What the files hold that options name: word lists or a model may change while their paths stay."""
    values = (
        value
        for name, given in options.items()
        if name not in _CACHES
        for value in (given if isinstance(given, list | tuple) else [given])
    )
    paths = {str(value): Path(value) for value in values if isinstance(value, str | Path) and value}
    return {name: content_digest(path) for name, path in paths.items() if path.exists()}


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
        "image_set": _image_set(study),
        "captions": study.captions.height,
        "references": study.references.height,
        "objects": study.objects["label"].count(),
        "groups": {name: study.group_counts(name) for name in study.attribute_names},
        "left_out": study.left_out,
        "shortened": dict(study.shortened),
    }


def lexicons_of(runs: Sequence[Run]) -> dict[str, Any]:
    """The lexicon that the metrics of each attribute were given; None: the attribute's own."""
    given: dict[str, Any] = {}
    for run in runs:
        if run.metric.takes("lexicon"):
            given.setdefault(run.attribute, run.options.get("lexicon"))
    return given


def _words(study: Study, runs: Sequence[Run]) -> dict[str, dict[str, list[str]]]:
    """Words by which captions name the groups of each attribute."""
    given = lexicons_of(runs)
    found = {
        name: words_of_groups(study, name, given[name]) for name in study.attribute_names if name in given
    }
    return {name: words for name, words in found.items() if words}


def _image_set(study: Study) -> str:
    """A digest of which images are captioned (of a study without captions: of all), whatever their order."""
    images = study.captions["image_id"].unique() if study.captions.height else study.image_ids
    return hashlib.sha256("\n".join(sorted(images)).encode()).hexdigest()[:16]


def _key(study: Study, arguments: dict[str, object]) -> str:
    """Names a task's journal entry by everything that decides its result."""
    text = json.dumps([code_digest(), study.digest, study.name, arguments], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:24]
