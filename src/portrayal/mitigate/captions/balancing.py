"""A balanced set of images: groups are equally frequent, also among the images of each frequent object."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import Undefined
from portrayal.results import TOO_FEW

_PASSES = 5
# Gains that differ by less are equal: they are sums in another order.
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Balance:
    """Images with their groups and objects, and the subset that is kept."""

    groups: Mapping[str, str]
    objects: Mapping[str, frozenset[str]]
    # Objects in enough images to balance groups among them.
    frequent: tuple[str, ...]
    kept: tuple[str, ...]

    def images(self, kept: bool) -> tuple[str, ...]:
        return self.kept if kept else tuple(sorted(self.groups))

    def counts(self, label: str | None, kept: bool) -> dict[str, int]:
        """Return the number of images of each group, among those with the object `label` if it is given."""
        group_counts = dict.fromkeys(sorted(set(self.groups.values())), 0)
        for image in self.images(kept):
            if label is None or label in self.objects.get(image, ()):
                group_counts[self.groups[image]] += 1
        return group_counts

    def gap(self, label: str | None, kept: bool) -> float | None:
        """Return the share of the most frequent group minus that of the least frequent; None without images."""
        counts = self.counts(label, kept).values()
        return (max(counts) - min(counts)) / sum(counts) if sum(counts) else None


def balance(groups: Mapping[str, str], objects: Mapping[str, Iterable[str]], seed: int = 0) -> Balance:
    """Choose images so that groups are equally frequent, overall and as far as possible for each frequent object.

    An object is frequent if 30 images or more show it. The target of every group, overall and for each frequent object,
    is the number of images of the smallest group; no group gets more. Images of a group are selected greedily: each
    time the image that reduces most the remaining counts, as shares of their targets. If a group cannot reach a
    target, the target is lowered to the number that it reached and the selection is repeated, a few times. Ties are
    broken by a hash of the image's name and the seed. Without objects this is a random sample of equal size.

    >>> shown = {"1": ["ski"], "2": [], "3": ["ski"], "4": []}
    >>> balance({"1": "a", "2": "a", "3": "b", "4": "b"}, shown).kept
    ('1', '2', '3', '4')
    """
    names = sorted(set(groups.values()))
    if len(names) < 2:
        raise Undefined(f"Images are balanced among groups, and there is {len(names)} group only.")
    shown = {image: frozenset(objects.get(image, ())) for image in sorted(groups)}
    object_counts: dict[str, int] = {}
    for labels in shown.values():
        for label in labels:
            object_counts[label] = object_counts.get(label, 0) + 1
    frequent = tuple(sorted(label for label, n in object_counts.items() if n >= TOO_FEW))
    column = {label: index for index, label in enumerate(frequent, 1)}
    rows = {}
    for group in names:
        group_images = _random_order([image for image in shown if groups[image] == group], seed)
        table = np.zeros((len(group_images), len(frequent) + 1))
        # The first column counts all images.
        table[:, 0] = 1
        for row, image in enumerate(group_images):
            table[row, [column[label] for label in shown[image] if label in column]] = 1
        rows[group] = (group_images, table)
    target = np.min([table.sum(axis=0) for _, table in rows.values()], axis=0)
    for _ in range(_PASSES):
        selected = {group: _select_rows(table, target) for group, (_, table) in rows.items()}
        reached = [rows[group][1][group_rows].sum(axis=0) for group, group_rows in selected.items()]
        if all((counts == target).all() for counts in reached):
            break
        target = np.min(reached, axis=0)
    chosen = {group: [rows[group][0][row] for row in group_rows] for group, group_rows in selected.items()}
    fewest = min(len(images) for images in chosen.values())
    kept = sorted(image for images in chosen.values() for image in images[:fewest])
    return Balance(groups, shown, frequent, tuple(kept))


def random_subset(balanced_set: Balance, seed: int = 0) -> Balance:
    """Return a random sample with as many images of each group: it shows the effect of a smaller set alone."""
    kept: list[str] = []
    for group, count in balanced_set.counts(None, kept=True).items():
        group_images = [image for image in balanced_set.groups if balanced_set.groups[image] == group]
        kept += _random_order(group_images, seed, "drawn")[:count]
    return Balance(balanced_set.groups, balanced_set.objects, balanced_set.frequent, tuple(sorted(kept)))


def _random_order(images: Iterable[str], seed: int, purpose: str = "balance") -> list[str]:
    """Return images in a random order that does not depend on their input order."""
    return sorted(
        images, key=lambda image: hashlib.blake2b(f"{seed}\x1f{purpose}\x1f{image}".encode()).digest()
    )


def _select_rows(table: NDArray[np.float64], target: NDArray[np.float64]) -> list[int]:
    """Return the rows in the order of selection. Images with the same objects are one pattern, taken in input order."""
    patterns, inverse = np.unique(table, axis=0, return_inverse=True)
    members: list[list[int]] = [[] for _ in patterns]
    for row, pattern in reversed(list(enumerate(inverse.reshape(-1)))):
        members[pattern].append(row)
    first = np.array([rows[-1] for rows in members])
    remaining = target.copy()
    weights = 1 / np.maximum(target, 1)
    # Selecting a row reduces the squared distance remaining^2 by 2 remaining - 1 in each of its columns.
    gains = (patterns * weights) @ (2 * remaining - 1)
    gains[(patterns > remaining).any(axis=1)] = -np.inf
    selected: list[int] = []
    while (best := gains.max(initial=-np.inf)) > -np.inf:
        tied = np.flatnonzero(gains >= best - _TOLERANCE)
        chosen = int(tied[first[tied].argmin()])
        selected.append(members[chosen].pop())
        shown = np.flatnonzero(patterns[chosen])
        remaining[shown] -= 1
        gains -= 2 * (patterns[:, shown] @ weights[shown])
        full = shown[remaining[shown] == 0]
        gains[(patterns[:, full] > 0).any(axis=1)] = -np.inf
        if members[chosen]:
            first[chosen] = members[chosen][-1]
        else:
            gains[chosen] = -np.inf
    return selected
