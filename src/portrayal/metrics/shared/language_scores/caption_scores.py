"""Scores of captions: the probability of each, revised by the objects of its image."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.language_scores.belief_revision import belief_revision
from portrayal.metrics.shared.language_scores.models import (
    Likelihood,
    encoder_settings,
    in_vocabulary,
    similarities,
)
from portrayal.metrics.shared.language_scores.visual_context import VisualContext
from portrayal.models.sentence_encoders import SentenceEncoder

Values = NDArray[np.float64]


@dataclass(frozen=True)
class RevisedScores:
    """Score of each caption and its ingredients; nan where the image has no object, or the models know no word.

    With `detections` "each", similarity, confidence and score are means over the objects.
    """

    hypothesis: Values
    similarity: Values
    confidence: Values
    score: Values


@dataclass(frozen=True)
class CaptionScorer:
    """Scores captions with a language model, a sentence encoder and the objects of each image."""

    likelihood: Likelihood
    encoder: SentenceEncoder
    visual_context: VisualContext
    detections: str  # "joined" or "each"
    hypothesis: str
    evidence: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings that determine a score, as results record them."""
        model_settings = {
            f"language_model_{name.replace(' ', '_')}": text
            for name, text in self.likelihood.metadata.items()
        }
        return {
            "language_model": self.likelihood.name,
            **model_settings,
            **encoder_settings(self.encoder),
            "hypothesis": self.hypothesis,
            "evidence": self.evidence,
            "detections": self.detections,
            "source": self.visual_context.sources,
        }

    def score_captions(self, images: Sequence[str], captions: Sequence[str]) -> RevisedScores:
        """Scores of captions of these images."""
        return self.revise(images, captions, self.likelihood.hypotheses(images, captions, self.hypothesis))

    def revise(
        self,
        images: Sequence[str],
        texts: Sequence[str],
        hypothesis: Values,
        other_texts: Sequence[str] | None = None,
    ) -> RevisedScores:
        """Hypotheses revised by the similarity of texts to the objects of their images, or to `other_texts`."""
        contexts_of = (
            self.visual_context.items_of if self.detections == "each" else self.visual_context.joined
        )
        rows, contexts = [], []
        for row, image in enumerate(images):
            for context in contexts_of(image):
                rows.append(row)
                contexts.append(context)
        caption_index = np.array(rows, dtype=np.int64)
        others = (
            [item.text for item in contexts] if other_texts is None else [other_texts[row] for row in rows]
        )
        similarity = similarities(self.encoder, [texts[row] for row in rows], others)
        if other_texts is None and self.detections == "each":
            similarity = np.where(
                [in_vocabulary(self.encoder, item.text) for item in contexts], similarity, np.nan
            )
        confidence = np.array([item.confidence for item in contexts], dtype=np.float64)
        revised = belief_revision(hypothesis[caption_index], similarity, confidence, self.evidence)
        return RevisedScores(
            hypothesis,
            *(_means(caption_index, values, len(texts)) for values in (similarity, confidence, revised)),
        )


def _means(caption_index: NDArray[np.int64], values: Values, size: int) -> Values:
    """Mean of the finite values of each caption; nan where there are none."""
    known = np.isfinite(values)
    sums = np.bincount(caption_index[known], weights=values[known], minlength=size)
    counts = np.bincount(caption_index[known], minlength=size)
    means: Values = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means
