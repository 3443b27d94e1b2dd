"""Training tasks of the neural classifiers as plain arrays: encoded captions, training and test indices."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Array = NDArray[np.float64]
PAD, UNKNOWN, FIRST_WORD = 0, 1, 2  # codes of padding, of unknown words, and of the first word
MASKED = "[MASK]"  # replaces a masked word; encoders have a token for it
_BATCHES_PER_POOL = 100  # batches are sorted by length within a pool, as in the published code


@dataclass(frozen=True, eq=False)  # compared by identity, since tasks share it
class Texts:
    """The codes of the words of all captions, concatenated, and the vocabulary."""

    words: tuple[str, ...]  # words[i] has the code FIRST_WORD + i
    codes: IntArray
    lengths: IntArray  # number of words of each caption

    @classmethod
    def encode(cls, captions: Sequence[Sequence[str]], unknown: str | None = None) -> Texts:
        """Encode captions, with codes in alphabetical order of the words; `unknown` is the token of unknown words.

        >>> Texts.encode([("a", "dog"), ("a", "<unk>")], "<unk>").codes.tolist()
        [2, 3, 2, 1]
        """
        words = sorted({word for caption in captions for word in caption if word != unknown})
        code_by_word = {word: code for code, word in enumerate(words, FIRST_WORD)}
        if unknown is not None:
            code_by_word[unknown] = UNKNOWN
        return cls(
            tuple(words),
            np.array([code_by_word[word] for caption in captions for word in caption], dtype=np.int64),
            np.array([len(caption) for caption in captions], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> IntArray:
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)

    def __getitem__(self, index: int) -> IntArray:
        start = int(self.starts[index])
        return self.codes[start : start + int(self.lengths[index])]

    @cached_property
    def table(self) -> IntArray:
        """Codes (captions, words of the longest caption), padded with PAD."""
        padded = np.full((len(self), int(self.lengths.max(initial=1))), PAD, dtype=np.int64)
        padded[np.arange(padded.shape[1]) < self.lengths[:, None]] = self.codes
        return padded

    @cached_property
    def digest(self) -> str:
        content = "\x1f".join(self.words).encode() + self.codes.tobytes() + self.lengths.tobytes()
        return hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class ClassificationTask:
    """A classifier to train: its captions, their groups, class weights, training and test indices."""

    texts: Texts
    group_index: IntArray  # group of each caption
    n_groups: int
    train_indices: IntArray  # of captions
    test_indices: IntArray
    group_weights: Array  # weight of the captions of each group; the mean over captions is 1
    seed: int

    @cached_property
    def digest(self) -> str:
        """Equal for tasks with the same predictions."""
        arrays = (self.group_index, self.train_indices, self.test_indices, self.group_weights)
        content = b"".join(np.ascontiguousarray(array).tobytes() + b"\x1e" for array in arrays)
        header = f"{self.texts.digest} {self.n_groups} {self.seed} "
        return hashlib.blake2b(header.encode() + content, digest_size=16).hexdigest()

    def known_codes(self, max_words: int) -> IntArray:
        """Return an array that maps the code of each known word to itself, and other codes to UNKNOWN.

        Known words are the `max_words` most frequent words of the training captions.
        """
        in_training = np.zeros(len(self.texts), dtype=bool)
        in_training[self.train_indices] = True
        codes = self.texts.codes[np.repeat(in_training, self.texts.lengths)]
        counts = np.bincount(codes, minlength=FIRST_WORD + len(self.texts.words))
        counts[:FIRST_WORD] = 0
        frequent = np.argsort(-counts, kind="stable")[:max_words]
        frequent = frequent[counts[frequent] > 0]
        code_map = np.full(len(counts), UNKNOWN, dtype=np.int64)
        code_map[PAD] = PAD
        code_map[frequent] = frequent
        return code_map

    def batches(self, size: int, epoch: int) -> IntArray:
        """Return caption indices (batches, size), -1 for padding; captions of a batch have similar lengths.

        Tasks with equally many training captions have the same order of batches by length, so that they can be
        trained together.
        """
        order = self.train_indices[
            np.random.default_rng([self.seed, epoch]).permutation(len(self.train_indices))
        ]
        batch_rng = np.random.default_rng([epoch, len(order)])
        pools = []
        for start in range(0, len(order), size * _BATCHES_PER_POOL):
            pool = order[start : start + size * _BATCHES_PER_POOL]
            batches = np.full((-(-len(pool) // size), size), -1, dtype=np.int64)
            batches.flat[: len(pool)] = pool[np.argsort(self.texts.lengths[pool], kind="stable")]
            pools.append(batches[batch_rng.permutation(len(batches))])
        return np.concatenate(pools)

    def first_equivalent(self, known_codes: IntArray) -> dict[int, int]:
        """Map each test caption to the first one of its group with the same codes."""
        first_by_key: dict[tuple[bytes, int], int] = {}
        return {
            index: first_by_key.setdefault(
                (known_codes[self.texts[index]].tobytes(), int(self.group_index[index])), index
            )
            for index in self.test_indices.tolist()
        }


@dataclass(frozen=True)
class TaskPredictions:
    """Predictions of a trained classifier for its test captions."""

    proba: Array  # (test captions, groups)
    # Attributions of the words of all test captions to the true group, concatenated and not scaled.
    attributions: Array | None = None
