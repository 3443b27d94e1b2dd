"""Gender estimation: the group that models predict for a caption from its other words and the objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from portrayal.errors import Undefined
from portrayal.lexicon import GroupVersions
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.options import Bootstrap, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import CaptionMentions, choose_lexicon, find_mentions
from portrayal.metrics.shared.language_scores.caption_scores import CaptionScorer
from portrayal.metrics.shared.language_scores.group_labels import group_labels
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
)
from portrayal.metrics.shared.language_scores.predictions import (
    GroupPredictions,
    groups_from_captions,
    groups_from_labels,
)
from portrayal.metrics.shared.language_scores.visual_context import visual_context
from portrayal.stats import RESAMPLES, resampler
from portrayal.study import Study

Margin = Annotated[
    float, "A caption is undecided where its two highest scores differ by no more than this.", 0.0
]
CARD = Card(
    name="gender-estimation",
    answers="associations",
    title="The group that models predict for a caption",
    question="With its words for the group masked, which group makes a caption most probable, given the objects?",
    formula=(
        "In each caption that names one group, the group words are replaced by those of each group (man, woman; his, "
        "her), and each version gets its Gender Score; the highest is the prediction. undecided: the "
        "two highest differ by no more than the margin. to-group(g) = captions predicted g / captions predicted; its "
        "ideal is the share among the groups that the same captions name, and p tests the difference. as-said: the "
        "share of predictions that equal the group that the caption names; p from permuting these groups among the "
        "images. "
        "ratio(g): the mean over captions of score(g) / sum over groups of score(g'). Rows 'caption: g' and 'label: g' "
        "give the predictions for captions that name g, or for images labelled g. An image with several captions "
        "counts once."
    ),
    range="counts: 0 and up; to-group, as-said, ratio: 0 to 1.",
    needs=("captions", "objects"),
    uses=("references", "attributes"),
    paper="Sabir and Padro, Women Wearing Lipstick, Findings of EMNLP 2023 (Table 5).",
    caveats=(
        "A prediction is made by the language model and the encoder, not by the system: it shows what they "
        "associate with "
        "the caption's other words. A word that is more frequent in their training data wins where nothing else "
        "decides.",
        "Captions with a word that has no counterpart (pregnant) are left out and counted as unscored.",
        "The paper leaves out about three in ten captions by a rule that it does not state.",
    ),
    terms=(
        Term("predicted", "captions for which this group has the highest score", "count"),
        Term("undecided", "captions for which no group has the highest score", "count"),
        Term("to-group", "the group's share of the captions predicted", "share", "closer"),
        Term("ratio", "mean share of the group in a caption's scores", "share"),
        Term("score", "mean score of the captions' versions for this group", "score"),
        Term("as-said", "share of the predictions that equal the group that the caption names", "share"),
        Term("unscored", "captions naming one group that have no score", "count"),
    ),
    fits_model=True,
    responds_to={"as-said": "data-bias"},
    should_ignore=("length", "neutral"),
)


@metric(CARD)
def gender_estimation(
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
    margin: Margin = 0.0,
    device: Device = "auto",
) -> ResultBuilder:
    """Groups that the models predict in place of each caption's group, for every source.

    >>> import polars as pl, portrayal
    >>> texts = ["a man skis", "a woman skis", "a person eats"]
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(3), "system": ["s"] * 3, "caption": texts}),
    ...     references=pl.DataFrame({"image_id": range(30), "caption": texts * 10}),
    ...     objects=pl.DataFrame({"image_id": range(3), "label": ["skis", "skis", "eats"], "source": ["m"] * 3,
    ...                           "confidence": [0.5] * 3}))
    >>> results = portrayal.metrics.gender_estimation(study, attribute="gender", sources=["s"])
    >>> [(m.group, round(m.value, 6)) for m in results.measurements if m.term == "ratio"]
    [(None, 0.5), ('male', 0.5), ('female', 0.5)]
    """
    words = choose_lexicon(lexicon, attribute)
    if len(words.groups) < 2:
        raise Undefined(f"The lexicon '{words.name}' names {len(words.groups)} group; two are needed.")
    check_models(study, language_model=language_model, encoder=encoder)
    context = visual_context(study, confidence)
    preconditions_met()
    language_likelihood = likelihood(study, language_model, device)
    text_encoder = sentence_encoder(study, encoder, device)
    scorer = CaptionScorer(language_likelihood, text_encoder, context, detections, hypothesis, evidence)
    settings = {"lexicon": words.label, **scorer.settings, "confidence": confidence, "margin": margin}
    builder = ResultBuilder(CARD, attribute, settings)
    labels = group_labels(study, attribute, words)
    for source in sources:
        mentions = find_mentions(study, source, words)
        scores = _score_versions(mentions, scorer, GroupVersions(words))
        predictions = GroupPredictions(mentions, mentions.n_groups == 1, scores, margin)
        named_groups = {"caption": groups_from_captions(mentions)}
        if labels:
            named_groups["label"] = groups_from_labels(mentions, labels, mentions.groups)
        evidence_table = mentions.evidence_table(**_evidence_details(mentions, predictions))
        predictions.add(
            builder,
            source,
            resampler(mentions.images, seed, bootstrap),
            evidence_table,
            named_groups,
            named_groups["caption"],
        )
    return builder


def _score_versions(mentions: CaptionMentions, scorer: CaptionScorer, filler: GroupVersions) -> np.ndarray:
    """Score of each version of captions that name one group: (captions, groups); nan where one cannot be made."""
    scores = np.full((len(mentions.captions), len(mentions.groups)), np.nan)
    rows, images, texts = [], [], []
    for row in np.flatnonzero(mentions.n_groups == 1).tolist():
        versions = [filler.in_group(mentions.captions[row], group) for group in mentions.groups]
        if all(version is not None for version in versions):
            rows.append(row)
            images += [mentions.images[mentions.image_index[row]]] * len(versions)
            texts += [version or "" for version in versions]
    if rows:
        scores[rows] = scorer.score_captions(images, texts).score.reshape(len(rows), len(mentions.groups))
    return scores


def _evidence_details(mentions: CaptionMentions, predictions: GroupPredictions) -> dict[str, list[object]]:
    """Evidence details of captions: the prediction, and each group's share of the scores."""
    names = [*mentions.groups, "not scored", "undecided"]  # -2 and -1 count from the end
    parts = []
    for row, scored in zip(predictions.scores, predictions.scored, strict=True):
        total = row.sum()
        parts.append(
            {group: round(float(score / total), 4) for group, score in zip(mentions.groups, row, strict=True)}
            if scored and total > 0
            else None
        )
    return {"predicted": [names[group_index] for group_index in predictions.predicted], "parts": parts}
