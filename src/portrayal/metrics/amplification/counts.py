"""Objects and groups of each image, as labelled and as named: what amplification is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from scipy import sparse

from portrayal.lexicon import ObjectFinder
from portrayal.metrics.amplification.formulas import Array
from portrayal.metrics.shared.mentions import CaptionMentions


@dataclass(frozen=True)
class TieCounts:
    """Truth and prediction of each image, as sparse counts of (images, objects x groups) and the like."""

    truth: sparse.csr_array  # labelled objects by labelled group
    compared: (
        sparse.csr_array
    )  # the same over the images whose captions say which group they name, or over all
    named_objects: sparse.csr_array  # named objects by labelled group
    named_groups: sparse.csr_array  # labelled objects by named group
    named_both: sparse.csr_array  # named objects by named group
    people: sparse.csr_array  # labelled group of every image
    with_object: sparse.csr_array  # the same, of images with a labelled object
    sets_truth: sparse.csr_array
    sets_compared: sparse.csr_array
    sets_named: sparse.csr_array
    sets_any: sparse.csr_array  # the same whichever group is named
    groups: int
    naming: int  # images with a caption that names exactly one group


def count_ties(
    seen: pl.DataFrame,
    mentions: CaptionMentions,
    truth: Sequence[str],
    groups: Sequence[str],
    names: dict[str, str | None],
    labels: Sequence[str],
    finder: ObjectFinder,
    set_minimum: int,
    images: str,
) -> TieCounts:
    """Count what one speaker says of its images; `truth` is the labelled group of each.

    With `images` "named" the labels that shares of named groups are compared with count as often as the image's
    captions name exactly one group: in full, in part or not at all. With "all" they count in full.
    """
    place = {label: index for index, label in enumerate(labels)}
    row = {image: index for index, image in enumerate(mentions.images)}
    shape = (len(mentions.images), len(labels))
    pairs = {
        (row[i], place[o]) for i, o in seen.select("image_id", "label").iter_rows() if i in row and o in place
    }
    objects = _indicator(sorted(pairs), shape)
    found = [(c, place[label]) for c, text in enumerate(mentions.captions) for label in finder.labels(text)]
    said = _indicator(found, (len(mentions.captions), len(labels)))
    listed = [mentions.groups.index(str(names[group])) for group in groups]
    one = (mentions.how_many == 1)[:, None] & mentions.named[:, listed]
    shown = np.array([[group == label for group in groups] for label in truth], dtype=np.float64)
    shown = shown.reshape(len(truth), len(groups))
    named = mentions.share_per_image(one.astype(np.float64))
    naming = named.sum(axis=1, keepdims=True)
    compared = shown * naming if images == "named" else shown
    sets = _common_sets(objects, set_minimum)
    objects_in_sets, said_in_sets = _members(objects, sets), _members(said, sets)
    captions_by_group = one.astype(np.float64)
    return TieCounts(
        truth=_by_group(objects, shown),
        compared=_by_group(objects, compared),
        named_objects=_by_group(mentions.to_image @ said, shown),
        named_groups=_by_group(objects, named),
        named_both=_by_group_of_captions(said, captions_by_group, mentions.to_image),
        people=sparse.csr_array(shown),
        with_object=sparse.csr_array(shown * np.asarray(objects.sum(axis=1) > 0, dtype=float).reshape(-1, 1)),
        sets_truth=_by_group(objects_in_sets, shown),
        sets_compared=_by_group(objects_in_sets, compared),
        sets_named=_by_group_of_captions(said_in_sets, captions_by_group, mentions.to_image),
        sets_any=(mentions.to_image @ said_in_sets.multiply(one.any(axis=1)[:, None])).tocsr(),
        groups=len(groups),
        naming=int(np.count_nonzero(naming)),
    )


def object_counts(seen: pl.DataFrame, images: Sequence[str], labels: Sequence[str]) -> tuple[Array, int]:
    """How many of these images hold each object, and how many hold any."""
    held = seen.filter(pl.col("image_id").is_in(list(images)) & pl.col("label").is_in(list(labels)))
    counts = dict(held.unique(["image_id", "label"]).group_by("label").len().iter_rows())
    return np.array([counts.get(label, 0) for label in labels], dtype=np.float64), held["image_id"].n_unique()


def _indicator(pairs: Sequence[tuple[int, int]], shape: tuple[int, int]) -> sparse.csr_array:
    rows, columns = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    return sparse.csr_array((np.ones(len(pairs)), (rows, columns)), shape=shape)


def _common_sets(objects: sparse.csr_array, minimum: int) -> list[tuple[int, ...]]:
    """Sets of one or two objects that enough labelled images hold."""
    together = (objects.T @ objects).toarray()
    count = together.shape[0]
    single = [(o,) for o in range(count) if together[o, o] >= minimum]
    pairs = [(a, b) for a, b in combinations(range(count), 2) if together[a, b] >= minimum]
    return [*single, *pairs]


def _members(objects: sparse.csr_array, sets: Sequence[tuple[int, ...]]) -> sparse.csr_array:
    """Which rows hold every object of a set: (rows, sets)."""
    columns = objects.tocsc()
    made = [columns[:, [some[0]]].multiply(columns[:, [some[-1]]]) for some in sets]
    return sparse.hstack(made, format="csr") if made else sparse.csr_array((objects.shape[0], 0))


def _by_group(rows: sparse.csr_array, groups: Array) -> sparse.csr_array:
    """(rows, k) and (rows, groups) to (rows, k x groups), group by group."""
    parts = [rows.multiply(groups[:, [g]]).tocsr() for g in range(groups.shape[1])]
    return sparse.hstack(parts, format="csr")


def _by_group_of_captions(
    said: sparse.csr_array, groups: Array, to_image: sparse.csr_array
) -> sparse.csr_array:
    return (to_image @ _by_group(said, groups)).tocsr()
