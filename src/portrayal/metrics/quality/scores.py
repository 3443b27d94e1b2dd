"""All scores of one source: columns that are summed over images, and evidence of each caption."""

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
    """Columns that are summed over images, the value of every caption for each term, and evidence details."""

    columns: ScoreColumns
    per_caption: dict[str, Array]
    details: list[dict[str, Any]]


def score_source(
    source: SourceCaptions, image_objects: ImageObjects | None, programs: Sequence[str]
) -> SourceScores:
    tokens = source.tokens
    columns = ScoreColumns(len(tokens.images))
    values: dict[str, Array] = {}
    details: list[dict[str, Any]] = [{} for _ in source.captions]

    def record(name: str, numbers: Array, captions: NDArray[np.int64]) -> None:
        all_captions = np.full(len(source.captions), np.nan)
        all_captions[captions] = numbers
        values[name] = all_captions
        for caption, number in zip(captions.tolist(), numbers.tolist(), strict=True):
            details[caption][name] = round(number, 4)

    scores = score_captions(tokens, programs)
    if scores is not None:
        add_score_columns(columns, tokens, scores)
        for name, numbers in zip(BLEU, bleu(scores.bleu_counts).T, strict=True):
            record(name, numbers, scores.caption_index)
        record("rouge-l", scores.rouge, scores.caption_index)
        record("cider", scores.cider, scores.caption_index)
        record("cider-plain", scores.cider_plain, scores.caption_index)
        if scores.meteor_counts is not None:
            record("meteor", meteor.meteor(scores.meteor_counts), scores.caption_index)
        if scores.spice is not None:
            record("spice", scores.spice, scores.caption_index)
    all_captions = np.arange(len(source.captions))
    if image_objects is not None:
        mentioned, false_mentions, known = image_objects.hallucinations(source)
        add_chair_columns(columns, tokens.image_index, mentioned, false_mentions, known)
        measured = all_captions[known[tokens.image_index] > 0]
        n_false = np.array([len(caption_mentions) for caption_mentions in false_mentions], dtype=np.float64)
        for name in OBJECT_TERMS:
            values[name] = np.where(known[tokens.image_index] > 0, n_false, np.nan)
        for number in measured.tolist():
            details[number]["mentioned"] = list(mentioned[number])
            details[number]["not there"] = false_mentions[number]
    ones = np.ones(len(tokens.images))
    length = np.array([len(words) for words in tokens.captions], dtype=np.float64)
    repeated = _is_repeated(source)
    words, repeats = mean_per_image(
        np.column_stack([length, repeated]), tokens.image_index, columns.n_images
    ).T
    columns.add(np.column_stack([words, ones]), {"length": divide_columns}, ones)
    columns.add_rate("repeated", repeats, ones, ones)
    record("length", length, all_captions)
    record("repeated", repeated, all_captions)
    return SourceScores(columns, values, details)


def _is_repeated(source: SourceCaptions) -> Array:
    """1 where a caption of another image has the same words, else 0."""
    words = [" ".join(caption_words) for caption_words in source.tokens.captions]
    images = Counter(
        text
        for text, _ in {(text, image) for text, image in zip(words, source.tokens.image_index, strict=True)}
    )
    return np.array([float(images[text] > 1) for text in words])
