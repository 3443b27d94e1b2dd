"""Apply caption mitigation to a study and measure it before and after, in one set of results."""

from __future__ import annotations

import csv
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.auditing import describe_study, score
from portrayal.engine import Progress
from portrayal.errors import PortrayalError, Undefined, unknown_name
from portrayal.files import replacing
from portrayal.lexicon import Lexicon
from portrayal.metrics import Metric, find_metric
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import choose_lexicon, labelled_objects, without_people
from portrayal.mitigate.captions.balancing import Balance, balance, random_subset
from portrayal.mitigate.captions.card import CARD
from portrayal.mitigate.captions.changes import changes
from portrayal.mitigate.captions.compared_metrics import METRICS
from portrayal.mitigate.captions.evidence import MIN_SHARE, find_group_evidence
from portrayal.mitigate.captions.measurements import add_balance_rows, add_rewrite_rows
from portrayal.mitigate.captions.rewrite import EVERYWHERE, NO_EVIDENCE, WHERE, Rewriter
from portrayal.provenance import command_line, provenance
from portrayal.results import HUMAN, Measurement, Results
from portrayal.stats import RESAMPLES
from portrayal.study import Study

NEUTRAL, BALANCED, RANDOM = "neutral", "balanced", "as many at random"
CAPTION_METHODS = (NEUTRAL, BALANCED)
_SYSTEM_SUFFIX = {NO_EVIDENCE: "neutral where no evidence", EVERYWHERE: "neutral everywhere"}
_INVALID_IN_FILE_NAMES = re.compile(r"[^\w(). -]+")


@dataclass(frozen=True)
class CaptionMitigation:
    """The results of caption mitigation, with the rewritten captions and the kept images.

    Parameters
    ----------
    results
        All measurements, before and after.
    captions
        Captions of the rewritten systems, as a table of a study.
    images
        Image and group of each kept image, by name of the set.
    original_systems
        The original of each mitigated system.
    """

    results: Results
    captions: pl.DataFrame
    images: Mapping[str, tuple[tuple[str, str], ...]]
    original_systems: Mapping[str, str] = field(default_factory=dict)

    def save(self, folder: Path | str) -> list[Path]:
        """Write the results, the captions of each rewritten system, and the images of each balanced set."""
        folder = Path(folder)
        written = [self.results.save(folder)]
        for system, rows in self.captions.group_by("system", maintain_order=True):
            path = folder / "captions" / f"{_file_name(str(system[0]))}.jsonl"
            with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as file:
                file.writelines(
                    json.dumps(row, ensure_ascii=False) + "\n" for row in rows.iter_rows(named=True)
                )
            written.append(path)
        for name, images in self.images.items():
            path = folder / "images" / f"{_file_name(name)}.csv"
            with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows([("image_id", "group"), *images])
            written.append(path)
        return written


