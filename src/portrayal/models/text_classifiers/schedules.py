"""The classifiers that can be asked to guess a group from a caption, with their published schedules.

This file needs nothing but numbers; what trains them needs the extra 'neural' and is loaded when it is asked to.
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
from portrayal.models.text_classifiers.tasks import Answer, Task

ENCODER = "bert-base-uncased"


@dataclass(frozen=True)
class Lstm:
    """Two layers in both directions on words it learns itself."""

    kind: ClassVar[str] = "lstm"
    epochs: int = 20
    learning_rate: float = 5e-5
    batch: int = 64
    dropout: float = 0.5
    words: int = 25_000  # known at most
    precision: str = "bfloat16"

    def need_packages(self) -> None:
        need("torch", "neural", "The LSTM classifier")

    def train(self, tasks: Sequence[Task], device: str, explain: int) -> Iterator[tuple[int, Answer]]:
        """The place and answer of each task, as they are there."""
        self.need_packages()
        from portrayal.models.text_classifiers.lstm import train

        return train(tasks, self, device=device, explain=explain)


@dataclass(frozen=True)
class Encoder:
    """A pretrained encoder with the published head on its first token; the encoder learns too, or is frozen."""

    kind: ClassVar[str] = "bert"
    model: str = ENCODER  # a Hugging Face name, or a folder
    frozen: bool = False
    noisy: bool = True  # the frozen encoder's own dropout stays on, as in the published code
    epochs: int = 5
    learning_rate: float = 1e-5
    batch: int = 64
    length: int = 64  # tokens read at most
    precision: str = "bfloat16"

    def need_packages(self) -> None:
        need("torch", "neural", "The BERT classifier")
        need("transformers", "neural", "The BERT classifier")

    def train(self, tasks: Sequence[Task], device: str, explain: int) -> Iterator[tuple[int, Answer]]:
        """The place and answer of each task, as they are there."""
        self.need_packages()
        from portrayal.models.text_classifiers.encoder import train

        return train(tasks, self, device=device, explain=explain)


Classifier = Lstm | Encoder
_KINDS: dict[str, type[Lstm] | type[Encoder]] = {kind.kind: kind for kind in (Lstm, Encoder)}
FINE_TUNED = Encoder()
FROZEN = Encoder(frozen=True, epochs=20, learning_rate=5e-5)


_VERSION = 1  # to be raised when the same training would give another answer


def as_dict(classifier: Classifier) -> dict[str, Any]:
    return {"kind": classifier.kind, **asdict(classifier)}


def from_dict(stored: dict[str, Any]) -> Classifier:
    rest = dict(stored)
    return _KINDS[rest.pop("kind")](**rest)


def key(task: Task, classifier: Classifier, explain: int) -> str:
    """Equal for trainings that have the same answer."""
    whole = json.dumps(
        [_VERSION, task.digest, as_dict(classifier), _content(classifier), explain], sort_keys=True
    )
    return hashlib.blake2b(whole.encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=8)
def _content(classifier: Classifier) -> str | None:
    """Of an encoder in a folder, a digest of its files: a folder's name does not say what is in it."""
    if not isinstance(classifier, Encoder) or not Path(classifier.model).is_dir():
        return None
    return content_digest(Path(classifier.model))
