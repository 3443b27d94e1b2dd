"""Rows of all images, of each group and of the gap between groups, from counts per caption."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.results import TOO_FEW
from portrayal.stats import RESAMPLES, Estimate, GroupedCounts, clustered_wilson, resampler
from portrayal.study import Study

GAP = "-gap"
Array = NDArray[np.float64]
# From summed counts by name to a value, for every resample at once.
Statistic = Callable[[Mapping[str, Array]], Array]


@dataclass(frozen=True)
class Share:
    """A term that is one count over another, with Wilson's interval."""

    successes: str
    trials: str

    def __call__(self, sums: Mapping[str, Array]) -> Array:
        trials = sums[self.trials]
        share = np.full(len(trials), np.nan)
        np.divide(sums[self.successes], trials, out=share, where=trials > 0)
        return share


def measure_by_group(
    builder: ResultBuilder,
    study: Study,
    captions: pl.DataFrame,
    terms: Mapping[str, Share | Statistic],
    *,
    source: str,
    seed: int = 0,
    bootstrap: int = RESAMPLES,
) -> None:
    """Add the rows of one source: each term of all images and of each group, and their gaps.

    Groups are those of the builder's attribute, which may combine several (`gender+age`). Images are resampled, and the
    captions of an image count together. A term `NAME-gap` of the card is the largest difference between two groups that
    have enough images, with p by permuting the groups.

    Parameters
    ----------
    builder
        The rows, with the card and the attribute.
    study
        The study, with the labels of images.
    captions
        A row per caption: `image_id`, `caption`, and a column for each count.
    terms
        Terms of the card: a `Share` of counts, or a function of the summed counts by name.
    source
        The system, or `human`.
    seed, bootstrap
        Seed and number of resamples.
    """
    if captions.height:
        _Rows(builder, study, captions, dict(terms), source, seed, bootstrap).add()
        return
    for term in terms:
        builder.add(term, None, system=source, n=0, reason=f"'{source}' has no captions")


@dataclass(frozen=True)
class _Rows:
    builder: ResultBuilder
    study: Study
    captions: pl.DataFrame
    terms: dict[str, Share | Statistic]
    source: str
    seed: int
    n_resamples: int

    def add(self) -> None:
        for index, (term, value) in enumerate(self.terms.items()):
            for position, group in enumerate((None, *self.grouped.groups)):
                self._add_row(term, index, group, self.grouped.estimates[index][position], value)
            if len(self.grouped.groups) > 1 and any(t.name == term + GAP for t in self.builder.card.terms):
                self._add_gap(term, index)

    @cached_property
    def images(self) -> pl.DataFrame:
        """Counts per image, sorted by name."""
        counts = [name for name in self.captions.columns if name not in ("image_id", "caption", "detail")]
        sums = self.captions.group_by("image_id").agg(pl.col(name).cast(pl.Float64).sum() for name in counts)
        return sums.sort("image_id")

    @cached_property
    def grouped(self) -> GroupedCounts:
        names = self.images.columns[1:]
        attribute = self.builder.attribute
        has_labels = attribute is not None and self.study.has_attribute(attribute)
        labels = dict(self.study.labels(attribute).iter_rows()) if has_labels and attribute else {}

        def statistic(sums: Array) -> Array:
            by_name = {name: sums[:, column] for column, name in enumerate(names)}
            # A resample may hold no image of a group: 0 / 0 is undefined there, and no error.
            with np.errstate(divide="ignore", invalid="ignore"):
                return np.column_stack([value(by_name) for value in self.terms.values()])

        measured = [
            self.images[value.trials].to_numpy() > 0
            if isinstance(value, Share)
            else np.ones(self.images.height, dtype=bool)
            for value in self.terms.values()
        ]
        images = tuple(self.images["image_id"])
        return GroupedCounts(
            counts=self.images.select(names).to_numpy(),
            measured=np.array(measured),
            statistic=statistic,
            resampler=resampler(images, self.seed, self.n_resamples),
            group_by_cluster=[labels.get(image) for image in images],
            min_size=TOO_FEW,
        )

    def _add_row(
        self, term: str, index: int, group: str | None, estimate: Estimate, value: Share | Statistic
    ) -> None:
        members = self.grouped.members(group)
        whose = "" if group is None else f" of the group '{group}'"
        self.builder.add(
            term,
            self._with_wilson(estimate, value, members),
            system=self.source,
            group=group,
            n=self.grouped.size(index, group),
            reason=None if estimate.value is not None else f"no image{whose} has what it is counted from",
            evidence=self._evidence(value, members),
            in_brief=group is not None,
            resampler=self.grouped.resampler,
        )

    def _add_gap(self, term: str, index: int) -> None:
        gap = self.grouped.gap(index)
        self.builder.add(
            term + GAP,
            None if gap is None else gap.estimate,
            system=self.source,
            n=int(self.grouped.compared(index).sum()),
            p=None if gap is None else gap.p,
            reason=None if gap else f"fewer than two groups have {TOO_FEW} images to compare",
            resampler=self.grouped.resampler,
        )

    def _with_wilson(
        self, estimate: Estimate, value: Share | Statistic, members: NDArray[np.bool_]
    ) -> Estimate:
        """Return a share with Wilson's interval: without successes, resamples would have no spread."""
        if estimate.value is None or not isinstance(value, Share):
            return estimate
        counts = self.images.select(value.successes, value.trials).to_numpy()[members]
        low, high = clustered_wilson(counts[:, 0], counts[:, 1])
        return replace(estimate, low=low, high=high)

    def _evidence(self, value: Share | Statistic, members: NDArray[np.bool_]) -> pl.DataFrame:
        """Return the captions behind a row; of a share, those that are counted as successes."""
        rows = self.captions.filter(
            pl.col("image_id").is_in(self.images["image_id"].filter(pl.Series(members)).implode())
        )
        if isinstance(value, Share):
            rows = rows.filter(pl.col(value.successes) > 0)
        detail = pl.col("detail") if "detail" in rows.columns else pl.lit("")
        return rows.select("image_id", "caption", detail.alias("detail"))