def mitigate_captions(
    study: Study,
    *,
    methods: Sequence[str] = CAPTION_METHODS,
    attribute: str = "gender",
    systems: Sequence[str] | None = None,
    lexicon: str | Lexicon | None = None,
    where: Sequence[str] = WHERE,
    min_share: float = MIN_SHARE,
    metrics: Sequence[str] = METRICS,
    seed: int = 0,
    bootstrap: int = RESAMPLES,
    workers: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> CaptionMitigation:
    """Rewrite captions, balance images, and measure every system before and after.

    A mitigated system is a further system of the results: `oscar (neutral everywhere)`. The provenance gives the reason
    for each metric that cannot be measured on the study.

    Parameters
    ----------
    study
        Captions, with references for the method `neutral` where there is no evidence, and attributes for `balanced`.
    methods
        "neutral" rewrites words that name a group; "balanced" keeps images on which groups are equally frequent.
    attribute
        The attribute whose groups are named.
    systems
        Systems to mitigate; by default all.
    lexicon
        A shipped lexicon, a TOML file or a `Lexicon`; by default the attribute's.
    where
        Where captions are rewritten: "no-evidence" or "everywhere".
    min_share
        Share of the references that mention people which must name a group as evidence.
    metrics
        Metrics that are measured before and after.
    seed
        Seed of the bootstrap and of the balanced set.
    bootstrap
        Number of bootstrap resamples.
    workers
        Processes that work at the same time.
    progress
        Listener for progress.
    **options
        Options of the metrics whose card offers options (`BeforeAfter.offered_options`), such as LIC's.

    Returns
    -------
    CaptionMitigation
        The results, the rewritten captions and the kept images.

    Examples
    --------
    >>> from portrayal.lab import make_study
    >>> study = make_study(scenes=60, seed=1)
    >>> mitigation = mitigate_captions(
    ...     study, methods=["neutral"], where=["everywhere"], metrics=["error"], bootstrap=20
    ... )
    >>> rows = mitigation.results.measurements
    >>> shares = {m.system: m.value for m in rows if m.term == "neutral" and m.group is None}
    >>> [round(value) for name, value in shares.items() if name.endswith("(neutral everywhere)")]
    [1, 1, 1]
    """
    started = time.time()
    chosen_methods = [
        _require_known("caption method", name, CAPTION_METHODS) for name in dict.fromkeys(methods)
    ]
    chosen_where = [_require_known("rewrite condition", name, WHERE) for name in dict.fromkeys(where)]
    chosen_metrics = list(dict.fromkeys(map(find_metric, metrics)))
    if not 0 < min_share <= 1:
        raise PortrayalError(
            f"The option 'min_share' must be above 0 and at most 1. Got {min_share!r} instead."
        )
    if not chosen_methods or (NEUTRAL in chosen_methods and not chosen_where):
        raise PortrayalError("Name at least one method, and at least one condition for the rewrite (where).")
    if systems is not None:
        study = study.select_systems(systems)
    if not study.captions.height:
        raise Undefined("The study has no captions of a system, so there is nothing to mitigate.")
    attribute = resolve_attribute(attribute, study.attribute_names)
    loaded_lexicon = choose_lexicon(lexicon, attribute)
    builders: list[ResultBuilder] = []
    original_system: dict[str, str] = {}  # mitigated system -> its original
    settings: dict[str, Mapping[str, Any]] = {}  # mitigated system -> its settings
    images: dict[str, tuple[tuple[str, str], ...]] = {}

    def register(builder: ResultBuilder, name: str, sources: Sequence[str]) -> None:
        builders.append(builder)
        original_system.update({_mitigated_name(source, name): source for source in sources})
        settings.update(
            dict.fromkeys((_mitigated_name(source, name) for source in sources), builder.settings)
        )

    full_study = study
    for rewrite_where in chosen_where if NEUTRAL in chosen_methods else ():
        full_study, builder = _rewritten(
            study, full_study, loaded_lexicon, rewrite_where, min_share, attribute, seed, bootstrap
        )
        register(builder, _SYSTEM_SUFFIX[rewrite_where], study.systems)
    rewritten = full_study.captions.filter(pl.col("system").is_in(list(original_system)))
    study_parts = [(full_study, "")]
    for name, kept, builder in _balanced(study, attribute, seed) if BALANCED in chosen_methods else ():
        register(builder, name, study.sources)
        study_parts.append((_study_on(study, kept.kept, name), name))
        images[name] = tuple((image, kept.groups[image]) for image in kept.kept)
    measure_options = _MeasureOptions(attribute, lexicon, seed, bootstrap, workers, options)
    measured, skipped = _measured(study_parts, chosen_metrics, measure_options, progress)
    random_sets = {
        _mitigated_name(original, BALANCED): _mitigated_name(original, RANDOM)
        for original in study.sources
        if BALANCED in chosen_methods
    }
    rows = [
        *(builder.results() for builder in builders),
        changes(measured, original_system, settings, "change"),
        changes(measured, random_sets, settings, "beyond-random"),
        measured,
    ]
    run_provenance = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=describe_study(study),
        cards={
            CARD.name: CARD.as_dict(),
            **{metric.name: metric.card.as_dict() for metric in chosen_metrics},
        },
        skipped=skipped,
        mitigated=original_system,
    )
    return CaptionMitigation(Results.join(rows, run_provenance), rewritten, images, original_system)


def _measured(
    parts: Sequence[tuple[Study, str]],
    metrics: Sequence[Metric],
    measure_options: _MeasureOptions,
    progress: Progress | None,
) -> tuple[Results, list[dict[str, str]]]:
    """Return every metric on each part of the study, and the metrics that cannot be measured, with the reason."""
    results: list[Results] = []
    skipped: list[dict[str, str]] = []
    steps = [(study, name, metric) for study, name in parts for metric in metrics]
    for step, (study, name, metric) in enumerate(steps):
        if progress is not None:
            progress(f"{metric.name} {name}".strip(), step, len(steps))
        try:
            results.append(_with_part_name(measure_options.measure(study, metric), name))
        except Undefined as reason:
            skip = {"metric": metric.name, "attribute": measure_options.attribute, "reason": str(reason)}
            skipped += [skip] if skip not in skipped else []
    if not any(part.measurements for part in results):
        raise Undefined(" ".join(skip["reason"] for skip in skipped) or "No metric was named.")
    return Results.join(results, {}), skipped


def _require_known(kind: str, name: str, among: Sequence[str]) -> str:
    if name not in among:
        raise unknown_name(kind, name, among)
    return name


def _mitigated_name(system: str, method: str) -> str:
    return f"{system} ({method})"


def _file_name(system: str) -> str:
    return _INVALID_IN_FILE_NAMES.sub("-", system).strip(". ") or "system"


@dataclass(frozen=True)
class _MeasureOptions:
    """The options for measuring, the same for every part, so that before and after are comparable."""

    attribute: str
    lexicon: str | Lexicon | None
    seed: int
    n_resamples: int
    workers: int
    offered: Mapping[str, Any]

    def measure(self, study: Study, metric: Metric) -> Results:
        options: dict[str, Any] = {"bootstrap": self.n_resamples} if "bootstrap" in metric.options else {}
        if self.lexicon is not None and "lexicon" in metric.options:
            options["lexicon"] = self.lexicon
        description = metric.card.before_after
        if description is not None:
            options |= description.options
            if description.offered_options:
                options |= self.offered
        return score(study, metric, attribute=self.attribute, seed=self.seed, workers=self.workers, **options)


