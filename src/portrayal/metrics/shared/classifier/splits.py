"""Train/test splits: the published split, and cross-validation folds without leakage of texts.

Repeated splits use one seed per repeat. A repeat has one or more splits. Groups are balanced by class weights
or by subsampling the larger groups.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import Undefined

PAPER_SEEDS = (0, 12, 100, 200, 300, 400, 456, 500, 789, 1234)
FOLDS = 10
REPEATS = 5
_TEST_SHARE = 0.1  # of the smaller group, as published
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Indices of captions, in the order in which a classifier reads them."""

    train: Indices
    test: Indices


def paper_split(groups: Sequence[Hashable], seed: int) -> Split:
    """The split of the published code: all of the smallest group and as many of the others, one tenth of them
    for test.

    Captions are drawn without replacement in the order larger-train, smaller-train, larger-test,
    smaller-test, with Python's `random`, so that a seed reproduces the published images. The split depends on
    the order of the captions, which differs between the published files: two systems are tested on different
    images.
    """
    sizes = Counter(groups).most_common()
    pools = [[index for index, group in enumerate(groups) if group == name] for name, _ in sizes]
    n_train, n_test = paper_sizes([size for _, size in sizes])
    rng = random.Random(seed)

    def draw(count: int) -> list[int]:
        return [pool.pop(rng.randrange(len(pool))) for pool in pools for _ in range(count)]

    train, test = draw(n_train), draw(n_test)
    rng.shuffle(train)
    rng.shuffle(test)
    return Split(np.array(train, dtype=np.int64), np.array(test, dtype=np.int64))


def paper_sizes(sizes: Sequence[int]) -> tuple[int, int]:
    """Return the numbers of training and test captions per group under the published split."""
    n_test = round(_TEST_SHARE * min(sizes))
    if not n_test:
        raise Undefined(
            f"the published split tests a tenth of the smallest group, which has {min(sizes)} captions"
        )
    return min(sizes) - n_test, n_test


def fast_paper_split(groups: NDArray[np.int64], rng: np.random.Generator) -> Split:
    """The same kind of split with NumPy's generator, a hundred times as fast; used for permuted labels."""
    n_train, n_test = paper_sizes(np.bincount(groups).tolist())
    order = rng.permutation(len(groups))
    samples = [order[groups[order] == group][: n_train + n_test] for group in range(int(groups.max()) + 1)]
    return Split(
        np.concatenate([sample[:n_train] for sample in samples]),
        np.concatenate([sample[n_train:] for sample in samples]),
    )


def not_in_training(texts: Sequence[Hashable], split: Split) -> NDArray[np.bool_]:
    """Mask of the test captions whose exact text is not in the training set."""
    train_texts = {texts[index] for index in split.train}
    return np.array([texts[index] not in train_texts for index in split.test], dtype=bool)


def leak_safe_folds(texts: Sequence[Hashable], folds: int, seed: int) -> Indices:
    """Assign each caption to a fold. Equal captions share a fold, so no text is in both training and test
    set.

    Folds ignore labels. They have nearly equal sizes, unless one caption fills more than a fold. The order of
    captions only matters for different texts with the same `repr`.
    """
    counts = Counter(texts)
    if len(counts) < folds:
        raise Undefined(f"{folds} folds need as many different captions, and there are {len(counts)}")
    distinct = sorted(counts, key=repr)
    order = np.random.default_rng(seed).permutation(len(distinct))
    filled = np.zeros(folds, dtype=np.int64)
    fold_of: dict[Hashable, int] = {}
    for text_index in order:
        emptiest = int(filled.argmin())
        fold_of[distinct[text_index]] = emptiest
        filled[emptiest] += counts[distinct[text_index]]
    return np.array([fold_of[text] for text in texts], dtype=np.int64)


def common_folds(images: Sequence[str], folds: int, seed: int) -> Indices:
    """Assign each image to a fold by a hash of its name, so that every system is tested on the same folds."""
    digests = (hashlib.blake2b(f"{seed}\x1f{image}".encode(), digest_size=8).digest() for image in images)
    return np.array([int.from_bytes(digest, "little") % folds for digest in digests], dtype=np.int64)


def splits_by_fold(fold: Indices) -> list[Split]:
    """Return one split per fold: test on the fold, train on the others."""
    return [Split(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(int(fold.max()) + 1)]


def without_shared_texts(splits: Sequence[Split], text: NDArray[np.int64]) -> list[Split]:
    """Remove training captions whose text is also in the test set."""
    return [Split(split.train[~np.isin(text[split.train], text[split.test])], split.test) for split in splits]


def balanced_sample(groups: NDArray[np.int64], rng: np.random.Generator) -> Indices:
    """Sorted indices of all captions of the smallest group and of equally many of each other group."""
    order = rng.permutation(len(groups))
    size = int(np.bincount(groups).min())
    samples = [order[groups[order] == group][:size] for group in range(int(groups.max()) + 1)]
    return np.sort(np.concatenate(samples))
