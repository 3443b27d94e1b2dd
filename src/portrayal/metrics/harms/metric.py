"""The metric `harms`: fifteen measurements of five representational harms in captions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

from portrayal.engine import Progress
from portrayal.errors import Undefined, unknown_name
from portrayal.files import content_digest
from portrayal.metrics.base.attribute_names import resolve_attribute
from portrayal.metrics.base.metric import DEFAULT_ATTRIBUTE
from portrayal.metrics.base.options import Bootstrap, EvidenceLimit, Synonyms, Words, unique_names
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import METRICS, metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.card import CARD, MEASUREMENTS
from portrayal.metrics.harms.counting import count_images, sources_of
from portrayal.metrics.harms.counts import DEFAULT_TOP
from portrayal.metrics.harms.measurement import HarmMeasurement
from portrayal.metrics.harms.prepare import HarmOptions, prepare, with_study_data
from portrayal.metrics.harms.reification import LABELLED
from portrayal.metrics.harms.settings import STAGES, Reference, Stage, Truth
from portrayal.metrics.harms.streaming import NEEDS_ALL_IMAGES, count_in_parts
from portrayal.metrics.harms.survey import Survey
from portrayal.metrics.shared.caption_language import unreadable_sources
from portrayal.metrics.shared.language_scores.models import FROM_REFERENCES
from portrayal.provenance import command_line, provenance
from portrayal.results import Results
from portrayal.stats import RESAMPLES
from portrayal.study import Study, read_part

DEFAULT_EVIDENCE = 2000
MeasurementName = Literal[
    "self-identification.identity-words", "reification.attributes", "erasure.misnaming", "erasure.group-not-mentioned",
    "erasure.entity-not-named", "erasure.too-vague", "erasure.ignoring", "stereotyping.incorrect-word",
    "stereotyping.correctly-mentioned", "stereotyping.distributions", "stereotyping.amplification", "demeaning.words",
    "demeaning.people-not-mentioned", "demeaning.in-context", "demeaning.adjective-as-noun",
]  # fmt: skip


def stream_harms(
    path: Path | str,
    *,
    attribute: str | None = None,
    systems: Sequence[str] | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Results:
    """Measure harms in a study on disk, part by part, with memory for one part at a time.

    Measurements that need all images at once are undefined, with that reason.

    Parameters
    ----------
    path
        A study whose `study.toml` lists several files of captions, one for each part.
    attribute
        The attribute of the groups; by default the first of the study.
    systems
        Measure these systems only; by default all.
    seed
        Seed of the bootstrap.
    workers
        Number of processes.
    progress
        Receives the progress of reading and counting parts.
    **options
        Options of `harms`.

    Returns
    -------
    Results
        As `harms` returns them.
    """
    started = time.time()
    metric_of_harms = METRICS[CARD.name]
    defaults = {name: parameter.default for name, parameter in metric_of_harms.options.items()}
    values = defaults | metric_of_harms.check_options(options)
    stages, terms = _selected_stages(values["stage"]), unique_names(values["measurement"])
    selected = [kind for kind in MEASUREMENTS if not terms or kind.card.term in terms]
    additive = [kind for kind in selected if kind.additive]
    part = read_part(path, 0)
    if attribute is not None:
        attribute = resolve_attribute(attribute, part.attribute_names)
    first = attribute or next(iter(part.attribute_names), DEFAULT_ATTRIBUTE)
    sources = [source for source in part.sources if systems is None or source in systems]
    for reason in unreadable_sources(part, sources, None).values():
        raise Undefined(reason)
    harm_options = HarmOptions(
        attribute=first,
        seed=seed,
        **{
            field.name: values[field.name]
            for field in fields(HarmOptions)
            if field.name in values and field.name != "stage"
        }
        | {"identity": unique_names(values["identity"]), "n_resamples": values["bootstrap"]},
    )
    survey, counted = count_in_parts(Path(path), harm_options, stages, additive, systems, workers, progress)
    if attribute is not None and survey.groups and attribute not in survey.groups:
        raise unknown_name("attribute", attribute, list(survey.groups))
    _require_references(stages, survey.images_with_references)
    builder = ResultBuilder(CARD, first, {})
    for stage, measurements in counted.items():
        _, row_settings = prepare(harm_options.at_stage(stage), survey, additive)
        keep_all = harm_options.evidence == 0
        builder.extend(write_measurements(measurements, first, row_settings, keep_all=keep_all))
        undefined = ResultBuilder(CARD, first, row_settings)
        for source, kind in product(measurements, [kind for kind in selected if not kind.additive]):
            undefined.add(kind.card.term, None, system=source, n=0, reason=NEEDS_ALL_IMAGES)
        builder.extend(undefined)
    digest = content_digest(Path(path)) if Path(path).is_file() else content_digest(Path(path) / "study.toml")
    study = {"name": Path(path).name, "digest": digest[:16]}
    run_provenance = provenance(
        command=command_line(),
        seed=seed,
        started=started,
        study=study,
        cards={CARD.name: CARD.as_dict()},
        skipped=[],
    )
    return Results.join([builder.results()], run_provenance)


@metric(
    CARD,
    slow=True,
    audit_options={"stage": ("3", "4"), "top": 10, "evidence": 500},
    every_attribute=True,
    term_option="measurement",
    english=True,
    stream=stream_harms,
)
def harms(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    measurement: Annotated[
        tuple[MeasurementName, ...], "Only these measurements (repeatable); by default all fifteen."
    ] = (),
    stage: Annotated[
        tuple[Stage, ...],
        "The text to measure (repeatable): 1 human labels, 3 human captions, 4 captions of systems, 4-without-3 "
        "captions of systems where human captions say nothing of the kind.",
    ] = ("4",),
    truth: Annotated[
        Truth | None,
        "What to compare captions with where both are possible: human labels (1) or human captions (3).",
    ] = None,
    reference: Annotated[
        Reference,
        "How to compare with several human captions of an image: with all together (any), or with each, averaged.",
    ] = "any",
    entities: Annotated[
        str,
        "Finder of named entities, nationalities, religious and political groups: words (a gazetteer and rules), or "
        "a spaCy pipeline by name or folder.",
    ] = "words",
    identity: Annotated[
        tuple[str, ...],
        "Your own words for social groups (repeatable): a TOML file whose attribute is the axis.",
    ] = (),
    demeaning: Annotated[str | None, "Your own list of demeaning words: a TOML file."] = None,
    in_context: Annotated[
        str | None, "Your own pairs of groups and words that demean them: a TOML file."
    ] = None,
    appearance: Annotated[
        str | None, "Table of physical attributes, for reification: a row per image, a column per attribute."
    ] = None,
    by: Annotated[
        Literal["labelled", "named"],
        "Groups whose physical attributes are compared: as labelled, or as captions name them.",
    ] = "labelled",
    threshold: Annotated[float, "Least excess of a wrong word in a group to report it.", 0.0] = 0.005,
    vectors: Annotated[
        str,
        "Word vectors that map other words to categories: a file, a package, or fitted (trained on the references).",
    ] = FROM_REFERENCES,
    synonyms: Synonyms = None,
    lexicon: Words = None,
    top: Annotated[int, "Number of words to report of each kind.", 0] = DEFAULT_TOP,
    evidence: EvidenceLimit = DEFAULT_EVIDENCE,
    show_words: Annotated[bool, "Report demeaning words one by one."] = False,
) -> ResultBuilder:
    """Count captions with representational harms, of every system; at stages 1 and 3, of humans.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame(
    ...         {"image_id": [1, 2], "system": ["s", "s"], "caption": ["an old man", "a french bulldog"]}))
    >>> results = portrayal.metrics.harms(study, measurement=("self-identification.identity-words",))
    >>> {m.item: m.value for m in results.measurements if m.unit == "share" and m.item in (None, "age", "norp")}
    {None: 0.5, 'age': 0.5, 'norp': 0.0}
    """
    selected = [kind for kind in MEASUREMENTS if not measurement or kind.card.term in measurement]
    stages = _selected_stages(stage)
    options = HarmOptions(
        attribute=attribute, truth=truth, reference=reference, entities=entities, identity=unique_names(identity),
        demeaning=demeaning, in_context=in_context, appearance=appearance, by=by, threshold=threshold, vectors=vectors,
        synonyms=synonyms, lexicon=lexicon, seed=seed, n_resamples=bootstrap, top=top, evidence=evidence,
        show_words=show_words,
    )  # fmt: skip
    if study.attribute_names and by == LABELLED:
        study.labels(attribute)  # raises for an unknown attribute
    _require_references(stages, study.references.height)
    preconditions_met()
    survey = Survey.of(study, any(kind.needs_senses for kind in selected), attribute)
    builder = ResultBuilder(CARD, attribute, {})
    for name in stages:
        stage_sources = sources_of(name, sources, survey)
        if not stage_sources:
            continue
        settings, row_settings = prepare(options.at_stage(name), survey, selected)
        settings = with_study_data(settings, options, study, selected)
        counted = count_images(study, settings, selected, stage_sources)
        builder.extend(write_measurements(counted, attribute, row_settings, keep_all=evidence == 0))
    return builder


def _require_references(stages: Sequence[Stage], n_references: int) -> None:
    """Raise if only stages 1 and 3 are selected and there are no references: both measure images that have them."""
    if not n_references and set(stages) <= {"1", "3"}:
        raise Undefined(
            f"Stage {stages[0]} is about humans, and the study has no human captions (references)."
        )


def _selected_stages(stage: str | Sequence[str]) -> list[Stage]:
    return [name for name in STAGES if name in unique_names(stage)]


def write_measurements(
    counted: Mapping[str, Sequence[HarmMeasurement]],
    attribute: str,
    settings: Mapping[str, Any],
    keep_all: bool = False,
) -> ResultBuilder:
    """The rows of all measurements; for undefined ones, the reason."""
    builder = ResultBuilder(CARD, attribute, settings, keep_all=keep_all)
    for source, measurements in counted.items():
        for measurement in measurements:
            reason = measurement.undefined_reason()
            if reason is not None:
                builder.add(measurement.card.term, None, system=source, n=0, reason=reason)
            else:
                measurement.write(builder, source)
    return builder