def _rewritten(
    study: Study,
    full_study: Study,
    lexicon: Lexicon,
    where: str,
    min_share: float,
    attribute: str,
    seed: int,
    n_resamples: int,
) -> tuple[Study, ResultBuilder]:
    """Return the study with a rewritten system for each of its systems, and the measurements of the changes."""
    rewriter = Rewriter(lexicon)
    group_evidence = find_group_evidence(study, lexicon, min_share) if where == NO_EVIDENCE else None
    labels = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    settings = {
        "method": NEUTRAL,
        "where": where,
        "min_share": None if group_evidence is None else min_share,
        "lexicon": lexicon.label,
    }
    builder = ResultBuilder(CARD, attribute, settings)
    frames, vocabularies = [full_study.captions], dict(full_study.vocabularies)
    for system in study.systems:
        name = _mitigated_name(system, _SYSTEM_SUFFIX[where])
        if name in study.systems:
            raise PortrayalError(f"The study has a system called '{name}' already; leave it out (--systems).")
        rows = study.captions.filter(pl.col("system") == system)
        captions = [
            (
                image,
                caption,
                rewriter.rewrite(caption, group_evidence.groups(image) if group_evidence else ()),
            )
            for image, caption in rows.select("image_id", "caption").iter_rows()
        ]
        add_rewrite_rows(builder, name, captions, group_evidence, labels, seed, n_resamples)
        new = pl.Series("caption", [rewritten.text for _, _, rewritten in captions], pl.String)
        frames.append(rows.with_columns(pl.lit(name).alias("system"), new))
        # The rewritten system's vocabulary also has the new words.
        if study.vocabularies.get(system):
            new_words = {
                part for _, _, rewritten in captions for _, new in rewritten.changed for part in new.split()
            }
            vocabularies[name] = tuple(dict.fromkeys((*study.vocabularies[system], *sorted(new_words))))
    return replace(full_study, captions=pl.concat(frames), vocabularies=vocabularies), builder


def _balanced(study: Study, attribute: str, seed: int) -> Iterator[tuple[str, Balance, ResultBuilder]]:
    """Yield the balanced set, and a random set with as many images."""
    if not study.attribute_names:
        raise Undefined(
            "Images are balanced by labels of the people shown (attributes), and the study has none."
        )
    captioned = set(study.captions["image_id"]) | set(study.references["image_id"])
    groups = {image: group for image, group in study.labels(attribute).iter_rows() if image in captioned}
    labels, source = labelled_objects(study)
    objects: dict[str, set[str]] = {}
    for image, label in without_people(labels).select("image_id", "label").iter_rows():
        objects.setdefault(image, set()).add(label)
    balanced_set = balance(groups, objects, seed)
    settings = {"method": BALANCED, "objects": source, "images": len(groups), "selection_seed": seed}
    builder = ResultBuilder(CARD, attribute, settings)
    add_balance_rows(builder, balanced_set, HUMAN, _mitigated_name(HUMAN, BALANCED))
    yield BALANCED, balanced_set, builder
    random_set = random_subset(balanced_set, seed)
    builder = ResultBuilder(CARD, attribute, {**settings, "method": RANDOM})
    add_balance_rows(builder, random_set, None, _mitigated_name(HUMAN, RANDOM))
    yield RANDOM, random_set, builder


def _study_on(study: Study, images: Sequence[str], name: str) -> Study:
    """Return the study on some of its images, with the name of the set added to its systems."""
    kept = {
        table: getattr(study, table).filter(pl.col("image_id").is_in(images))
        for table in ("captions", "references", "attributes", "people", "objects")
    }
    kept["captions"] = kept["captions"].with_columns(
        pl.concat_str(pl.col("system"), pl.lit(f" ({name})")).alias("system")
    )
    vocabularies = {_mitigated_name(system, name): words for system, words in study.vocabularies.items()}
    return replace(study, vocabularies=vocabularies, rankings=study.rankings.clear(), **kept)


def _with_part_name(results: Results, name: str) -> Results:
    """Return results with the name of the part added to the source `human`."""
    if not name:
        return results
    renamed: dict[str, str] = {}
    rows: list[Measurement] = []
    for m in results.measurements:
        if m.system == HUMAN:
            new = replace(m, system=_mitigated_name(HUMAN, name), id="")
            renamed[m.id], m = new.id, new
        rows.append(m)
    evidence = results.evidence.with_columns(
        pl.when(pl.col("system") == HUMAN)
        .then(pl.lit(_mitigated_name(HUMAN, name)))
        .otherwise(pl.col("system"))
        .alias("system"),
        pl.col("id").replace(renamed),
    )
    return Results(
        tuple(rows),
        evidence,
        results.replicates.with_columns(pl.col("id").replace(renamed)),
        results.provenance,
    )
