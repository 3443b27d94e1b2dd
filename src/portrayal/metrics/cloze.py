"""Cloze gender: the group that a caption is closest to, given the probability of its last word."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from portrayal.errors import Undefined
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.options import Bootstrap, Words, unique_names
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.gender_estimation import Margin
from portrayal.metrics.shared.caption_mentions import choose_lexicon, find_mentions
from portrayal.metrics.shared.language_scores.caption_scores import CaptionScorer
from portrayal.metrics.shared.language_scores.models import check_models, likelihood, sentence_encoder
from portrayal.metrics.shared.language_scores.options import (
    DEFAULT_MODEL,
    Confidence,
    Detections,
    Device,
    EncoderName,
    Evidence,
    LanguageModelName,
    Templates,
)
from portrayal.metrics.shared.language_scores.predictions import GroupPredictions, groups_from_captions
from portrayal.metrics.shared.language_scores.templates import fill_template
from portrayal.metrics.shared.language_scores.visual_context import visual_context
from portrayal.stats import RESAMPLES, resampler
from portrayal.study import Study

TEMPLATE = "there is a {}"
CARD = Card(
    name="cloze",
    answers="associations",
    title="The last word of a caption, and a group",
    question="Which group is a caption closest to, given the probability of its last word?",
    formula=(
        "P is the probability of a caption's last word given the words before it (the product over its tokens), s the "
        "cosine of the caption and a sentence about the group ('there is a man'), c the confidence of the image's "
        "objects. score(g) = P ** ((1 - s) / (1 + s)) ** (1 - c), as in the Gender Score; means over captions. The "
        "group with the highest score is the prediction. Rows 'caption: g' are of captions that name g themselves. An "
        "image with several captions counts once."
    ),
    range="score: 0 to 1. predicted: 0 and up.",
    needs=("captions", "objects"),
    uses=("references",),
    paper="Sabir and Padro, Women Wearing Lipstick, Findings of EMNLP 2023 (cloze gender).",
    caveats=(
        "A caption that names a group is close to a sentence about it for that word alone: look at those that name "
        "none, and at several templates.",
        "P is the same for all groups; only the similarity differs.",
    ),
    terms=(
        Term("score", "mean score for the group", "score"),
        Term("ratio", "mean share of the group in a caption's scores", "share"),
        Term("predicted", "captions for which this group has the highest score", "count"),
        Term("undecided", "captions for which no group has the highest score", "count"),
        Term("to-group", "the group's share of the captions predicted", "share"),
        Term("unscored", "captions that have no score", "count"),
    ),
    fits_model=True,
    responds_to={"to-group@one": "-wrong-group@one"},
    should_ignore=("length", "data-bias", "amplification"),
    lab_notes={
        "to-group@one": (
            "Its interval is over images, under one set of vectors; vectors trained on another study's captions "
            "separate "
            "the groups differently, which the interval does not include."
        )
    },
)


@metric(CARD)
def cloze(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Words = None,
    language_model: LanguageModelName = DEFAULT_MODEL,
    encoder: EncoderName = DEFAULT_MODEL,
    template: Templates = (TEMPLATE,),
    evidence: Evidence = "positive",
    detections: Detections = "joined",
    confidence: Confidence = None,
    margin: Margin = 0.0,
    device: Device = "auto",
) -> ResultBuilder:
    """Scores of every caption for each group, with rows for each template.

    >>> import polars as pl, portrayal
    >>> texts = ["a man skis", "a woman skis", "a person eats"]
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(3), "system": ["s"] * 3, "caption": texts}),
    ...     references=pl.DataFrame({"image_id": range(30), "caption": texts * 10}),
    ...     objects=pl.DataFrame({"image_id": range(3), "label": ["skis", "skis", "eats"], "source": ["m"] * 3,
    ...                           "confidence": [0.5] * 3}))
    >>> results = portrayal.metrics.cloze(study, attribute="gender", sources=["s"])
    >>> [m.value for m in results.measurements if m.term == "undecided" and m.item is None]
    [3.0]
    """
    words = choose_lexicon(lexicon, attribute)
    if len(words.groups) < 2:
        raise Undefined(f"The lexicon '{words.name}' names {len(words.groups)} group; two are needed.")
    check_models(study, language_model=language_model, encoder=encoder)
    context = visual_context(study, confidence)
    preconditions_met()
    language_likelihood = likelihood(study, language_model, device)
    text_encoder = sentence_encoder(study, encoder, device)
    scorer = CaptionScorer(language_likelihood, text_encoder, context, detections, "last word", evidence)
    builder = ResultBuilder(CARD, attribute, {})
    for sentence in unique_names(template):
        group_sentences = fill_template(sentence, words, tuple(words.groups))
        settings = {"template": sentence, "lexicon": words.label, **scorer.settings}
        template_builder = builder.with_settings({**settings, "confidence": confidence, "margin": margin})
        for source in sources:
            mentions = find_mentions(study, source, words)
            images = [mentions.images[index] for index in mentions.image_index]
            last_word_p = language_likelihood.last_words(images, mentions.captions)
            scores = [
                scorer.revise(images, mentions.captions, last_word_p, [text] * len(images)).score
                for text in group_sentences
            ]
            all_captions = np.ones(len(images), dtype=bool)
            predictions = GroupPredictions(mentions, all_captions, np.column_stack(scores), margin)
            evidence_table = mentions.evidence_table(last=[_rounded(p) for p in last_word_p])
            named_groups = {"caption": groups_from_captions(mentions)}
            predictions.add(
                template_builder,
                source,
                resampler(mentions.images, seed, bootstrap),
                evidence_table,
                named_groups,
                None,
            )
    return builder


def _rounded(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None
