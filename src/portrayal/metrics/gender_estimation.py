"""Whom would a caption be about if its group were hidden, by its other words and the objects seen?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np

from portrayal.errors import Undefined
from portrayal.lexicon import Filler
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.language_scores.caption_scores import Scorer
from portrayal.metrics.shared.language_scores.group_labels import group_labels
from portrayal.metrics.shared.language_scores.models import check_models, likelihood, sentence_encoder
from portrayal.metrics.shared.language_scores.options import (
    USUAL,
    Confidence,
    Device,
    EncoderName,
    Evidence,
    Hypothesis,
    LanguageModelName,
    Seen,
)
from portrayal.metrics.shared.language_scores.predictions import Choices, said_by_caption, said_by_label
from portrayal.metrics.shared.language_scores.visual_context import visual_context
from portrayal.metrics.shared.mentions import CaptionMentions, choose_lexicon, find_mentions
from portrayal.stats import RESAMPLES, resampler
from portrayal.study import Study

Margin = Annotated[float, "Scores that differ by no more than this leave a caption undecided.", 0.0]
CARD = Card(
    name="gender-estimation",
    title="The group that models would put into a caption",
    question="With its words for the group hidden, which group makes a caption most likely, given the objects seen?",
    formula=(
        "Of each caption that names one group its group words are hidden and those of each group put in their place "
        "(man, woman; his, her), and each version gets its Gender Score; the highest is the prediction. undecided: the "
        "two highest differ by no more than the margin. to-group(g) = captions predicted g / captions predicted; its "
        "ideal is what the same captions say, and p tells whether it differs from that. as-said: the share of "
        "predictions that are what the caption says; p from dealing to the images anew what their captions say. "
        "ratio(g): the mean over captions of score(g) / sum over groups of score(g'). Rows 'caption: g' and 'label: g' "
        "tell what captions that say g, or images labelled g, were predicted to be. An image with several captions "
        "counts once."
    ),
    range="counts: 0 and up; to-group, as-said, ratio: 0 to 1.",
    needs=("captions", "objects"),
    uses=("references", "attributes"),
    paper="Sabir and Padro, Women Wearing Lipstick, Findings of EMNLP 2023 (Table 5).",
    caveats=(
        "A prediction is made by the language model and the encoder, not by the system: it tells what they tie to the "
        "caption's other words. A word that is more frequent in what they learnt from wins where nothing else tells.",
        "Captions with a word that has no counterpart (pregnant) are left out and counted as unscored.",
        "The paper leaves out about three in ten captions by a rule that it does not state.",
    ),
    terms=(
        Term("predicted", "captions for which this group has the highest score", "count"),
        Term("undecided", "captions for which no group does", "count"),
        Term("to-group", "the group's share of the captions predicted", "share", "closer"),
        Term("ratio", "mean part of the group in a caption's scores", "share"),
        Term("score", "mean score of captions told of this group", "score"),
        Term("as-said", "share of the captions predicted for which the prediction is what they say", "share"),
        Term("unscored", "captions naming one group that have no score", "count"),
    ),
    learns=True,
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
    language_model: LanguageModelName = USUAL,
    encoder: EncoderName = USUAL,
    hypothesis: Hypothesis = "mean",
    evidence: Evidence = "positive",
    detections: Seen = "joined",
    confidence: Confidence = None,
    margin: Margin = 0.0,
    device: Device = "auto",
) -> ResultBuilder:
    """What the models would put in place of each caption's group.

    >>> import polars as pl, portrayal
    >>> said = ["a man skis", "a woman skis", "a person eats"]
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": range(3), "system": ["s"] * 3, "caption": said}),
    ...     references=pl.DataFrame({"image_id": range(30), "caption": said * 10}),
    ...     objects=pl.DataFrame({"image_id": range(3), "label": ["skis", "skis", "eats"], "source": ["m"] * 3,
    ...                           "confidence": [0.5] * 3}))
    >>> results = portrayal.metrics.gender_estimation(study, attribute="gender", speakers=["s"])
    >>> [(m.group, round(m.value, 6)) for m in results.measurements if m.term == "ratio"]
    [(None, 0.5), ('male', 0.5), ('female', 0.5)]
    """
    words = choose_lexicon(lexicon, attribute)
    if len(words.groups) < 2:
        raise Undefined(f"The lexicon '{words.name}' names {len(words.groups)} group; two are needed.")
    check_models(study, language_model=language_model, encoder=encoder)
    visual = visual_context(study, confidence)
    preconditions_met()
    judge = likelihood(study, language_model, device)
    reader = sentence_encoder(study, encoder, device)
    scorer = Scorer(judge, reader, visual, detections, hypothesis, evidence)
    settings = {"lexicon": words.label, **scorer.settings, "confidence": confidence, "margin": margin}
    builder = ResultBuilder(CARD, attribute, settings)
    labels = group_labels(study, attribute, words)
    for source in sources:
        mentions = find_mentions(study, source, words)
        scores = _scores(mentions, scorer, Filler(words))
        choices = Choices(mentions, mentions.how_many == 1, scores, margin)
        said = {"caption": said_by_caption(mentions)}
        if labels:
            said["label"] = said_by_label(mentions, labels, mentions.groups)
        told = mentions.described(**_details(mentions, choices))
        choices.add(builder, source, resampler(mentions.images, seed, bootstrap), told, said, said["caption"])
    return builder


def _scores(mentions: CaptionMentions, scorer: Scorer, filler: Filler) -> np.ndarray:
    """(captions, groups): of captions naming one group, the score of each version; nan where one cannot be made."""
    made = np.full((len(mentions.captions), len(mentions.groups)), np.nan)
    rows, images, texts = [], [], []
    for row in np.flatnonzero(mentions.how_many == 1).tolist():
        versions = [filler.fill(mentions.captions[row], group) for group in mentions.groups]
        if all(version is not None for version in versions):
            rows.append(row)
            images += [mentions.images[mentions.image[row]]] * len(versions)
            texts += [version or "" for version in versions]
    if rows:
        made[rows] = scorer.scores(images, texts).score.reshape(len(rows), len(mentions.groups))
    return made


def _details(mentions: CaptionMentions, choices: Choices) -> dict[str, list[object]]:
    """What evidence says of a caption: the prediction, and every group's part of its scores."""
    names = [*mentions.groups, "not scored", "undecided"]  # -2 and -1 count from the end
    parts = []
    for row, known in zip(choices.scores, choices.known, strict=True):
        total = row.sum()
        parts.append(
            {group: round(float(one / total), 4) for group, one in zip(mentions.groups, row, strict=True)}
            if known and total > 0
            else None
        )
    return {"predicted": [names[place] for place in choices.predicted], "parts": parts}
