"""The images behind leakage: labels of the system, true labels, and what the attacker predicts from them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.leakage.label_noise import Array
from portrayal.metrics.leakage.labels import SourceLabels
from portrayal.metrics.shared.classifier.source_evaluation import SourceEvaluation

MAX_ROWS = 100  # images kept for a number whose images are kept in full for another number
OUTPUTS, TRUE, NOISY = "outputs", "true", "noisy"


@dataclass(frozen=True)
class LabelEvidence:
    """Evidence rows of images; predictions are collected once per evaluation."""

    source_labels: SourceLabels
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    _by_evaluation: dict[int, tuple[SourceEvaluation, Array, Array]] = field(default_factory=dict)

    def rows(self, indices: NDArray[np.int64], evaluations: Mapping[str, SourceEvaluation]) -> pl.DataFrame:
        """Return a row for each caption of these images, or for each image; `evaluations` maps label names to
        predictions.
        """
        records: list[tuple[str, str, str]] = []
        for index in indices.tolist():
            detail: dict[str, Any] = {
                "labelled": self.groups[self.source_labels.group[index]],
                OUTPUTS: self._listed(self.source_labels.outputs[index]),
                TRUE: self._listed(self.source_labels.truth[index]),
            }
            for name, evaluation in evaluations.items():
                detail |= self._prediction(name, evaluation, index)
            detail_json = json.dumps(detail, ensure_ascii=False)
            records += [
                (self.source_labels.images[index], caption, detail_json)
                for caption in self.source_labels.captions[index] or ("",)
            ]
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(records, schema=dict.fromkeys(columns, pl.String), orient="row")

    def _prediction(self, name: str, evaluation: SourceEvaluation, index: int) -> dict[str, Any]:
        """Predicted group of the first repeat, its confidence, and the mean accuracy over repeats."""
        proba, accuracy = self._by_image(evaluation)
        predicted = int(proba[index].argmax())
        suffix = "" if name == OUTPUTS else f" ({name})"
        shown: dict[str, Any] = {} if name != NOISY else {NOISY: list(evaluation.corpus.words[index])}
        return shown | {
            f"predicted{suffix}": self.groups[predicted],
            f"confidence{suffix}": round(float(proba[index, predicted]), 3),
            f"accuracy{suffix}": round(float(accuracy[index]), 3),
        }

    def _by_image(self, evaluation: SourceEvaluation) -> tuple[Array, Array]:
        if id(evaluation) not in self._by_evaluation:
            first = evaluation.predictions[0][0]
            proba = np.empty_like(first.proba)
            proba[first.test] = first.proba
            accuracy = np.zeros(len(proba))
            for (pred,) in evaluation.predictions:
                accuracy[pred.test] += pred.score / len(evaluation.predictions)
            self._by_evaluation[id(evaluation)] = (evaluation, proba, accuracy)
        return self._by_evaluation[id(evaluation)][1:]

    def _listed(self, shares: Array) -> list[str]:
        """Labels, with their share where only some captions name them."""
        return [
            self.labels[label] if shares[label] > 0.999 else f"{self.labels[label]} {shares[label]:.0%}"
            for label in np.flatnonzero(shares)
        ]
