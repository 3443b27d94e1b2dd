"""Word vectors fitted to captions: truncated SVD of the PPMI of co-occurring words (Levy, Goldberg and Dagan 2015).

PPMI is the positive pointwise mutual information. The same captions always give the same vectors.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.extmath import randomized_svd

from portrayal.models.word_vectors.vectors import WordVectors

SIZE = 100  # dimensions of the vectors
_WINDOW = 5  # words on each side
_CONTEXT_SMOOTHING = 0.75  # exponent of context frequencies, which reduces the PMI of rare contexts
_MIN_COUNT = 3  # minimum number of occurrences of a word


def fit_vectors(captions: Sequence[Sequence[str]], size: int = SIZE) -> WordVectors:
    """Return vectors of the frequent words of tokenized captions, with `size` dimensions at most."""
    words, codes, caption_index = _encode_words(captions)
    counts = _cooccurrence_counts(codes, caption_index, len(words))
    matrix = _truncated_svd(_ppmi(counts), min(size, max(len(words) - 2, 0)))
    digest = hashlib.blake2b("\n".join(words).encode() + matrix.tobytes(), digest_size=8).hexdigest()
    index = {word: code for code, word in enumerate(words)}
    metadata = {"fitted on": f"{len(captions):,} captions", "words": f"{len(words):,}"}
    return WordVectors("fitted", digest, index, matrix, metadata)


def frequent_words(captions: Sequence[Sequence[str]]) -> list[str]:
    """Return the words that occur at least `_MIN_COUNT` times, sorted."""
    counts: dict[str, int] = {}
    for caption in captions:
        for word in caption:
            counts[word] = counts.get(word, 0) + 1
    return sorted(word for word, count in counts.items() if count >= _MIN_COUNT)


def _encode_words(
    captions: Sequence[Sequence[str]],
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Return the frequent words, the codes of all words (-1 for others), and the caption of each code."""
    words = frequent_words(captions)
    index = {word: code for code, word in enumerate(words)}
    codes = np.array([index.get(word, -1) for caption in captions for word in caption], dtype=np.int64)
    return words, codes, np.repeat(np.arange(len(captions)), [len(caption) for caption in captions])


def _cooccurrence_counts(
    codes: NDArray[np.int64], caption_index: NDArray[np.int64], n_words: int
) -> sparse.csr_array:
    """Return co-occurrence counts (words, words) within the window, with weight 1 / distance."""
    counts = sparse.csr_array((n_words, n_words))
    for distance in range(1, _WINDOW + 1):
        left, right = codes[:-distance], codes[distance:]
        valid = (left >= 0) & (right >= 0) & (caption_index[:-distance] == caption_index[distance:])
        weights = np.full(int(valid.sum()), 1 / distance)
        counts = counts + sparse.csr_array((weights, (left[valid], right[valid])), shape=(n_words, n_words))
    return sparse.csr_array(counts + counts.T)


def _ppmi(counts: sparse.csr_array) -> sparse.csr_array:
    """Return log P(word, context) / (P(word) P(context)) where it is positive."""
    counts = sparse.coo_array(counts)
    total = counts.data.sum()
    word_share = np.asarray(counts.sum(axis=1)).reshape(-1) / total if total else np.zeros(counts.shape[0])
    context_share = word_share**_CONTEXT_SMOOTHING
    context_share = context_share / context_share.sum() if total else context_share
    rows, columns = counts.coords
    pmi = np.log(counts.data / total / (word_share[rows] * context_share[columns])) if total else counts.data
    positive = pmi > 0
    return sparse.csr_array((pmi[positive], (rows[positive], columns[positive])), shape=counts.shape)


def _truncated_svd(ppmi: sparse.csr_array, size: int) -> NDArray[np.float32]:
    """Return the leading singular vectors, scaled by the root of the singular values, with deterministic signs."""
    if size < 1 or not ppmi.nnz:
        return np.zeros((ppmi.shape[0], max(size, 1)), dtype=np.float32)
    # A fixed random state, so that the result depends only on the captions.
    u, singular_values, _ = randomized_svd(ppmi, size, n_iter=7, random_state=0)
    signs = np.sign(u[np.abs(u).argmax(axis=0), np.arange(size)])
    vectors: NDArray[np.float32] = (u * signs * np.sqrt(singular_values)).astype(np.float32)
    return vectors
