"""What a neural classifier is asked: captions as numbers, whom to learn from and whom to guess. Plain arrays only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
Array = NDArray[np.float64]
PAD, UNKNOWN, FIRST = 0, 1, 2  # codes: nothing there, a word that is not known, the first word
MASKED = "[MASK]"  # a hidden word, which encoders have a token for
_POOL = 100  # batches that are sorted by length together, as the published code does


@dataclass(frozen=True, eq=False)  # compared by identity: tasks share it
class Texts:
    """Captions as codes, one after the other, and the words that the codes stand for."""

    words: tuple[str, ...]  # of the codes from FIRST on
    codes: Numbers
    lengths: Numbers

    @classmethod
    def of(cls, captions: Sequence[Sequence[str]], unknown: str | None = None) -> Texts:
        """Words get codes in alphabetical order; `unknown` stands for a word that is not known.

        >>> Texts.of([("a", "dog"), ("a", "<unk>")], "<unk>").codes.tolist()
        [2, 3, 2, 1]
        """
        words = sorted({word for caption in captions for word in caption if word != unknown})
        code = {word: number for number, word in enumerate(words, FIRST)}
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
    def starts(self) -> Numbers:
        return np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)

    def __getitem__(self, place: int) -> Numbers:
        start = int(self.starts[place])
        return self.codes[start : start + int(self.lengths[place])]

    @cached_property
    def table(self) -> Numbers:
        """(captions, longest), filled up with PAD."""
        made = np.full((len(self), int(self.lengths.max(initial=1))), PAD, dtype=np.int64)
        made[np.arange(made.shape[1]) < self.lengths[:, None]] = self.codes
        return made

    @cached_property
    def digest(self) -> str:
        whole = "\x1f".join(self.words).encode() + self.codes.tobytes() + self.lengths.tobytes()
        return hashlib.blake2b(whole, digest_size=16).hexdigest()


@dataclass(frozen=True, eq=False)
class Task:
    """One classifier: the captions it learns from with their groups and weights, and those it is tested on."""

    texts: Texts
    group: Numbers  # of each caption
    groups: int
    train: Numbers  # places of captions
    test: Numbers
    weight: Array  # of each group: how much a caption of it counts; their mean over captions is 1
    seed: int

    @cached_property
    def digest(self) -> str:
        """Equal for tasks that have the same answer."""
        parts = (self.group, self.train, self.test, self.weight)
        whole = b"".join(np.ascontiguousarray(part).tobytes() + b"\x1e" for part in parts)
        name = f"{self.texts.digest} {self.groups} {self.seed} "
        return hashlib.blake2b(name.encode() + whole, digest_size=16).hexdigest()

    def known(self, most: int) -> Numbers:
        """Of each code which one the classifier reads: words that it never learns from are unknown to it.

        Of more words than `most` it knows the most common.
        """
        learnt = np.zeros(len(self.texts), dtype=bool)
        learnt[self.train] = True
        codes = self.texts.codes[np.repeat(learnt, self.texts.lengths)]
        often = np.bincount(codes, minlength=FIRST + len(self.texts.words))
        often[:FIRST] = 0
        kept = np.argsort(-often, kind="stable")[:most]
        kept = kept[often[kept] > 0]
        made = np.full(len(often), UNKNOWN, dtype=np.int64)
        made[PAD] = PAD
        made[kept] = kept
        return made

    def batches(self, size: int, epoch: int) -> Numbers:
        """(batches, size) of places, -1 for none: captions of near-equal length together.

        Which batch comes when is the same for every task of its size, so that tasks can be trained side by side.
        """
        order = self.train[np.random.default_rng([self.seed, epoch]).permutation(len(self.train))]
        turn = np.random.default_rng([epoch, len(order)])
        made = []
        for start in range(0, len(order), size * _POOL):
            pool = order[start : start + size * _POOL]
            table = np.full((-(-len(pool) // size), size), -1, dtype=np.int64)
            table.flat[: len(pool)] = pool[np.argsort(self.texts.lengths[pool], kind="stable")]
            made.append(table[turn.permutation(len(table))])
        return np.concatenate(made)

    def distinct(self, known: Numbers) -> dict[int, int]:
        """Of each tested caption the first one of its group that reads the same."""
        seen: dict[tuple[bytes, int], int] = {}
        return {
            place: seen.setdefault((known[self.texts[place]].tobytes(), int(self.group[place])), place)
            for place in self.test.tolist()
        }


@dataclass(frozen=True)
class Answer:
    """What a trained classifier says of the tested captions."""

    likely: Array  # (tested, groups)
    # What each token adds to the probability of the true group, before it is scaled: one after the other.
    parts: Array | None = None
