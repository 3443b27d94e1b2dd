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
    max_words: int = 25_000  # maximum size of the vocabulary
    precision: str = "bfloat16"

    def need_packages(self) -> None:
        need("torch", "neural", "The LSTM classifier")

    def train(
        self, tasks: Sequence[ClassificationTask], device: str, attribution_steps: int
    ) -> Iterator[tuple[int, TaskPredictions]]:
        """Train a classifier for each task; yield the index and the predictions of each task as it finishes."""
        self.need_packages()
        from portrayal.models.text_classifiers.lstm import train

        return train(tasks, self, device=device, attribution_steps=attribution_steps)


@dataclass(frozen=True)
class EncoderConfig:
    """A pretrained encoder with the published head on its first token, fine-tuned or frozen."""

    kind: ClassVar[str] = "bert"
    model: str = ENCODER  # a Hugging Face name or a folder
    frozen: bool = False
    encoder_dropout: bool = (
        True  # whether a frozen encoder uses dropout in training, as in the published code
    )
    epochs: int = 5
    learning_rate: float = 1e-5
    batch_size: int = 64
    max_length: int = 64  # maximum number of tokens
    precision: str = "bfloat16"

    def need_packages(self) -> None:
        need("torch", "neural", "The BERT classifier")
        need("transformers", "neural", "The BERT classifier")

    def train(
        self, tasks: Sequence[ClassificationTask], device: str, attribution_steps: int
    ) -> Iterator[tuple[int, TaskPredictions]]:
        """Train a classifier for each task; yield the index and the predictions of each task as it finishes."""
        self.need_packages()
        from portrayal.models.text_classifiers.encoder import train

        return train(tasks, self, device=device, attribution_steps=attribution_steps)


ClassifierConfig = LstmConfig | EncoderConfig
_CONFIGS: dict[str, type[LstmConfig] | type[EncoderConfig]] = {
    config_class.kind: config_class for config_class in (LstmConfig, EncoderConfig)
}
FINE_TUNED = EncoderConfig()
FROZEN = EncoderConfig(frozen=True, epochs=20, learning_rate=5e-5)


_VERSION = 1  # increase when the predictions of the same task change


def config_to_dict(config: ClassifierConfig) -> dict[str, Any]:
    return {"kind": config.kind, **asdict(config)}


def config_from_dict(config_dict: dict[str, Any]) -> ClassifierConfig:
    hyperparameters = dict(config_dict)
    return _CONFIGS[hyperparameters.pop("kind")](**hyperparameters)


def cache_key(task: ClassificationTask, config: ClassifierConfig, attribution_steps: int) -> str:
    """Return the cache key of a task, which is equal for tasks with the same predictions."""
    content = json.dumps(
        [_VERSION, task.digest, config_to_dict(config), _model_digest(config), attribution_steps],
        sort_keys=True,
    )
    return hashlib.blake2b(content.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=8)
def _model_digest(config: ClassifierConfig) -> str | None:
    """Return the digest of the files of an encoder in a folder; None for other classifiers."""
    if not isinstance(config, EncoderConfig) or not Path(config.model).is_dir():
        return None
    return content_digest(Path(config.model))
