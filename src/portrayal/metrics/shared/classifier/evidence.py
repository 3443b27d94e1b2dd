"""The captions behind a number: predicted group, confidence, and the contribution of each word."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.shared.classifier.linear_classifier import Array, Predictions
from portrayal.metrics.shared.classifier.word_contributions import caption_contributions
from portrayal.models.text_classifiers.integrated_gradients import unit_norm

MAX_ROWS = 100  # captions kept for a number whose captions are kept in full for another number
_COLUMNS = ("image_id", "caption", "detail")


class CaptionEvidence:
    """Every test caption with its first prediction. Details are computed on demand."""

    def __init__(self, predictions: Sequence[Predictions], groups: Sequence[str]):
        self._predictions, self._groups = predictions, groups
        self._log_odds_weights: dict[int, Array] = {}
        self._described: dict[tuple[int, int], tuple[str, str, dict[str, Any]]] = {}

    @cached_property
    def _first_tests(self) -> list[tuple[int, int]]:
        """Indices (predictions, test caption) of the first test of each caption."""
        first: dict[tuple[str, str], tuple[int, int]] = {}
        for pred_index, pred in enumerate(self._predictions):
            for test_index, caption_index in enumerate(pred.test.tolist()):
                first.setdefault(
                    (pred.corpus.images[caption_index], pred.corpus.captions[caption_index]),
                    (pred_index, test_index),
                )
        return list(first.values())

    def rows(
        self,
        group: int | None = None,
        *,
        word: str | None = None,
        max_rows: int | None = MAX_ROWS,
        details: Callable[[str], Mapping[str, Any]] | None = None,
    ) -> pl.DataFrame:
        """Return the captions of a group, or with a word; at most `max_rows`, of the same images for every
        source.

        `details` adds entries for an image.
        """
        chosen = self._first_tests if word is None else self._captions_with.get(word, [])
        if group is not None:
            chosen = [
                (pred_index, test_index)
                for pred_index, test_index in chosen
                if self._labels[pred_index][test_index] == group
            ]
        if max_rows is not None and len(chosen) > max_rows:
            chosen = self._sample_by_image(chosen, max_rows)
        records = [self._row(pred_index, test_index, details) for pred_index, test_index in chosen]
        return pl.DataFrame(records, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")

    def _sample_by_image(self, chosen: Sequence[tuple[int, int]], max_rows: int) -> list[tuple[int, int]]:
        """Keep all captions of a hash sample of images, in their order, up to `max_rows` captions."""
        counts = Counter(self._image(*index) for index in chosen)
        sampled: set[str] = set()
        left = max_rows
        for image in sorted(counts, key=lambda name: hashlib.blake2b(name.encode(), digest_size=8).digest()):
            left -= counts[image]
            if left < 0:
                break
            sampled.add(image)
        return [index for index in chosen if self._image(*index) in sampled]

    def _image(self, pred_index: int, test_index: int) -> str:
        pred = self._predictions[pred_index]
        return str(pred.corpus.images[pred.test[test_index]])

    @cached_property
    def _means(self) -> dict[str, float]:
        """Mean score of each image over all its tests."""
        scores: dict[str, list[float]] = {}
        for pred in self._predictions:
            for caption_index, score in zip(pred.test.tolist(), pred.score.tolist(), strict=True):
                scores.setdefault(pred.corpus.images[caption_index], []).append(score)
        return {image: sum(image_scores) / len(image_scores) for image, image_scores in scores.items()}

    @cached_property
    def _labels(self) -> list[list[int]]:
        return [pred.group.tolist() for pred in self._predictions]

    @cached_property
    def _captions_with(self) -> dict[str, list[tuple[int, int]]]:
        """Indices of the captions that contain each word."""
        captions_with: dict[str, list[tuple[int, int]]] = {}
        for pred_index, test_index in self._first_tests:
            pred = self._predictions[pred_index]
            for word in set(pred.corpus.words[pred.test[test_index]]):
                captions_with.setdefault(word, []).append((pred_index, test_index))
        return captions_with

    def _row(
        self, pred_index: int, test_index: int, details: Callable[[str], Mapping[str, Any]] | None
    ) -> tuple[str, str, str]:
        if (pred_index, test_index) not in self._described:  # a caption is evidence for each of its words
            self._described[pred_index, test_index] = self._describe(pred_index, test_index)
        image, caption, detail = self._described[pred_index, test_index]
        if details is not None:
            detail = {**detail, **details(image)}
        return image, caption, json.dumps(detail, ensure_ascii=False)

    def _describe(self, pred_index: int, test_index: int) -> tuple[str, str, dict[str, Any]]:
        pred = self._predictions[pred_index]
        caption_index, predicted = pred.test[test_index], int(pred.predicted[test_index])
        detail: dict[str, Any] = {
            "labelled": self._groups[pred.group[test_index]],
            "predicted": self._groups[predicted],
            "confidence": round(float(pred.proba[test_index, predicted]), 3),
            "score": round(float(pred.score[test_index]), 3),
            "mean score": round(self._means[pred.corpus.images[caption_index]], 5),
        }
        contributions = self._contributions(pred_index, test_index)
        if contributions is None:
            detail["read"] = " ".join(pred.corpus.words[caption_index])
        else:
            detail["total"] = round(sum(contribution for _, contribution in contributions), 3)
            detail["parts"] = [[word, round(float(contribution), 3)] for word, contribution in contributions]
        return pred.corpus.images[caption_index], pred.corpus.captions[caption_index], detail

    def _contributions(self, pred_index: int, test_index: int) -> list[tuple[str, float]] | None:
        """Contribution of each word of a caption to its true group; None without explanations."""
        pred = self._predictions[pred_index]
        if pred.weights is None:
            if pred.attributions is None:
                return None
            words = pred.corpus.words[pred.test[test_index]]
            return list(zip(words, unit_norm(pred.attributions[test_index]).tolist(), strict=True))
        if pred_index not in self._log_odds_weights:
            self._log_odds_weights[pred_index] = pred.log_odds_weights()
        return caption_contributions(pred, test_index, self._log_odds_weights[pred_index])


def repeated_captions(
    captions: Sequence[str], images: Sequence[str], counts: NDArray[np.float64], max_rows: int = MAX_ROWS
) -> pl.DataFrame:
    """Captions given to several images, the most repeated first, with one image per text."""
    first: dict[str, tuple[str, str, int]] = {}
    for image, caption, n_images in zip(images, captions, counts, strict=True):
        if n_images > 1:
            first.setdefault(caption, (image, caption, int(n_images)))
    ranked = sorted(first.values(), key=lambda row: (-row[2], row[1]))[:max_rows]
    rows = [
        (image, caption, json.dumps({"images with this caption": n_images}))
        for image, caption, n_images in ranked
    ]
    return pl.DataFrame(rows, schema=dict.fromkeys(_COLUMNS, pl.String), orient="row")
