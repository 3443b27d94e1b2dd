"""Which objects captions go with, and whether an object goes with a group more often than chance would have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from portrayal.lexicon import ObjectFinder
from portrayal.metrics.speech import Speech
from portrayal.results import TOO_FEW
from portrayal.stats import permutation_p, permutations


def objects_of(
    seen: pl.DataFrame, speech: Speech, labels: Sequence[str], finder: ObjectFinder | None
) -> sparse.csr_array:
    """Which objects a caption goes with, by its words or by its image's labels: (captions, labels)."""
    place = {label: index for index, label in enumerate(labels)}
    if finder is not None:
        found = [{place[label] for label in finder.labels(caption)} for caption in speech.captions]
    else:
        of_image: dict[str, set[int]] = {}
        for image, label in seen.select("image_id", "label").iter_rows():
            of_image.setdefault(image, set()).add(place[label])
        found = [of_image.get(speech.images[image], set()) for image in speech.image]
    rows = np.repeat(np.arange(len(found)), [len(some) for some in found])
    columns = np.array([label for some in found for label in sorted(some)], dtype=np.int64)
    ones = np.ones(len(columns))
    return sparse.csr_array((ones, (rows, columns)), shape=(len(found), len(labels)))


def dealt_p(
    objects: sparse.csr_array, named: NDArray[np.float64], n: NDArray[np.int64], seed: int, draws: int
) -> list[list[float | None]]:
    """Per group and object, from dealing the images' groups out anew; objects in too few images are not tested."""
    present = (objects > 0).astype(np.float64).T.tocsr()
    tested = np.flatnonzero(n >= TOO_FEW)
    p: list[list[float | None]] = [[None] * len(n) for _ in range(named.shape[1])]
    if not len(tested):
        return p
    rows = present[tested]
    base = named.sum(axis=0) / named.sum()

    def distance(order: NDArray[np.int64]) -> NDArray[np.float64]:
        dealt = rows @ named[order]
        sums = dealt.sum(axis=1, keepdims=True)
        share = np.divide(dealt, sums, out=np.tile(base, (len(dealt), 1)), where=sums > 0)
        return np.asarray(np.abs(share - base).T.reshape(-1))

    observed = distance(np.arange(len(named)))
    found = permutation_p(observed, permutations(distance, len(named), seed, draws)).reshape(
        named.shape[1], -1
    )
    for g in range(named.shape[1]):
        for place, index in enumerate(tested):
            p[g][index] = float(found[g, place])
    return p
