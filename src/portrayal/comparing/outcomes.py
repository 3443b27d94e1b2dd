"""Shares of the same images, one caption each, that an outcome holds for or not: what McNemar's test needs."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from portrayal.results import Measurement, Results

_KEY = ("metric", "attribute", "system", "group")


class Outcomes:
    """For which images each share of one audit holds, out of its evidence."""

    def __init__(self, results: Results, rows: Sequence[Measurement]):
        """`rows` are those that are compared; of the evidence only theirs is read."""
        rows = [m for m in rows if m.unit == "share" and m.n_unit == "image" and m.item is None]
        behind = results.evidence.lazy().filter(pl.col("id").is_in([m.id for m in rows]))
        lists = behind.group_by("id").agg("image_id").collect()
        self._images: dict[str, list[str]] = dict(lists.iter_rows())
        self._known: dict[object, set[str]] = {}
        for m in rows:
            self._known.setdefault(_key(m), set()).update(self._images.get(m.id, ()))

    def of(self, m: Measurement) -> set[str] | None:
        """The images that a share counts; None where it is no share of single captions, or evidence was left out."""
        images = self._images.get(m.id, [])
        if m.id not in self._images and m.value != 0:
            return None
        whole = m.value is not None and m.n is not None and abs(m.value * m.n - len(images)) < 1e-6
        return set(images) if whole and len(set(images)) == len(images) else None

    def all_of(self, m: Measurement) -> set[str]:
        """All images that stand behind a share of the same group: what the group's outcomes add up to."""
        return self._known.get(_key(m), set())


def only_on_one_side(
    first: Outcomes, a: Measurement, second: Outcomes, b: Measurement
) -> tuple[int, int] | None:
    """How many images count in the first only and in the second only; None where images differ or are not known."""
    ours, theirs = first.of(a), second.of(b)
    everything = first.all_of(a)
    if ours is None or theirs is None or not len(everything) == a.n == b.n or everything != second.all_of(b):
        return None
    return len(ours - theirs), len(theirs - ours)


def _key(m: Measurement) -> tuple[object, ...]:
    return (*(getattr(m, name) for name in _KEY), tuple(sorted((n, str(v)) for n, v in m.settings.items())))
