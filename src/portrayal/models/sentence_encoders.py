"""Sentences as vectors: a pretrained encoder, or the weighted mean of a sentence's word vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import PortrayalError, need
from portrayal.files import content_digest
from portrayal.models.cache import Remembered
from portrayal.models.device import best_device
from portrayal.models.packaged import located
from portrayal.models.word_vectors import WordVectors

Vectors = NDArray[np.float64]
_RARE = 1e-3  # words of this frequency count half (Arora, Liang and Ma 2017)
_TOGETHER = 256
_VERSION = 1  # to be raised when the same model would give other numbers


class SentenceEncoder(Protocol):
    """Vectors of length 1; nan for a sentence of which nothing is known."""

    @property
    def name(self) -> str:
        """How settings name it."""

    @property
    def digest(self) -> str:
        """Another one whenever what it says could be another."""

    @property
    def about(self) -> dict[str, str]:
        """What a reader of its numbers must know."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """A row for each sentence."""


class MeanOfWords:
    """The mean of a sentence's word vectors, in which frequent words count less: a / (a + share of all words)."""

    def __init__(
        self, vectors: WordVectors, shares: Mapping[str, float], cut: Callable[[str], Sequence[str]]
    ):
        self.vectors, self._shares, self._cut = vectors, shares, cut
        self.name = f"mean of words ({vectors.name})"
        self.digest = hashlib.blake2b(
            repr((vectors.digest, sorted(shares.items()))).encode(), digest_size=8
        ).hexdigest()
        self.about = vectors.about

    def encode(self, texts: Sequence[str]) -> Vectors:
        size = self.vectors.matrix.shape[1] if self.vectors.matrix.size else 1
        made = np.full((len(texts), size), np.nan)
        for row, text in enumerate(texts):
            words = [word for word in self._cut(text) if word in self.vectors.place]
            if words:
                weights = np.array([_RARE / (_RARE + self._shares.get(word, 0.0)) for word in words])
                places = [self.vectors.place[word] for word in words]
                made[row] = weights @ self.vectors.matrix[places].astype(np.float64) / len(words)
        return directions(made)


class Pretrained:
    """A model of sentence-transformers, by name or folder; it also runs plain encoders, whose tokens it averages.

    It is loaded when the first sentence is to be read.
    """

    def __init__(self, name: str, device: str = "auto"):
        self._asked, self._place, self._device = name, located(name), device
        local = Path(self._place).is_dir()
        self.name = Path(self._place).name if local and self._place == name else name
        self._local = local
        self.about: dict[str, str] = {}

    @cached_property
    def digest(self) -> str:
        """Of a folder's files; of a name, with the version at the hub."""
        found = content_digest(Path(self._place)) if self._local else f"{self._asked} {self._version}"
        return hashlib.blake2b(f"{_VERSION} {found}".encode(), digest_size=16).hexdigest()

    @property
    def _version(self) -> object:
        try:
            config = need("transformers", "neural", "A sentence encoder").AutoConfig.from_pretrained(
                self._asked
            )
        except (OSError, ValueError) as error:
            raise self._not_there(error) from error
        return getattr(config, "_commit_hash", None)

    def encode(self, texts: Sequence[str]) -> Vectors:
        found = self._model.encode(
            list(texts), batch_size=_TOGETHER, show_progress_bar=False, convert_to_numpy=True
        )
        return directions(np.asarray(found, dtype=np.float64))

    @cached_property
    def _model(self) -> Any:
        library = need("sentence_transformers", "neural", "A sentence encoder")
        need("transformers", "neural", "A sentence encoder").utils.logging.disable_progress_bar()
        try:
            return library.SentenceTransformer(self._place, device=best_device(self._device))
        except (OSError, ValueError) as error:
            raise self._not_there(error) from error

    def _not_there(self, error: Exception) -> PortrayalError:
        first = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        return PortrayalError(
            f"The sentence encoder '{self._asked}' could not be loaded: it is neither a folder with a model, nor could "
            f"it be had from the Hugging Face hub. Give another one with --encoder. ({first})"
        )


@dataclass(frozen=True)
class RememberedEncoder:
    """Says what `encoder` says, and asks it about each sentence only once."""

    encoder: SentenceEncoder
    folder: Path

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def digest(self) -> str:
        return self.encoder.digest

    @property
    def about(self) -> dict[str, str]:
        return self.encoder.about

    def encode(self, texts: Sequence[str]) -> Vectors:
        kept = Remembered(self.folder, self.digest)
        rows = [
            row for (row,) in kept.through(texts, lambda some: [(row,) for row in self.encoder.encode(some)])
        ]
        return np.stack(rows) if rows else np.zeros((0, 1))


def directions(vectors: Vectors) -> Vectors:
    """The same vectors with length 1; nan where there is no direction."""
    long = np.linalg.norm(vectors, axis=1, keepdims=True)
    made: Vectors = np.divide(vectors, long, out=np.full_like(vectors, np.nan), where=long > 0)
    return made
