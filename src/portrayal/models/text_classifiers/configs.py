"""Configurations of the neural text classifiers, with the published values as defaults.

This module does not need PyTorch. The training code needs the extra 'neural' and is imported on use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from portrayal.errors import need
from portrayal.files import content_digest
from portrayal.models.text_classifiers.tasks import ClassificationTask, TaskPredictions

ENCODER = "bert-base-uncased"


@dataclass(frozen=True)
class LstmConfig:
    """A bidirectional LSTM with two layers and word embeddings trained from scratch."""

    kind: ClassVar[str] = "lstm"
    epochs: int = 20
    learning_rate: float = 5e-5
    batch_size: int = 64
    dropout: float = 0.5
    max_words: int = 25_000  # vocabulary size limit
    precision: str = "bfloat16"

    def need_packages(self) -> None:
        need("torch", "neural", "The LSTM classifier")

    def train(
        self, tasks: Sequence[ClassificationTask], device: str, explain: int
    ) -> Iterator[tuple[int, TaskPredictions]]:
        """Train tasks and yield the index and predictions of each as it finishes."""
        self.need_packages()
        from portrayal.models.text_classifiers.lstm import train

        return train(tasks, self, device=device, explain=explain)


@dataclass(frozen=True)
class EncoderConfig:
    """A pretrained encoder with the published head on its first token, fine-tuned or frozen."""

    kind: ClassVar[str] = "bert"
    model: str = ENCODER  # a Hugging Face name or a folder
    frozen: bool = False
    encoder_dropout: bool = True  # a frozen encoder keeps its dropout on, as in the published code
    epochs: int = 5
    learning_rate: float = 1e-5
    batch_size: int = 64
    max_length: int = 64  # maximum number of tokens
    precision: str = "bfloat16"

    def need_packages(self) -> None:
        need("torch", "neural", "The BERT classifier")
        need("transformers", "neural", "The BERT classifier")

    def train(
        self, tasks: Sequence[ClassificationTask], device: str, explain: int
    ) -> Iterator[tuple[int, TaskPredictions]]:
        """Train tasks and yield the index and predictions of each as it finishes."""
        self.need_packages()
        from portrayal.models.text_classifiers.encoder import train

        return train(tasks, self, device=device, explain=explain)


ClassifierConfig = LstmConfig | EncoderConfig
_CONFIGS: dict[str, type[LstmConfig] | type[EncoderConfig]] = {
    kind.kind: kind for kind in (LstmConfig, EncoderConfig)
}
FINE_TUNED = EncoderConfig()
FROZEN = EncoderConfig(frozen=True, epochs=20, learning_rate=5e-5)


_VERSION = 1  # raise it when the same task would give other predictions


def as_dict(config: ClassifierConfig) -> dict[str, Any]:
    return {"kind": config.kind, **asdict(config)}


def from_dict(stored: dict[str, Any]) -> ClassifierConfig:
    rest = dict(stored)
    return _CONFIGS[rest.pop("kind")](**rest)


def cache_key(task: ClassificationTask, config: ClassifierConfig, explain: int) -> str:
    """Cache key of a task; equal for tasks with the same predictions."""
    content = json.dumps(
        [_VERSION, task.digest, as_dict(config), _model_digest(config), explain], sort_keys=True
    )
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=8)
def _model_digest(config: ClassifierConfig) -> str | None:
    """Digest of the files of an encoder in a folder, whose name does not identify its content."""
    if not isinstance(config, EncoderConfig) or not Path(config.model).is_dir():
        return None
    return content_digest(Path(config.model))
