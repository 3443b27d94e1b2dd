"""Who a guesser learns from and who it is tested on: the published split, and folds that cannot leak."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import Undefined

PAPER_SEEDS = (0, 12, 100, 200, 300, 400, 456, 500, 789, 1234)
_TESTED = 0.1  # the share of the smaller group that the published split tests


@dataclass(frozen=True)
class Split:
    """Places of captions, in the order in which a classifier meets them."""

    train: NDArray[np.int64]
    test: NDArray[np.int64]


def paper_split(groups: Sequence[str], seed: int) -> Split:
    """The split of the published code: all of the smaller group and as many of the larger, one in ten tested.

    Captions are drawn without replacement in the order larger-train, smaller-train, larger-test, smaller-test, by
    Python's own generator, so that a seed gives the published images. It follows the order of the captions, which
    differs between the published files: two systems are tested on different images.
    """
    sizes = Counter(groups).most_common()
    if len(sizes) != 2:
        raise Undefined(f"The published split is of two groups. Got {len(sizes)} instead.")
    larger, smaller = ([place for place, group in enumerate(groups) if group == name] for name, _ in sizes)
    tested = round(_TESTED * len(smaller))
    learnt = len(smaller) - tested
    chance = random.Random(seed)

    def draw(pool: list[int], count: int) -> list[int]:
        return [pool.pop(chance.randrange(len(pool))) for _ in range(count)]

    train = draw(larger, learnt) + draw(smaller, learnt)
    test = draw(larger, tested) + draw(smaller, tested)
    chance.shuffle(train)
    chance.shuffle(test)
    return Split(np.array(train, dtype=np.int64), np.array(test, dtype=np.int64))


def unseen(texts: Sequence[Hashable], split: Split) -> NDArray[np.bool_]:
    """Which of the tested captions do not stand in the training part too, word for word."""
    learnt = {texts[place] for place in split.train}
    return np.array([texts[place] not in learnt for place in split.test], dtype=bool)


def leak_safe_folds(texts: Sequence[Hashable], folds: int, seed: int, repeat: int = 0) -> NDArray[np.int64]:
    """A fold for each caption: equal captions share one, so that none is both learnt and tested.

    Folds do not look at labels, and are of nearly equal size unless one caption makes up more than a fold. The order of
    captions changes nothing but ties between texts that look alike when written out.
    """
    times = Counter(texts)
    if len(times) < folds:
        raise Undefined(f"{folds} folds need as many different captions. There are {len(times)}.")
    distinct = sorted(times, key=repr)
    order = np.random.default_rng([seed, repeat]).permutation(len(distinct))
    filled = np.zeros(folds, dtype=np.int64)
    fold_of: dict[Hashable, int] = {}
    for place in order:
        emptiest = int(filled.argmin())
        fold_of[distinct[place]] = emptiest
        filled[emptiest] += times[distinct[place]]
    return np.array([fold_of[text] for text in texts], dtype=np.int64)
