"""Training tasks of the neural classifiers: encoded captions, training and test indices. Plain arrays only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
Array = NDArray[np.float64]
PAD, UNKNOWN, FIRST_WORD = 0, 1, 2  # codes: padding, unknown word, first word
MASKED = "[MASK]"  # a masked word; encoders have a token for it
_BATCHES_PER_POOL = 100  # batches are sorted by length within a pool, as in the published code


@dataclass(frozen=True, eq=False)  # compared by identity: tasks share it
class Texts:
    """Encoded captions, concatenated, and the words of the codes."""

    words: tuple[str, ...]  # words[i] has the code FIRST_WORD + i
    codes: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, captions: Sequence[Sequence[str]], unknown: str | None = None) -> Texts:
        """Encode captions; codes follow alphabetical order, and `unknown` is the token of unknown words.

        >>> Texts.of([("a", "dog"), ("a", "<unk>")], "<unk>").codes.tolist()
        [2, 3, 2, 1]
        """
        words = sorted({word for caption in captions for word in caption if word != unknown})
        code = {word: index for index, word in enumerate(words, FIRST_WORD)}
        if unknown is not None:
            code[unknown] = UNKNOWN
        return cls(
            tuple(words),
            np.array([code[word] for caption in captions for word in caption], dtype=np.int64),
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
        """Codes (captions, longest), padded with PAD."""
        padded = np.full((len(self), int(self.lengths.max(initial=1))), PAD, dtype=np.int64)
        padded[np.arange(padded.shape[1]) < self.lengths[:, None]] = self.codes
        return padded

    @cached_property
    def digest(self) -> str:
        content = "\x1f".join(self.words).encode() + self.codes.tobytes() + self.lengths.tobytes()
        return hashlib.blake2b(content, digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class ClassificationTask:
    """One classifier to train: its captions, groups and class weights, training and test indices."""

    texts: Texts
    group: IntArray  # of each caption
    groups: int
    train: IntArray  # indices of captions
    test: IntArray
    weight: Array  # weight of each group; their mean over captions is 1
    seed: int

    @cached_property
    def digest(self) -> str:
        """Equal for tasks with the same predictions."""
        arrays = (self.group, self.train, self.test, self.weight)
        content = b"".join(np.ascontiguousarray(array).tobytes() + b"\x1e" for array in arrays)
        name = f"{self.texts.digest} {self.groups} {self.seed} "
        return hashlib.blake2b(name.encode() + content, digest_size=16).hexdigest()

    def known_codes(self, max_words: int) -> IntArray:
        """Map each code to itself, or to UNKNOWN if its word is not in the training set.

        Keeps the `max_words` most frequent words.
        """
        in_training = np.zeros(len(self.texts), dtype=bool)
        in_training[self.train] = True
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
        """Indices (batches, size) of captions with similar lengths, -1 for none.

        The order of the batches is the same for every task of the same size, so that tasks can be trained
        together.
        """
        order = self.train[np.random.default_rng([self.seed, epoch]).permutation(len(self.train))]
        batch_rng = np.random.default_rng([epoch, len(order)])
        tables = []
        for start in range(0, len(order), size * _BATCHES_PER_POOL):
            pool = order[start : start + size * _BATCHES_PER_POOL]
            table = np.full((-(-len(pool) // size), size), -1, dtype=np.int64)
            table.flat[: len(pool)] = pool[np.argsort(self.texts.lengths[pool], kind="stable")]
            tables.append(table[batch_rng.permutation(len(table))])
        return np.concatenate(tables)

    def first_equivalent(self, known_codes: IntArray) -> dict[int, int]:
        """Map each test caption to the first one of its group with the same codes."""
        first: dict[tuple[bytes, int], int] = {}
        return {
            index: first.setdefault((known_codes[self.texts[index]].tobytes(), int(self.group[index])), index)
            for index in self.test.tolist()
        }


@dataclass(frozen=True)
class TaskPredictions:
    """Predictions of a trained classifier for its test captions."""

    proba: Array  # (tested, groups)
    # Unscaled attributions of the tokens of all test captions to the true group, concatenated.
    attributions: Array | None = None
