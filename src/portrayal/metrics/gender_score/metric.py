"""How strongly do a caption's group and the objects seen in its image go together?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

from portrayal.errors import Undefined
from portrayal.lexicon import Lexicon, shipped_lexicons
from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Items, Synonyms, Words, several
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.gender_score.measurements import LISTED, Case
from portrayal.metrics.shared.language_scores.belief_revision import belief_revision
from portrayal.metrics.shared.language_scores.caption_scores import Scorer
from portrayal.metrics.shared.language_scores.models import check_models, likelihood, sentence_encoder
from portrayal.metrics.shared.language_scores.options import (
    USUAL,
    Both,
    Confidence,
    Device,
    EncoderName,
    Evidence,
    Hypothesis,
    LanguageModelName,
    Seen,
)
from portrayal.metrics.shared.language_scores.visual_context import visual_context
from portrayal.metrics.shared.mentions import choose_lexicon
from portrayal.results import TOO_FEW
from portrayal.stats import RESAMPLES
from portrayal.study import Study

__all__ = ["CARD", "belief_revision", "gender_score"]

CARD = Card(
    name="gender-score",
    title="Captions, groups and the objects seen",
    question="How likely are captions of each group once the objects of their images have been seen?",
    formula=(
        "A caption y of an image with objects o: P(y) is what a language model gives it (the arithmetic mean of its "
        "tokens' probabilities, the end included), s the cosine of caption and objects, c the objects' confidence. "
        "score(y) = P(y) ** alpha with alpha = ((1 - s) / (1 + s)) ** (1 - c); under negative evidence "
        "1 - (1 - P(y)) ** alpha. score(g) is the mean over captions naming group g ('neutral': a person, and no "
        "group), an image with several captions counting once. to-group(g) = score(g) / sum over groups of score(g'): "
        "a ratio of means. to-group-sum(g) is the same of sums over captions, which also counts how often a group is "
        "named. to-neutral(g) = score(g) / score(neutral). For all people: the score of all captions naming a group, "
        "the largest share, and the ratio to neutral ones. p of to-group: how often shares would be as far from even "
        "if captions' groups were dealt to the images anew; p of an object's to-group-sum: as far from the share over "
        "all captions, by the same dealing; q corrects for the number of objects."
    ),
    range="score, to-group, to-group-sum: 0 to 1. to-neutral: 0 and up.",
    needs=("captions", "objects"),
    uses=("references", "attributes"),
    paper="Sabir and Padro, Women Wearing Lipstick, Findings of EMNLP 2023 (Tables 3 and 4).",
    caveats=(
        "A score says what models of language make of captions: it moves with their words, their length and the "
        "models, and not with groups alone. Compare groups and systems under one choice of models, and look at others.",
        "to-group-sum is mostly counting: where one group is named twice as often, its share is near two thirds. Its "
        "ideal is the group's share in the study (labels, else people's captions), not one half; to-group has no "
        "ideal, since captions of different images differ.",
        "The default models are learnt from people's captions of this study, a language model for each half of the "
        "images from the other half. A pretrained one knows more, and brings leanings of its own.",
        "Cosines are taken as they come: a negative one makes a caption less likely.",
        "Labels without a confidence (people's) need one said (--confidence); the nearer to 1, the less seeing a thing "
        "tells.",
        f"An object that goes with fewer than {TOO_FEW} images whose captions name a group is neither tested nor "
        f"ranked; with fewer than {LISTED}, it is not listed unless it is asked for.",
    ),
    terms=(
        Term("score", "mean score of the captions naming the group", "score"),
        Term("to-group", "the group's part of the groups' mean scores", "share"),
        Term("to-group-sum", "the group's part of all captions' scores", "share"),
        Term("to-neutral", "the group's mean score for each of neutral captions", "ratio"),
        Term("unscored", "captions about people that have no score", "count"),
    ),
    learns=True,
    responds_to={"to-group-sum@object": "data-bias"},
    should_ignore=("length", "neutral", "amplification", "vocabulary"),
)


@metric(CARD)
def gender_score(
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
    both: Both = "neither",
    objects: Annotated[
        Literal["labels", "words"], "Objects to tell apart by labels, or by the words of each caption."
    ] = "labels",
    item: Items = (),
    synonyms: Synonyms = None,
    device: Device = "auto",
    sensitivity: Annotated[
        bool, "Also by other word lists, ways to sum up, objects one by one, and negative evidence."
    ] = False,
) -> ResultBuilder:
    """Mean scores, their ratios, and objects' shares for every speaker.

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
    visual = visual_context(study, confidence)
    preconditions_met()
    builder = ResultBuilder(CARD, attribute, {})
    judge = likelihood(study, language_model, device)
    reader = sentence_encoder(study, encoder, device)
    usual = Case(
        study=study,
        builder=builder,
        attribute=attribute,
        lexicon=words,
        scorer=Scorer(judge, reader, visual, detections, hypothesis, evidence),
        confidence=confidence,
        both=both,
        objects=objects,
        items=tuple(several(item)),
        synonyms=synonyms,
        seed=seed,
        n_resamples=bootstrap,
    )
    for case in [usual, *(_variants(usual) if sensitivity else ())]:
        for source in sources:
            case.measure(source, in_full=case is usual)
    return builder


def _variants(usual: Case) -> list[Case]:
    """The same measurement with one setting changed."""
    made = [replace(usual, lexicon=other) for other in _other_lexicons(usual.lexicon)]
    scorer = usual.scorer
    for how in ("mean", "geometric", "product"):
        if how != scorer.how:
            made.append(replace(usual, scorer=replace(scorer, how=how)))
    for evidence in ("positive", "negative"):
        if evidence != scorer.evidence:
            made.append(replace(usual, scorer=replace(scorer, evidence=evidence)))
    for seen in ("joined", "each"):
        if seen != scorer.detections:
            made.append(replace(usual, scorer=replace(scorer, detections=seen)))
    return made


def _other_lexicons(lexicon: Lexicon) -> list[Lexicon]:
    """Shipped lists with words for the same groups."""
    return [
        other
        for other in shipped_lexicons()
        if other.attribute == lexicon.attribute
        and set(other.groups) == set(lexicon.groups)
        and other.label != lexicon.label
    ]
