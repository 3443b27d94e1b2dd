"""A balanced set of images: every group as often as any other, also beside each frequent object."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import Undefined
from portrayal.results import TOO_FEW

_PASSES = 5
_TIED = 1e-9  # gains that differ by less are equal: they are sums in another order


@dataclass(frozen=True)
class Balance:
    """Images with their groups and the objects they show, of which some are kept."""

    groups: Mapping[str, str]
    objects: Mapping[str, frozenset[str]]
    frequent: tuple[str, ...]  # objects that enough images show to ask who is shown beside them
    kept: tuple[str, ...]

    def images(self, kept: bool) -> tuple[str, ...]:
        return self.kept if kept else tuple(sorted(self.groups))

    def counts(self, label: str | None, kept: bool) -> dict[str, int]:
        """Images of each group, of those that show the object where one is named."""
        found = dict.fromkeys(sorted(set(self.groups.values())), 0)
        for image in self.images(kept):
            if label is None or label in self.objects.get(image, ()):
                found[self.groups[image]] += 1
        return found

    def apart(self, label: str | None, kept: bool) -> float | None:
        """The share of the commonest group less that of the rarest; None where no image is left."""
        counts = self.counts(label, kept).values()
        return (max(counts) - min(counts)) / sum(counts) if sum(counts) else None


def balance(groups: Mapping[str, str], objects: Mapping[str, Iterable[str]], seed: int = 0) -> Balance:
    """Choose images so that groups are equally frequent, overall and as far as possible beside each frequent object.

    An object is frequent when 30 images or more show it. Every group is to have as many images, overall and with each
    frequent object, as the group that has the fewest, and never more. Images of a group are taken one at a time, each
    time one that shows most of what is still lacking (each lack as a share of its aim). Where a group cannot reach an
    aim, the aim is lowered to what it reached and images are taken anew, a few times. Which of equally good images
    comes first depends on its name and the seed. Without objects this is a random draw of equally many.

    >>> shown = {"1": ["ski"], "2": [], "3": ["ski"], "4": []}
    >>> balance({"1": "a", "2": "a", "3": "b", "4": "b"}, shown).kept
    ('1', '2', '3', '4')
    """
    names = sorted(set(groups.values()))
    if len(names) < 2:
        raise Undefined(f"Images are balanced among groups, and there is {len(names)} group only.")
    shown = {image: frozenset(objects.get(image, ())) for image in sorted(groups)}
    often: dict[str, int] = {}
    for labels in shown.values():
        for label in labels:
            often[label] = often.get(label, 0) + 1
    frequent = tuple(sorted(label for label, n in often.items() if n >= TOO_FEW))
    column = {label: index for index, label in enumerate(frequent, 1)}
    rows = {}
    for group in names:
        mine = _in_order([image for image in shown if groups[image] == group], seed)
        table = np.zeros((len(mine), len(frequent) + 1))
        table[:, 0] = 1  # all images
        for row, image in enumerate(mine):
            table[row, [column[label] for label in shown[image] if label in column]] = 1
        rows[group] = (mine, table)
    aim = np.min([table.sum(axis=0) for _, table in rows.values()], axis=0)
    for _ in range(_PASSES):
        taken = {group: _taken(table, aim) for group, (_, table) in rows.items()}
        reached = [rows[group][1][found].sum(axis=0) for group, found in taken.items()]
        if all((one == aim).all() for one in reached):
            break
        aim = np.min(reached, axis=0)
    chosen = {group: [rows[group][0][row] for row in found] for group, found in taken.items()}
    fewest = min(len(images) for images in chosen.values())
    kept = sorted(image for images in chosen.values() for image in images[:fewest])
    return Balance(groups, shown, frequent, tuple(kept))


def drawn(balanced: Balance, seed: int = 0) -> Balance:
    """As many images of each group at random, whatever they show: what a smaller set alone does to a number."""
    kept: list[str] = []
    for group, wanted in balanced.counts(None, kept=True).items():
        mine = [image for image in balanced.groups if balanced.groups[image] == group]
        kept += _in_order(mine, seed, "drawn")[:wanted]
    return Balance(balanced.groups, balanced.objects, balanced.frequent, tuple(sorted(kept)))


def _in_order(images: Iterable[str], seed: int, what: str = "balance") -> list[str]:
    """By chance, and the same for every order in which they come."""
    return sorted(images, key=lambda image: hashlib.blake2b(f"{seed}\x1f{what}\x1f{image}".encode()).digest())


def _taken(table: NDArray[np.float64], aim: NDArray[np.float64]) -> list[int]:
    """Rows in the order in which they are taken. Images that show the same are one pattern: the first of it is next."""
    patterns, inverse = np.unique(table, axis=0, return_inverse=True)
    members: list[list[int]] = [[] for _ in patterns]
    for row, pattern in reversed(list(enumerate(inverse.reshape(-1)))):
        members[pattern].append(row)
    first = np.array([rows[-1] for rows in members])
    lacking = aim.copy()
    weights = 1 / np.maximum(aim, 1)
    # Taking a row shortens a squared distance lacking^2 by 2 lacking - 1 in each of its columns.
    gains = (patterns * weights) @ (2 * lacking - 1)
    gains[(patterns > lacking).any(axis=1)] = -np.inf
    taken: list[int] = []
    while (best := gains.max(initial=-np.inf)) > -np.inf:
        tied = np.flatnonzero(gains >= best - _TIED)
        chosen = int(tied[first[tied].argmin()])
        taken.append(members[chosen].pop())
        shown = np.flatnonzero(patterns[chosen])
        lacking[shown] -= 1
        gains -= 2 * (patterns[:, shown] @ weights[shown])
        full = shown[lacking[shown] == 0]
        gains[(patterns[:, full] > 0).any(axis=1)] = -np.inf
        if members[chosen]:
            first[chosen] = members[chosen][-1]
        else:
            gains[chosen] = -np.inf
    return taken
