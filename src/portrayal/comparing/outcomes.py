"""Binary outcomes per image behind shares, as input of McNemar's test."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from portrayal.results import Measurement, Results

_GROUP_FIELDS = ("metric", "attribute", "system", "group")


class Outcomes:
    """The images counted by each share of one audit, from its evidence."""

    def __init__(self, results: Results, rows: Sequence[Measurement]):
        """Read the evidence of the compared `rows` only."""
        rows = [m for m in rows if m.unit == "share" and m.n_unit == "image" and m.item is None]
        evidence = results.evidence.lazy().filter(pl.col("id").is_in([m.id for m in rows]))
        lists = evidence.group_by("id").agg("image_id").collect()
        self._images: dict[str, list[str]] = dict(lists.iter_rows())
        self._group_images: dict[object, set[str]] = {}
        for m in rows:
            self._group_images.setdefault(_key(m), set()).update(self._images.get(m.id, ()))

    def images_of(self, m: Measurement) -> set[str] | None:
        """Return the images that a share counts; None if it has several captions per image or incomplete evidence."""
        images = self._images.get(m.id, [])
        if m.id not in self._images and m.value != 0:
            return None
        complete = m.value is not None and m.n is not None and abs(m.value * m.n - len(images)) < 1e-6
        return set(images) if complete and len(set(images)) == len(images) else None

    def group_images(self, m: Measurement) -> set[str]:
        """Return all images counted by any share of the same group: the union of the group's outcomes."""
        return self._group_images.get(_key(m), set())


def discordant_counts(
    first: Outcomes, a: Measurement, second: Outcomes, b: Measurement
) -> tuple[int, int] | None:
    """Return how many images count in the first only and in the second only; None if images differ or are unknown."""
    first_images, second_images = first.images_of(a), second.images_of(b)
    group_images = first.group_images(a)
    if (
        first_images is None
        or second_images is None
        or not len(group_images) == a.n == b.n
        or group_images != second.group_images(b)
    ):
        return None
    return len(first_images - second_images), len(second_images - first_images)


def _key(m: Measurement) -> tuple[object, ...]:
    return (
        *(getattr(m, name) for name in _GROUP_FIELDS),
        tuple(sorted((n, str(v)) for n, v in m.settings.items())),
    )
