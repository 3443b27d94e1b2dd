"""All scores of one source: columns that are summed over images, and the evidence of each caption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.quality import meteor
from portrayal.metrics.quality.bleu import bleu
from portrayal.metrics.quality.captions import ImageObjects, SourceCaptions
from portrayal.metrics.quality.columns import (
    BLEU,
    OBJECT_TERMS,
    ScoreColumns,
    add_chair_columns,
    add_score_columns,
    mean_per_image,
    score_captions,
)
from portrayal.metrics.quality.ngrams import Array
from portrayal.stats import divide_columns


@dataclass(frozen=True)
class SourceScores:
    """Columns that are summed over images, the value of each caption by term, and the details of its evidence."""

    columns: ScoreColumns
    per_caption: dict[str, Array]  # by term
    details: list[dict[str, Any]]


def score_source(
    source: SourceCaptions, image_objects: ImageObjects | None, programs: Sequence[str]
) -> SourceScores:
    """All scores of the captions of one source."""
    tokens = source.tokens
    columns = ScoreColumns(len(tokens.images))
    values_by_term: dict[str, Array] = {}
    details: list[dict[str, Any]] = [{} for _ in source.captions]

    def record(name: str, scores_of_captions: Array, captions: NDArray[np.int64]) -> None:
        """Store the scores of these captions; other captions have nan."""
        padded = np.full(len(source.captions), np.nan)
        padded[captions] = scores_of_captions
        values_by_term[name] = padded
        for caption_index, caption_score in zip(captions.tolist(), scores_of_captions.tolist(), strict=True):
            details[caption_index][name] = round(caption_score, 4)

    scores = score_captions(tokens, programs)
    if scores is not None:
        add_score_columns(columns, tokens, scores)
        for name, term_values in zip(BLEU, bleu(scores.bleu_counts).T, strict=True):
            record(name, term_values, scores.caption_index)
        record("rouge-l", scores.rouge, scores.caption_index)
        record("cider", scores.cider, scores.caption_index)
        record("cider-plain", scores.cider_plain, scores.caption_index)
        if scores.meteor_counts is not None:
            record("meteor", meteor.meteor(scores.meteor_counts), scores.caption_index)
        if scores.spice is not None:
            record("spice", scores.spice, scores.caption_index)
    all_captions = np.arange(len(source.captions))
    if image_objects is not None:
        mentioned, hallucinated, has_known_objects = image_objects.hallucinations(source)
        add_chair_columns(columns, tokens.image_index, mentioned, hallucinated, has_known_objects)
        measured_captions = all_captions[has_known_objects[tokens.image_index] > 0]
        n_hallucinated = np.array(
            [len(caption_mentions) for caption_mentions in hallucinated], dtype=np.float64
        )
        for name in OBJECT_TERMS:
            values_by_term[name] = np.where(has_known_objects[tokens.image_index] > 0, n_hallucinated, np.nan)
        for caption_index in measured_captions.tolist():
            details[caption_index]["mentioned"] = list(mentioned[caption_index])
            details[caption_index]["not there"] = hallucinated[caption_index]
    ones = np.ones(len(tokens.images))
    length = np.array([len(words) for words in tokens.captions], dtype=np.float64)
    is_repeated = _is_repeated(source)
    mean_length, repeat_rate = mean_per_image(
        np.column_stack([length, is_repeated]), tokens.image_index, columns.n_images
    ).T
    columns.add(np.column_stack([mean_length, ones]), {"length": divide_columns}, ones)
    columns.add_rate("repeated", repeat_rate, ones, ones)
    record("length", length, all_captions)
    record("repeated", is_repeated, all_captions)
    return SourceScores(columns, values_by_term, details)


def _is_repeated(source: SourceCaptions) -> Array:
    """1 for each caption whose words are also a caption of another image, else 0."""
    texts = [" ".join(words) for words in source.tokens.captions]
    n_images_by_text = Counter(
        text
        for text, _ in {(text, image) for text, image in zip(texts, source.tokens.image_index, strict=True)}
    )
    return np.array([float(n_images_by_text[text] > 1) for text in texts])
