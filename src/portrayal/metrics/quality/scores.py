"""All scores of one speaker: columns that add up over images, and what evidence tells of each caption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.quality import meteor
from portrayal.metrics.quality.bleu import bleu
from portrayal.metrics.quality.captions import Objects, Told
from portrayal.metrics.quality.columns import (
    BLEU,
    BY_OBJECTS,
    Columns,
    chair_columns,
    likeness,
    likeness_columns,
    per_image,
)
from portrayal.metrics.quality.ngrams import Array
from portrayal.stats import divide_columns


@dataclass(frozen=True)
class Measured:
    """Columns that add up, and for each term the value of every caption, as evidence tells it."""

    columns: Columns
    per_caption: dict[str, Array]
    details: list[dict[str, Any]]


def measure(told: Told, view: Objects | None, programs: Sequence[str]) -> Measured:
    compared = told.compared
    columns = Columns(len(compared.images))
    values: dict[str, Array] = {}
    details: list[dict[str, Any]] = [{} for _ in told.text]

    def report_progress(name: str, numbers: Array, captions: NDArray[np.int64]) -> None:
        every = np.full(len(told.text), np.nan)
        every[captions] = numbers
        values[name] = every
        for caption, number in zip(captions.tolist(), numbers.tolist(), strict=True):
            details[caption][name] = round(number, 4)

    scores = likeness(compared, programs)
    if scores is not None:
        likeness_columns(columns, compared, scores)
        for name, numbers in zip(BLEU, bleu(scores.parts).T, strict=True):
            report_progress(name, numbers, scores.caption)
        report_progress("rouge-l", scores.rouge, scores.caption)
        report_progress("cider", scores.cider, scores.caption)
        report_progress("cider-plain", scores.plain, scores.caption)
        if scores.meteor is not None:
            report_progress("meteor", meteor.meteor(scores.meteor), scores.caption)
        if scores.spice is not None:
            report_progress("spice", scores.spice, scores.caption)
    every = np.arange(len(told.text))
    if view is not None:
        said, bad, known = view.false(told)
        chair_columns(columns, compared.image, said, bad, known)
        use = every[known[compared.image] > 0]
        wrong = np.array([len(some) for some in bad], dtype=np.float64)
        for name in BY_OBJECTS:
            values[name] = np.where(known[compared.image] > 0, wrong, np.nan)
        for number in use.tolist():
            details[number]["mentioned"] = list(said[number])
            details[number]["not there"] = bad[number]
    ones = np.ones(len(compared.images))
    length = np.array([len(words) for words in compared.captions], dtype=np.float64)
    again = _repeated(told)
    words, repeats = per_image(np.column_stack([length, again]), compared.image, columns.images).T
    columns.add(np.column_stack([words, ones]), {"length": divide_columns}, ones)
    columns.add_rate("repeated", repeats, ones, ones)
    report_progress("length", length, every)
    report_progress("repeated", again, every)
    return Measured(columns, values, details)


def _repeated(told: Told) -> Array:
    """1 where a caption of another image has the same words."""
    words = [" ".join(some) for some in told.compared.captions]
    images = Counter(
        text for text, _ in {(text, image) for text, image in zip(words, told.compared.image, strict=True)}
    )
    return np.array([float(images[text] > 1) for text in words])
