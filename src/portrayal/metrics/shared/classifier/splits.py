"""Who a guesser learns from and who it is tested on: the published split, and folds that cannot leak.

A split that is drawn several times is drawn from a number each time; every drawing gives one or more parts to be
learnt and tested. All of them balance the groups, by weights or by leaving some of the larger groups out.
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
_TESTED = 0.1  # the share of the smaller group that the published split tests
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Split:
    """Places of captions, in the order in which a classifier meets them."""

    train: Places
    test: Places


def paper_split(groups: Sequence[Hashable], seed: int) -> Split:
    """The split of the published code: all of the smallest group and as many of the others, one in ten tested.

    Captions are drawn without replacement in the order larger-train, smaller-train, larger-test, smaller-test, by
    Python's own generator, so that a seed gives the published images. It follows the order of the captions, which
    differs between the published files: two systems are tested on different images.
    """
    sizes = Counter(groups).most_common()
    pools = [[place for place, group in enumerate(groups) if group == name] for name, _ in sizes]
    learnt, tested = paper_sizes([size for _, size in sizes])
    chance = random.Random(seed)

    def draw(count: int) -> list[int]:
        return [pool.pop(chance.randrange(len(pool))) for pool in pools for _ in range(count)]

    train, test = draw(learnt), draw(tested)
    chance.shuffle(train)
    chance.shuffle(test)
    return Split(np.array(train, dtype=np.int64), np.array(test, dtype=np.int64))


def paper_sizes(sizes: Sequence[int]) -> tuple[int, int]:
    """How many captions of each group the published split learns from, and how many it tests."""
    tested = round(_TESTED * min(sizes))
    if not tested:
        raise Undefined(
            f"the published split tests a tenth of the smallest group, which has {min(sizes)} captions"
        )
    return min(sizes) - tested, tested


def like_paper_split(groups: NDArray[np.int64], rng: np.random.Generator) -> Split:
    """A split of the same kind from another generator, a hundred times as fast: for chance labels."""
    learnt, tested = paper_sizes(np.bincount(groups).tolist())
    order = rng.permutation(len(groups))
    drawn = [order[groups[order] == group][: learnt + tested] for group in range(int(groups.max()) + 1)]
    return Split(
        np.concatenate([part[:learnt] for part in drawn]), np.concatenate([part[learnt:] for part in drawn])
    )


def unseen(texts: Sequence[Hashable], split: Split) -> NDArray[np.bool_]:
    """Which of the tested captions do not stand in the training part too, word for word."""
    learnt = {texts[place] for place in split.train}
    return np.array([texts[place] not in learnt for place in split.test], dtype=bool)


def leak_safe_folds(texts: Sequence[Hashable], folds: int, seed: int) -> Places:
    """A fold for each caption: equal captions share one, so that none is both learnt and tested.

    Folds do not look at labels, and are of nearly equal size unless one caption makes up more than a fold. The order of
    captions changes nothing but ties between texts that look alike when written out.
    """
    times = Counter(texts)
    if len(times) < folds:
        raise Undefined(f"{folds} folds need as many different captions, and there are {len(times)}")
    distinct = sorted(times, key=repr)
    order = np.random.default_rng(seed).permutation(len(distinct))
    filled = np.zeros(folds, dtype=np.int64)
    fold_of: dict[Hashable, int] = {}
    for place in order:
        emptiest = int(filled.argmin())
        fold_of[distinct[place]] = emptiest
        filled[emptiest] += times[distinct[place]]
    return np.array([fold_of[text] for text in texts], dtype=np.int64)


def common_folds(images: Sequence[str], folds: int, seed: int) -> Places:
    """A fold for each image that depends on nothing but its name, so that every system is tested on the same ones."""
    bits = (hashlib.blake2b(f"{seed}\x1f{image}".encode(), digest_size=8).digest() for image in images)
    return np.array([int.from_bytes(one, "little") % folds for one in bits], dtype=np.int64)


def by_fold(fold: Places) -> list[Split]:
    """Each fold tested by a guesser that learns from the others."""
    return [
        Split(np.flatnonzero(fold != one), np.flatnonzero(fold == one)) for one in range(int(fold.max()) + 1)
    ]


def without_repeats(splits: Sequence[Split], text: NDArray[np.int64]) -> list[Split]:
    """The same splits, each learning from no caption whose text it tests."""
    return [Split(one.train[~np.isin(text[one.train], text[one.test])], one.test) for one in splits]


def balanced_sample(groups: NDArray[np.int64], rng: np.random.Generator) -> Places:
    """All of the smallest group and as many of each other one, in their order."""
    order = rng.permutation(len(groups))
    least = int(np.bincount(groups).min())
    drawn = [order[groups[order] == group][:least] for group in range(int(groups.max()) + 1)]
    return np.sort(np.concatenate(drawn))
