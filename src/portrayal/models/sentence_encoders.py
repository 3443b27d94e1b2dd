"""Sentence embeddings: a pretrained encoder, or the weighted mean of a sentence's word vectors."""

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
from portrayal.models.cache import ResponseCache
from portrayal.models.device import resolve_device
from portrayal.models.packaged import packaged_path
from portrayal.models.word_vectors import WordVectors

Vectors = NDArray[np.float64]
_SIF_WEIGHT = 1e-3  # a: words of this frequency have weight 1/2 (Arora, Liang and Ma 2017)
_BATCH_SIZE = 256
_VERSION = 1  # increase when the vectors of the same model change


class SentenceEncoder(Protocol):
    """Unit vectors of sentences; nan for a sentence without a known word."""

    @property
    def name(self) -> str:
        """The name in settings."""

    @property
    def digest(self) -> str:
        """Changes whenever the vectors could change."""

    @property
    def metadata(self) -> dict[str, str]:
        """Facts about the model that are stored with results."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return a row for each sentence."""


class MeanWordVectorEncoder:
    """An encoder that averages word vectors with weights a / (a + frequency), which are lower for frequent words."""

    def __init__(
        self, vectors: WordVectors, frequencies: Mapping[str, float], tokenize: Callable[[str], Sequence[str]]
    ):
        self.vectors, self._frequencies, self._tokenize = vectors, frequencies, tokenize
        self.name = f"mean of words ({vectors.name})"
        self.digest = hashlib.blake2b(
            repr((vectors.digest, sorted(frequencies.items()))).encode(), digest_size=8
        ).hexdigest()
        self.metadata = vectors.metadata

    def encode(self, texts: Sequence[str]) -> Vectors:
        size = self.vectors.matrix.shape[1] if self.vectors.matrix.size else 1
        means = np.full((len(texts), size), np.nan)
        for row, text in enumerate(texts):
            words = [word for word in self._tokenize(text) if word in self.vectors.index]
            if words:
                weights = np.array(
                    [_SIF_WEIGHT / (_SIF_WEIGHT + self._frequencies.get(word, 0.0)) for word in words]
                )
                rows = [self.vectors.index[word] for word in words]
                means[row] = weights @ self.vectors.matrix[rows].astype(np.float64) / len(words)
        return normalize_rows(means)


class SentenceTransformerEncoder:
    """A model of sentence-transformers, by name or folder.

    For an encoder of Transformers, the vectors of its tokens are averaged. The model is loaded when the first
    sentence is encoded.
    """

    def __init__(self, name: str, device: str = "auto"):
        self._given_name, self._path, self._device = name, packaged_path(name), device
        is_local = Path(self._path).is_dir()
        self.name = Path(self._path).name if is_local and self._path == name else name
        self._is_local = is_local
        self.metadata: dict[str, str] = {}

    @cached_property
    def digest(self) -> str:
        """Digest of the files of a folder, or of a name and its revision on the hub."""
        content = (
            content_digest(Path(self._path)) if self._is_local else f"{self._given_name} {self._revision}"
        )
        return hashlib.blake2b(f"{_VERSION} {content}".encode(), digest_size=16).hexdigest()

    @property
    def _revision(self) -> object:
        try:
            config = need("transformers", "neural", "A sentence encoder").AutoConfig.from_pretrained(
                self._given_name
            )
        except (OSError, ValueError) as error:
            raise self._load_error(error) from error
        return getattr(config, "_commit_hash", None)

    def encode(self, texts: Sequence[str]) -> Vectors:
        embeddings = self._model.encode(
            list(texts), batch_size=_BATCH_SIZE, show_progress_bar=False, convert_to_numpy=True
        )
        return normalize_rows(np.asarray(embeddings, dtype=np.float64))

    @cached_property
    def _model(self) -> Any:
        library = need("sentence_transformers", "neural", "A sentence encoder")
        need("transformers", "neural", "A sentence encoder").utils.logging.disable_progress_bar()
        try:
            return library.SentenceTransformer(self._path, device=resolve_device(self._device))
        except (OSError, ValueError) as error:
            raise self._load_error(error) from error

    def _load_error(self, error: Exception) -> PortrayalError:
        first_line = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        return PortrayalError(
            f"The sentence encoder '{self._given_name}' could not be loaded: it is not a folder with a model, "
            f"and could not be loaded from the Hugging Face hub. Give another one with --encoder. ({first_line})"
        )


@dataclass(frozen=True)
class CachedSentenceEncoder:
    """An encoder with a disk cache, so that each sentence is encoded once."""

    encoder: SentenceEncoder
    folder: Path

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def digest(self) -> str:
        return self.encoder.digest

    @property
    def metadata(self) -> dict[str, str]:
        return self.encoder.metadata

    def encode(self, texts: Sequence[str]) -> Vectors:
        cache = ResponseCache(self.folder, self.digest)
        rows = [
            row
            for (row,) in cache.get_or_compute(
                texts, lambda chunk: [(row,) for row in self.encoder.encode(chunk)]
            )
        ]
        return np.stack(rows) if rows else np.zeros((0, 1))


def normalize_rows(vectors: Vectors) -> Vectors:
    """Return the rows scaled to unit length; nan for rows of zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    normalized: Vectors = np.divide(vectors, norms, out=np.full_like(vectors, np.nan), where=norms > 0)
    return normalized
