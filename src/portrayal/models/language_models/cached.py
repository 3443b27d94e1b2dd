"""A language model whose answers are kept on disk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portrayal.models.cache import Arrays, Remembered
from portrayal.models.language_models.scores import LanguageModel, Scored


@dataclass(frozen=True)
class RememberedModel:
    """Says what `model` says, to the last digit, and asks it about each text only once."""

    model: LanguageModel
    folder: Path

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def digest(self) -> str:
        return self.model.digest

    @property
    def about(self) -> dict[str, str]:
        return self.model.about

    def scored(self, texts: Sequence[str]) -> list[Scored]:
        kept = Remembered(self.folder, self.digest)
        return [Scored(logs, ends) for logs, ends in kept.through(texts, self._ask)]

    def _ask(self, texts: list[str]) -> list[Arrays]:
        return [(said.log_probabilities, said.ends) for said in self.model.scored(texts)]
