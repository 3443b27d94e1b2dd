"""Captions scored: how likely each is once the objects of its image have been seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.shared.language_scores.belief_revision import belief_revision
from portrayal.metrics.shared.language_scores.models import Likelihood, knows, similarities, told_encoder
from portrayal.metrics.shared.language_scores.visual_context import Visual
from portrayal.models.sentence_encoders import SentenceEncoder

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """Per caption the score and what it is made of; nan where a caption's image has no object, or nothing is known.

    Where every object counts by itself, similarity, confidence and score are means over the objects.
    """

    hypothesis: Values
    similarity: Values
    confidence: Values
    score: Values


@dataclass(frozen=True)
class Scorer:
    """Scores captions by one language model, one sentence encoder, and what was seen in each image."""

    likelihood: Likelihood
    encoder: SentenceEncoder
    visual: Visual
    detections: str  # joined, or each
    how: str
    evidence: str

    @property
    def settings(self) -> dict[str, str]:
        """What decides a score, as results tell it."""
        about = {
            f"language_model_{name.replace(' ', '_')}": text for name, text in self.likelihood.about.items()
        }
        return {
            "language_model": self.likelihood.name,
            **about,
            **told_encoder(self.encoder),
            "hypothesis": self.how,
            "evidence": self.evidence,
            "detections": self.detections,
            "source": self.visual.sources,
        }

    def scores(self, images: Sequence[str], captions: Sequence[str]) -> Scores:
        return self.revised(images, captions, self.likelihood.hypotheses(images, captions, self.how))

    def revised(
        self, images: Sequence[str], texts: Sequence[str], hypothesis: Values, to: Sequence[str] | None = None
    ) -> Scores:
        """Hypotheses revised by how related texts are to their images' objects, or `to` other texts, one for each."""
        seen = self.visual.of if self.detections == "each" else self.visual.joined
        rows, contexts = [], []
        for row, image in enumerate(images):
            for context in seen(image):
                rows.append(row)
                contexts.append(context)
        at = np.array(rows, dtype=np.int64)
        others = [one.text for one in contexts] if to is None else [to[row] for row in rows]
        close = similarities(self.encoder, [texts[row] for row in rows], others)
        if to is None and self.detections == "each":
            close = np.where([knows(self.encoder, one.text) for one in contexts], close, np.nan)
        sure = np.array([one.confidence for one in contexts], dtype=np.float64)
        score = belief_revision(hypothesis[at], close, sure, self.evidence)
        return Scores(hypothesis, *(_means(at, values, len(texts)) for values in (close, sure, score)))


def _means(at: NDArray[np.int64], values: Values, size: int) -> Values:
    """Of each caption's values, those that are known."""
    known = np.isfinite(values)
    sums = np.bincount(at[known], weights=values[known], minlength=size)
    counts = np.bincount(at[known], minlength=size)
    made: Values = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return made
