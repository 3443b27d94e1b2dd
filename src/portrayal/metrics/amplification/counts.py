"""Counts of labelled and named objects and groups per image, which amplification is computed from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl
from scipy import sparse

from portrayal.lexicon import ObjectFinder
from portrayal.metrics.amplification.formulas import Array
from portrayal.metrics.shared.caption_mentions import CaptionMentions


@dataclass(frozen=True)
class AssociationCounts:
    """Sparse counts of truth and prediction per image: (images, objects x groups) and similar."""

    truth: sparse.csr_array  # labelled objects by labelled group
    # Like `truth`, weighted by the share of captions that name one group, or unweighted (`images` "all").
    compared: sparse.csr_array
    named_objects: sparse.csr_array  # named objects by labelled group
    named_groups: sparse.csr_array  # labelled objects by named group
    named_both: sparse.csr_array  # named objects by named group
    group: sparse.csr_array  # labelled group of every image
    with_object: sparse.csr_array  # like `group`, only for images with a labelled object
    sets_truth: sparse.csr_array
    sets_compared: sparse.csr_array
    sets_named: sparse.csr_array
    sets_any_group: sparse.csr_array  # like `sets_named`, whichever group is named
    n_groups: int
    n_naming: int  # images with a caption that names exactly one group


def count_associations(
    object_labels: pl.DataFrame,
    mentions: CaptionMentions,
    truth: Sequence[str],
    groups: Sequence[str],
    names: dict[str, str | None],
    labels: Sequence[str],
    finder: ObjectFinder,
    set_minimum: int,
    images: str,
) -> AssociationCounts:
    """Counts of one source; `truth` is the labelled group of each image.

    With `images` "named", the labels that shares of named groups are compared with are weighted by the share of the
    image's captions that name exactly one group. With "all" they have full weight.
    """
    column_of = {label: index for index, label in enumerate(labels)}
    row_of = {image: index for index, image in enumerate(mentions.images)}
    shape = (len(mentions.images), len(labels))
    pairs = {
        (row_of[i], column_of[o])
        for i, o in object_labels.select("image_id", "label").iter_rows()
        if i in row_of and o in column_of
    }
    objects = _indicator(sorted(pairs), shape)
    named_pairs = [
        (c, column_of[label]) for c, text in enumerate(mentions.captions) for label in finder.labels(text)
    ]
    named_objects = _indicator(named_pairs, (len(mentions.captions), len(labels)))
    lexicon_columns = [mentions.groups.index(str(names[group])) for group in groups]
    names_one = (mentions.n_groups == 1)[:, None] & mentions.named[:, lexicon_columns]
    labelled_group = np.array([[group == label for group in groups] for label in truth], dtype=np.float64)
    labelled_group = labelled_group.reshape(len(truth), len(groups))
    named_group = mentions.mean_per_image(names_one.astype(np.float64))
    naming = named_group.sum(axis=1, keepdims=True)
    compared = labelled_group * naming if images == "named" else labelled_group
    sets = _common_sets(objects, set_minimum)
    labelled_sets, named_sets = _set_indicators(objects, sets), _set_indicators(named_objects, sets)
    captions_by_group = names_one.astype(np.float64)
    return AssociationCounts(
        truth=_by_group(objects, labelled_group),
        compared=_by_group(objects, compared),
        named_objects=_by_group(mentions.averaging_matrix @ named_objects, labelled_group),
        named_groups=_by_group(objects, named_group),
        named_both=_captions_by_group(named_objects, captions_by_group, mentions.averaging_matrix),
        group=sparse.csr_array(labelled_group),
        with_object=sparse.csr_array(
            labelled_group * np.asarray(objects.sum(axis=1) > 0, dtype=float).reshape(-1, 1)
        ),
        sets_truth=_by_group(labelled_sets, labelled_group),
        sets_compared=_by_group(labelled_sets, compared),
        sets_named=_captions_by_group(named_sets, captions_by_group, mentions.averaging_matrix),
        sets_any_group=(
            mentions.averaging_matrix @ named_sets.multiply(names_one.any(axis=1)[:, None])
        ).tocsr(),
        n_groups=len(groups),
        n_naming=int(np.count_nonzero(naming)),
    )


def count_objects(
    object_labels: pl.DataFrame, images: Sequence[str], labels: Sequence[str]
) -> tuple[Array, int]:
    """Number of these images with each object, and number of images with any object."""
    present = object_labels.filter(
        pl.col("image_id").is_in(list(images)) & pl.col("label").is_in(list(labels))
    )
    counts = dict(present.unique(["image_id", "label"]).group_by("label").len().iter_rows())
    return np.array([counts.get(label, 0) for label in labels], dtype=np.float64), present[
        "image_id"
    ].n_unique()


def _indicator(pairs: Sequence[tuple[int, int]], shape: tuple[int, int]) -> sparse.csr_array:
    rows, columns = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    return sparse.csr_array((np.ones(len(pairs)), (rows, columns)), shape=shape)


def _common_sets(objects: sparse.csr_array, minimum: int) -> list[tuple[int, ...]]:
    """Sets of one or two objects that occur in enough labelled images."""
    joint = (objects.T @ objects).toarray()
    count = joint.shape[0]
    single = [(o,) for o in range(count) if joint[o, o] >= minimum]
    pairs = [(a, b) for a, b in combinations(range(count), 2) if joint[a, b] >= minimum]
    return [*single, *pairs]


def _set_indicators(objects: sparse.csr_array, sets: Sequence[tuple[int, ...]]) -> sparse.csr_array:
    """Indicator of rows that contain every object of a set: (rows, sets)."""
    columns = objects.tocsc()
    indicators = [columns[:, [members[0]]].multiply(columns[:, [members[-1]]]) for members in sets]
    return sparse.hstack(indicators, format="csr") if indicators else sparse.csr_array((objects.shape[0], 0))


def _by_group(rows: sparse.csr_array, groups: Array) -> sparse.csr_array:
    """Products of (rows, k) and (rows, groups): (rows, k x groups), in blocks of groups."""
    parts = [rows.multiply(groups[:, [g]]).tocsr() for g in range(groups.shape[1])]
    return sparse.hstack(parts, format="csr")


def _captions_by_group(
    objects: sparse.csr_array, groups: Array, averaging: sparse.csr_array
) -> sparse.csr_array:
    return (averaging @ _by_group(objects, groups)).tocsr()
