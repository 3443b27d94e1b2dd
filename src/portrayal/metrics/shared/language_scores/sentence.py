"""One sentence, told of each group in turn: its scores and everything they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from portrayal.errors import PortrayalError
from portrayal.lexicon import NEUTRAL, Filler, Lexicon
from portrayal.lexicon.group_versions import MASK
from portrayal.metrics.shared.language_scores.belief_revision import exponent
from portrayal.metrics.shared.language_scores.caption_groups import columns_of
from portrayal.metrics.shared.language_scores.caption_scores import Scorer
from portrayal.metrics.shared.language_scores.ratios import shares
from portrayal.metrics.shared.language_scores.templates import told_of
from portrayal.metrics.shared.language_scores.visual_context import Context, Visual

_IMAGE = "asked"  # the one image there is


@dataclass(frozen=True)
class Version:
    """The sentence told of one group, or of anybody (`neutral`). None: unknown."""

    group: str
    text: str
    hypothesis: float | None
    similarity: float | None
    alpha: float | None
    score: float | None
    part: float | None  # of the groups' scores; neutral has none
    last_word: float | None
    cloze_similarity: float | None  # to the template told of the group
    cloze_score: float | None


@dataclass(frozen=True)
class Asked:
    """The versions, and the group with the highest score; None where scores do not tell."""

    versions: tuple[Version, ...]
    estimate: str | None
    cloze_estimate: str | None


def seen(objects: Sequence[str], confidences: Sequence[float]) -> Visual:
    """What was seen, as a user tells it: a confidence for each object, or one for all."""
    if len(confidences) not in (1, len(objects)):
        raise PortrayalError(
            f"There must be one confidence, or one for each object. Got {len(confidences)} for {len(objects)} objects."
        )
    sure = list(confidences) * (len(objects) if len(confidences) == 1 else 1)
    things = [Context(text, one) for text, one in zip(objects, sure, strict=True)]
    return Visual({_IMAGE: things}, "asked")


def ask(text: str, scorer: Scorer, lexicon: Lexicon, template: str) -> Asked:
    """Every group's version of a sentence that names a group, or has [MASK] where one would stand."""
    columns = columns_of(lexicon)
    filler = Filler(lexicon)
    made = [(column, filler.fill(text, column)) for column in columns]
    versions = [(column, version) for column, version in made if version is not None]
    missing = [column for column, version in made if version is None and column != NEUTRAL]
    if missing:
        raise PortrayalError(
            f"A word of this sentence has no counterpart for {', '.join(missing)}: {text!r}."
        )
    if len({version for column, version in versions if column != NEUTRAL}) < 2:
        raise PortrayalError(
            f"This sentence names none of {', '.join(lexicon.groups)}, and has no [MASK] in a group's place: {text!r}."
        )
    images, texts = [_IMAGE] * len(versions), [version for _, version in versions]
    scores = scorer.scores(images, texts)
    # What is held against each group is the sentence as it was asked; a mask is filled by the neutral word.
    neutral = next((version for column, version in versions if column == NEUTRAL), None)
    bare = neutral if MASK.search(text) else text
    about = told_of(template, lexicon, [column for column, _ in versions])
    last, cloze = np.full(len(versions), np.nan), None
    if bare is not None:
        last = scorer.likelihood.last_words(images, [bare] * len(versions))
        cloze = scorer.revised(images, [bare] * len(versions), last, about)
    nothing = np.full(len(versions), np.nan)
    cloze_close, cloze_score = (nothing, nothing) if cloze is None else (cloze.similarity, cloze.score)
    groups = [place for place, (column, _) in enumerate(versions) if column != NEUTRAL]
    parts = np.full(len(versions), np.nan)
    parts[groups] = shares(scores.score[None, groups])[0]
    # Of objects one by one there are several, and the score is the mean of what they make.
    alpha = nothing if scorer.detections == "each" else exponent(scores.similarity, scores.confidence)
    columns_told = [column for column, _ in versions]
    found = tuple(
        Version(
            column,
            version,
            *(
                _known(values[place])
                for values in (scores.hypothesis, scores.similarity, alpha, scores.score, parts)
            ),
            *(_known(values[place]) for values in (last, cloze_close, cloze_score)),
        )
        for place, (column, version) in enumerate(versions)
    )
    return Asked(found, *(_highest(values, groups, columns_told) for values in (scores.score, cloze_score)))


def _highest(values: np.ndarray, groups: Sequence[int], columns: Sequence[str]) -> str | None:
    """The group that has it; None for a tie, or where one is unknown."""
    mine = values[list(groups)]
    if not np.isfinite(mine).all() or np.sum(mine == mine.max()) > 1:
        return None
    return columns[groups[int(mine.argmax())]]


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
