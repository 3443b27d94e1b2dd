"""Fake language models and encoders with the probabilities and cosines that a test sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from portrayal.metrics import cloze, gender_estimation, gender_score, object_distance
from portrayal.metrics.shared.language_scores import caption_scores
from portrayal.models.language_models import TokenScores


class FakeLanguageModel:
    """A language model: the probability of each text, or of its last word; 0.5 for other texts."""

    def __init__(self, probabilities: Mapping[str, float]):
        self._probabilities = probabilities
        self.name, self.metadata = "fake", {"end": "<end>"}

    def score(self, images: Sequence[str], texts: Sequence[str]) -> list[TokenScores]:
        assert len(images) == len(texts)
        with np.errstate(divide="ignore"):  # log of probability 0
            return self._score(texts)

    def _score(self, texts: Sequence[str]) -> list[TokenScores]:
        return [
            TokenScores(np.log([self._probabilities.get(text, 0.5)]), np.array([len(text)], dtype=np.int64))
            for text in texts
        ]

    def hypotheses(self, images: Sequence[str], texts: Sequence[str], summary: str) -> np.ndarray:
        del summary
        return np.array([np.exp(scores.log_probabilities).mean() for scores in self.score(images, texts)])

    def last_words(self, images: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        return self.hypotheses(images, texts, "mean")


class FakeEncoder:
    """Cosines of pairs of texts; 0 for other pairs, nan for texts that begin with '?'."""

    name, digest = "fake", "fake"
    metadata: Mapping[str, str] = {}

    def __init__(self, similarities: Mapping[tuple[str, str], float]):
        self._similarities = similarities

    def cosines(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        return np.array(
            [
                np.nan if a.startswith("?") or b.startswith("?") else self._similarities.get((a, b), 0.0)
                for a, b in zip(first, second, strict=True)
            ],
            dtype=np.float64,
        )


def use_fake_models(monkeypatch, language_model: FakeLanguageModel, encoder: FakeEncoder) -> None:
    """Make every metric of the Gender Score family use these two models."""
    for metric in (gender_score, gender_estimation, cloze, object_distance):
        module = __import__("sys").modules[metric.__module__]
        if hasattr(module, "likelihood"):
            monkeypatch.setattr(module, "likelihood", lambda *_: language_model)
        monkeypatch.setattr(module, "sentence_encoder", lambda *_: encoder)
        # Fake models need nothing of the study.
        monkeypatch.setattr(module, "check_models", lambda *_, **__: None)
    monkeypatch.setattr(
        caption_scores, "similarities", lambda encoder, first, second: encoder.cosines(first, second)
    )
    module = __import__("sys").modules["portrayal.metrics.object_distance.metric"]
    monkeypatch.setattr(module, "similarities", lambda encoder, first, second: encoder.cosines(first, second))
    module = __import__("sys").modules["portrayal.metrics.object_distance.measurements"]
    monkeypatch.setattr(module, "similarities", lambda encoder, first, second: encoder.cosines(first, second))
