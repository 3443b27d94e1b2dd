"""Quality of captions: the published caption scores, overall and by group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, Literal

from portrayal.errors import PortrayalError
from portrayal.metrics.base.options import Bootstrap, EvidenceLimit, Synonyms
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.quality import meteor, spice
from portrayal.metrics.quality.captions import ImageObjects, read_source
from portrayal.metrics.quality.card import CARD
from portrayal.metrics.quality.measurements import QualityMeasurements
from portrayal.metrics.quality.scores import SourceScores, score_source
from portrayal.results import HUMAN
from portrayal.stats import RESAMPLES
from portrayal.study import Study


@metric(CARD, every_attribute=True, not_general=("confidence",), english=("chair-i", "chair-s"))
def quality(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    java: Annotated[
        Literal["no", "auto", "yes"],
        "METEOR and SPICE, which need Java and the extra 'meteor': leave out, compute where they can run, or require "
        "METEOR.",
    ] = "no",
    truth: Annotated[
        Literal["both", "labels", "captions"],
        "Objects that are in an image, for chair: labelled ones, those that references name, or both (as published).",
    ] = "both",
    confidence: Annotated[
        float,
        "Minimum confidence of a model's label to count for chair, where there are no human labels.",
        0,
    ] = 0.5,
    synonyms: Synonyms = None,
    evidence: EvidenceLimit = 100,
) -> ResultBuilder:
    """Scores of the captions of every source: all images, each group, and gaps between groups.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": [1, 2], "system": ["s", "s"], "caption": ["a dog runs", "a red bus"]}),
    ...     references=pl.DataFrame({"image_id": [1, 2], "caption": ["a dog runs", "a blue bus"]}))
    >>> results = portrayal.metrics.quality(study)
    >>> round(next(m.value for m in results.measurements if m.term == "bleu-1" and m.system == "s"), 4)
    0.8333
    """
    programs = _java_programs(java)
    preconditions_met()
    runnable_programs = tuple(name for name, reason in programs.items() if reason is None)
    image_objects = _image_objects(study, truth, synonyms, confidence)
    labels = dict(study.labels(attribute).iter_rows()) if study.has_attribute(attribute) else {}
    settings = {
        "java": java,
        "truth": truth if image_objects else None,
        "objects": image_objects.source if image_objects else None,
        "confidence": confidence if image_objects and image_objects.source != HUMAN else None,
        "synonyms": image_objects.synonyms if image_objects else None,
    }
    builder = ResultBuilder(CARD, attribute, settings, keep_all=evidence == 0)
    for source in sources:
        source_captions = read_source(study, source)
        scores = _source_scores(study, source, truth, synonyms, confidence, runnable_programs)
        QualityMeasurements(
            builder, source, source_captions, scores, labels, seed, bootstrap, evidence
        ).add_all(programs, image_objects)
    return builder


@lru_cache(maxsize=2)
def _image_objects(study: Study, truth: str, synonyms: str | None, confidence: float) -> ImageObjects | None:
    """The objects of a study. Cached, since all sources have the same."""
    return ImageObjects.from_study(study, truth, synonyms, confidence)


@lru_cache(maxsize=8)
def _source_scores(
    study: Study,
    source: str,
    truth: str,
    synonyms: str | None,
    confidence: float,
    programs: tuple[str, ...],
) -> SourceScores:
    """The scores of one source. Cached, since they do not depend on the attribute."""
    return score_source(
        read_source(study, source), _image_objects(study, truth, synonyms, confidence), programs
    )


def _java_programs(java: str) -> dict[str, str | None]:
    """The requested Java programs, each with the reason why it cannot run."""
    if java == "no":
        return {}
    reasons = {"meteor": meteor.missing_requirement(), "spice": spice.missing_requirement()}
    if java == "yes" and reasons["meteor"]:
        raise PortrayalError(f"{reasons['meteor']}.")
    if reasons["spice"] and java == "auto":
        del reasons["spice"]  # no package contains its models, so they are rarely installed
    return reasons
