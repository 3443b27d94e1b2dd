"""Models that say what a test tells them to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from portrayal.metrics import cloze, gender_estimation, gender_score, object_distance
from portrayal.metrics.shared.language_scores import caption_scores
from portrayal.models.language_models import TokenScores


class Language:
    """A language model: the probability of each text, or of its last word; 0.5 for what it was not told."""

    def __init__(self, likely: Mapping[str, float]):
        self._likely = likely
        self.name, self.about = "told", {"end": "<end>"}

    def scored(self, images: Sequence[str], texts: Sequence[str]) -> list[TokenScores]:
        assert len(images) == len(texts)
        with np.errstate(divide="ignore"):  # what cannot be has the logarithm of 0
            return self._scored(texts)

    def _scored(self, texts: Sequence[str]) -> list[TokenScores]:
        return [
            TokenScores(np.log([self._likely.get(text, 0.5)]), np.array([len(text)], dtype=np.int64))
            for text in texts
        ]

    def hypotheses(self, images: Sequence[str], texts: Sequence[str], how: str) -> np.ndarray:
        del how
        return np.array([np.exp(said.log_probabilities).mean() for said in self.scored(images, texts)])

    def last_words(self, images: Sequence[str], texts: Sequence[str]) -> np.ndarray:
        return self.hypotheses(images, texts, "mean")


class Encoder:
    """Cosines of pairs of texts; 0 for pairs it was not told, nan for texts that begin with '?'."""

    name, digest = "told", "told"
    about: Mapping[str, str] = {}

    def __init__(self, close: Mapping[tuple[str, str], float]):
        self._close = close

    def cosines(self, one: Sequence[str], other: Sequence[str]) -> np.ndarray:
        return np.array(
            [
                np.nan if a.startswith("?") or b.startswith("?") else self._close.get((a, b), 0.0)
                for a, b in zip(one, other, strict=True)
            ],
            dtype=np.float64,
        )


def told_by(monkeypatch, language: Language, encoder: Encoder) -> None:
    """Every metric of this kind asks these two."""
    for metric in (gender_score, gender_estimation, cloze, object_distance):
        module = __import__("sys").modules[metric.__module__]
        if hasattr(module, "likelihood"):
            monkeypatch.setattr(module, "likelihood", lambda *_: language)
        monkeypatch.setattr(module, "sentence_encoder", lambda *_: encoder)
        # What models would need of the study is no matter here.
        monkeypatch.setattr(module, "check_models", lambda *_, **__: None)
    monkeypatch.setattr(caption_scores, "similarities", lambda asked, one, other: asked.cosines(one, other))
    module = __import__("sys").modules["portrayal.metrics.object_distance.metric"]
    monkeypatch.setattr(module, "similarities", lambda asked, one, other: asked.cosines(one, other))
    module = __import__("sys").modules["portrayal.metrics.object_distance.measurements"]
    monkeypatch.setattr(module, "similarities", lambda asked, one, other: asked.cosines(one, other))
