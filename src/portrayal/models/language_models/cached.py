"""A language model with a disk cache."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portrayal.models.cache import Arrays, ResponseCache
from portrayal.models.language_models.scores import LanguageModel, TokenScores


@dataclass(frozen=True)
class CachedLanguageModel:
    """A cache around a model, with identical scores; each text is scored only once."""

    model: LanguageModel
    folder: Path

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def digest(self) -> str:
        return self.model.digest

    @property
    def metadata(self) -> dict[str, str]:
        return self.model.metadata

    def score(self, texts: Sequence[str]) -> list[TokenScores]:
        cache = ResponseCache(self.folder, self.digest)
        return [TokenScores(logs, ends) for logs, ends in cache.get_or_compute(texts, self._compute)]

    def _compute(self, texts: list[str]) -> list[Arrays]:
        return [(scores.log_probabilities, scores.ends) for scores in self.model.score(texts)]
