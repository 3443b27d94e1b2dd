"""Scores of one sentence in a version for each group, with all their ingredients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from portrayal.errors import PortrayalError
from portrayal.lexicon import NEUTRAL, GroupVersions, Lexicon
from portrayal.lexicon.group_versions import MASK
from portrayal.metrics.shared.language_scores.belief_revision import exponent
from portrayal.metrics.shared.language_scores.caption_groups import group_columns
from portrayal.metrics.shared.language_scores.caption_scores import CaptionScorer
from portrayal.metrics.shared.language_scores.ratios import shares
from portrayal.metrics.shared.language_scores.templates import fill_template
from portrayal.metrics.shared.language_scores.visual_context import ContextItem, VisualContext

# Name of the only image.
_IMAGE = "image"


@dataclass(frozen=True)
class SentenceVersion:
    """The version of the sentence for one group, or `neutral`. None: unknown."""

    group: str
    text: str
    hypothesis: float | None
    similarity: float | None
    alpha: float | None
    score: float | None
    share: float | None  # of the sum of the groups' scores; None for neutral
    last_word: float | None
    cloze_similarity: float | None  # to the template filled with the group
    cloze_score: float | None


@dataclass(frozen=True)
class ScoredSentence:
    """The versions, and the group with the highest score; None where scores do not decide."""

    versions: tuple[SentenceVersion, ...]
    estimate: str | None
    cloze_estimate: str | None


def context_of_objects(objects: Sequence[str], confidences: Sequence[float]) -> VisualContext:
    """The visual context of objects that a user gives, with a confidence for each, or one for all."""
    if len(confidences) not in (1, len(objects)):
        raise PortrayalError(
            f"There must be one confidence, or one for each object. Got {len(confidences)} for {len(objects)} objects."
        )
    confidence_values = list(confidences) * (len(objects) if len(confidences) == 1 else 1)
    items = [
        ContextItem(text, confidence) for text, confidence in zip(objects, confidence_values, strict=True)
    ]
    return VisualContext({_IMAGE: items}, "user")


def score_sentence(text: str, scorer: CaptionScorer, lexicon: Lexicon, template: str) -> ScoredSentence:
    """Scores of the version for each group of a sentence that names a group, or has [MASK] in its place."""
    columns = group_columns(lexicon)
    filler = GroupVersions(lexicon)
    filled = [(column, filler.in_group(text, column)) for column in columns]
    versions = [(column, version) for column, version in filled if version is not None]
    missing = [column for column, version in filled if version is None and column != NEUTRAL]
    if missing:
        raise PortrayalError(
            f"A word of this sentence has no counterpart for {', '.join(missing)}: {text!r}."
        )
    if len({version for column, version in versions if column != NEUTRAL}) < 2:
        raise PortrayalError(
            f"This sentence names none of {', '.join(lexicon.groups)}, and has no [MASK] in a group's place: {text!r}."
        )
    images, texts = [_IMAGE] * len(versions), [version for _, version in versions]
    scores = scorer.score_captions(images, texts)
    # The sentence as given is compared with each group; [MASK] is filled with the neutral word.
    neutral = next((version for column, version in versions if column == NEUTRAL), None)
    context = neutral if MASK.search(text) else text
    cloze_texts = fill_template(template, lexicon, [column for column, _ in versions])
    last_word, cloze = np.full(len(versions), np.nan), None
    if context is not None:
        last_word = scorer.likelihood.last_words(images, [context] * len(versions))
        cloze = scorer.revise(images, [context] * len(versions), last_word, cloze_texts)
    unknown = np.full(len(versions), np.nan)
    cloze_similarity, cloze_score = (unknown, unknown) if cloze is None else (cloze.similarity, cloze.score)
    groups = [index for index, (column, _) in enumerate(versions) if column != NEUTRAL]
    group_shares = np.full(len(versions), np.nan)
    group_shares[groups] = shares(scores.score[None, groups])[0]
    # With "each", there is an alpha for every object, and the score is the mean over objects.
    alpha = unknown if scorer.detections == "each" else exponent(scores.similarity, scores.confidence)
    version_columns = [column for column, _ in versions]
    scored_versions = tuple(
        SentenceVersion(
            column,
            version,
            *(
                _finite_or_none(values[index])
                for values in (scores.hypothesis, scores.similarity, alpha, scores.score, group_shares)
            ),
            *(_finite_or_none(values[index]) for values in (last_word, cloze_similarity, cloze_score)),
        )
        for index, (column, version) in enumerate(versions)
    )
    return ScoredSentence(
        scored_versions,
        *(_highest(values, groups, version_columns) for values in (scores.score, cloze_score)),
    )


def _highest(values: np.ndarray, groups: Sequence[int], columns: Sequence[str]) -> str | None:
    """The group with the highest value; None for a tie, or where a value is unknown."""
    group_values = values[list(groups)]
    if not np.isfinite(group_values).all() or np.sum(group_values == group_values.max()) > 1:
        return None
    return columns[groups[int(group_values.argmax())]]


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
