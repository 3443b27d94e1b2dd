"""Word vectors learnt from captions alone: which words stand near which, in fewer numbers.

Positive pointwise mutual information of words within a few places of each other, reduced by singular values (Levy,
Goldberg and Dagan 2015). Nothing is random: the same captions give the same vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from portrayal.models.word_vectors.vectors import WordVectors

SIZE = 100
_REACH = 5  # places to either side
_SMOOTHED = 0.75  # contexts count by their frequency to this power, so that rare ones do not win
_AT_LEAST = 3  # times a word must be seen


def learn_vectors(captions: Sequence[Sequence[str]], size: int = SIZE) -> WordVectors:
    """Vectors of the words seen often enough in captions that are cut into words."""
    words, codes, whose = _coded(captions)
    near = _near(codes, whose, len(words))
    matrix = _reduced(_information(near), min(size, max(len(words) - 2, 0)))
    digest = hashlib.blake2b("\n".join(words).encode() + matrix.tobytes(), digest_size=8).hexdigest()
    place = {word: number for number, word in enumerate(words)}
    about = {"learnt from": f"{len(captions):,} captions", "words": f"{len(words):,}"}
    return WordVectors("learnt", digest, place, matrix, about)


def known_words(captions: Sequence[Sequence[str]]) -> list[str]:
    """The words seen often enough to have a vector."""
    seen: dict[str, int] = {}
    for caption in captions:
        for word in caption:
            seen[word] = seen.get(word, 0) + 1
    return sorted(word for word, times in seen.items() if times >= _AT_LEAST)


def _coded(captions: Sequence[Sequence[str]]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """The words that count; all captions' words one after the other as their numbers, -1 for others; whose each is."""
    words = known_words(captions)
    place = {word: number for number, word in enumerate(words)}
    codes = np.array([place.get(word, -1) for caption in captions for word in caption], dtype=np.int64)
    return words, codes, np.repeat(np.arange(len(captions)), [len(caption) for caption in captions])


def _near(codes: NDArray[np.int64], whose: NDArray[np.int64], words: int) -> sparse.csr_array:
    """How often each word stands near each other one; nearer ones count for more."""
    found = sparse.csr_array((words, words))
    for step in range(1, _REACH + 1):
        left, right = codes[:-step], codes[step:]
        both = (left >= 0) & (right >= 0) & (whose[:-step] == whose[step:])
        weights = np.full(int(both.sum()), 1 / step)
        found = found + sparse.csr_array((weights, (left[both], right[both])), shape=(words, words))
    return sparse.csr_array(found + found.T)


def _information(near: sparse.csr_array) -> sparse.csr_array:
    """log P(word, context) / (P(word) P(context)), where it is positive."""
    near = sparse.coo_array(near)
    total = near.data.sum()
    word = np.asarray(near.sum(axis=1)).reshape(-1) / total if total else np.zeros(near.shape[0])
    context = word**_SMOOTHED
    context = context / context.sum() if total else context
    rows, columns = near.coords
    value = np.log(near.data / total / (word[rows] * context[columns])) if total else near.data
    positive = value > 0
    return sparse.csr_array((value[positive], (rows[positive], columns[positive])), shape=near.shape)


def _reduced(information: sparse.csr_array, size: int) -> NDArray[np.float32]:
    """The largest singular vectors, each as long as the root of its singular value, signs made definite."""
    if size < 1 or not information.nnz:
        return np.zeros((information.shape[0], max(size, 1)), dtype=np.float32)
    # Begun at the same place each time: the words decide, not chance.
    left, strength, _ = randomized_svd(information, size, n_iter=7, random_state=0)
    signs = np.sign(left[np.abs(left).argmax(axis=0), np.arange(size)])
    made: NDArray[np.float32] = (left * signs * np.sqrt(strength)).astype(np.float32)
    return made
