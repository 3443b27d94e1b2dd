"""Gender Score: association of a caption's group with the objects of its image (Sabir and Padro 2023)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon, shipped_lexicons
from portrayal.metrics.base.options import Bootstrap, ItemNames, Synonyms, Words, unique_names
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.gender_score.card import CARD
from portrayal.metrics.gender_score.measurements import GenderScoreMeasurements
from portrayal.metrics.shared.caption_mentions import choose_lexicon
from portrayal.metrics.shared.language_scores.belief_revision import belief_revision
from portrayal.metrics.shared.language_scores.caption_scores import CaptionScorer
from portrayal.metrics.shared.language_scores.models import check_models, likelihood, sentence_encoder
from portrayal.metrics.shared.language_scores.options import (
    DEFAULT_MODEL,
    Confidence,
    Detections,
    Device,
    EncoderName,
    Evidence,
    Hypothesis,
    LanguageModelName,
    SeveralGroups,
)
from portrayal.metrics.shared.language_scores.visual_context import visual_context
from portrayal.stats import RESAMPLES
from portrayal.study import Study

__all__ = ["CARD", "belief_revision", "gender_score"]


@metric(CARD)
def gender_score(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Words = None,
    language_model: LanguageModelName = DEFAULT_MODEL,
    encoder: EncoderName = DEFAULT_MODEL,
    hypothesis: Hypothesis = "mean",
    evidence: Evidence = "positive",
    detections: Detections = "joined",
    confidence: Confidence = None,
    both: SeveralGroups = "neither",
    objects: Annotated[
        Literal["labels", "words"],
        "Objects that have rows of their own: from labels, or from the words of each caption.",
    ] = "labels",
    item: ItemNames = (),
    synonyms: Synonyms = None,
    device: Device = "auto",
    sensitivity: Annotated[
        bool,
        "Repeat with other word lists, combinations of token probabilities, objects one by one, and negative evidence.",
    ] = False,
) -> ResultBuilder:
    """Mean scores, their ratios, and shares of objects, for every source.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": [1, 2], "system": ["s"] * 2, "caption": ["a man skis", "a woman skis"]}),
    ...     references=pl.DataFrame({"image_id": [1, 2, 3, 4], "caption": ["a man skis", "a woman skis"] * 2}),
    ...     objects=pl.DataFrame({"image_id": [1, 2], "label": ["ski", "ski"], "source": ["m"] * 2,
    ...                           "confidence": [0.5, 0.5]}))
    >>> results = portrayal.metrics.gender_score(study, attribute="gender")
    >>> {m.group for m in results.measurements if m.term == "score"} == {None, "male", "female", "neutral"}
    True
    """
    words = choose_lexicon(lexicon, attribute)
    if len(words.groups) < 2:
        raise Undefined(f"The lexicon '{words.name}' names {len(words.groups)} group; two are needed.")
    check_models(study, language_model=language_model, encoder=encoder)
    context = visual_context(study, confidence)
    preconditions_met()
    builder = ResultBuilder(CARD, attribute, {})
    language_likelihood = likelihood(study, language_model, device)
    text_encoder = sentence_encoder(study, encoder, device)
    main = GenderScoreMeasurements(
        study=study,
        builder=builder,
        attribute=attribute,
        lexicon=words,
        scorer=CaptionScorer(language_likelihood, text_encoder, context, detections, hypothesis, evidence),
        confidence=confidence,
        both=both,
        objects=objects,
        items=tuple(unique_names(item)),
        synonyms=synonyms,
        seed=seed,
        n_resamples=bootstrap,
    )
    for measurements in [main, *(_variants(main) if sensitivity else ())]:
        for source in sources:
            measurements.measure(source, in_full=measurements is main)
    return builder


def _variants(main: GenderScoreMeasurements) -> list[GenderScoreMeasurements]:
    """The same measurement with one setting changed, for each alternative."""
    variants = [replace(main, lexicon=other) for other in _other_lexicons(main.lexicon)]
    scorer = main.scorer
    for hypothesis in ("mean", "geometric", "product"):
        if hypothesis != scorer.hypothesis:
            variants.append(replace(main, scorer=replace(scorer, hypothesis=hypothesis)))
    for evidence in ("positive", "negative"):
        if evidence != scorer.evidence:
            variants.append(replace(main, scorer=replace(scorer, evidence=evidence)))
    for detections in ("joined", "each"):
        if detections != scorer.detections:
            variants.append(replace(main, scorer=replace(scorer, detections=detections)))
    return variants


def _other_lexicons(lexicon: Lexicon) -> list[Lexicon]:
    """Other shipped lists with words for the same groups."""
    return [
        other
        for other in shipped_lexicons()
        if other.attribute == lexicon.attribute
        and set(other.groups) == set(lexicon.groups)
        and other.label != lexicon.label
    ]
