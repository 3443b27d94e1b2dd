"""The rows of quality for one speaker: all images, each group, and how far groups are apart."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.quality.captions import Objects, Told
from portrayal.metrics.quality.columns import BY_OBJECTS, BY_REFERENCES
from portrayal.metrics.quality.ngrams import Array
from portrayal.metrics.quality.scores import Measured
from portrayal.results import TOO_FEW
from portrayal.stats import (
    Estimate,
    bootstrap,
    clustered_wilson,
    paired_difference,
    permutation_test,
    resampler,
)

GAP = "-gap"
STYLE = ("length", "repeated")
_SHOWN = 5  # references told with a caption


class Rows:
    """One speaker, whose images fall into groups."""

    def __init__(
        self,
        builder: ResultBuilder,
        source: str,
        told: Told,
        measured: Measured,
        labels: Mapping[str, str],
        seed: int,
        n_resamples: int,
        kept: int,
    ):
        self.builder, self.source, self.told, self.measured = builder, source, told, measured
        self.columns, self.kept = measured.columns, kept
        self.images, self.image = told.compared.images, told.compared.image
        group_of = [labels.get(image) for image in self.images]
        self.groups = sorted({group for group in group_of if group is not None})
        self.member = np.array([[group == one for group in group_of] for one in self.groups], dtype=bool)
        self.member = self.member.reshape(len(self.groups), len(self.images))
        self.seed, self.n_resamples = seed, n_resamples
        self.draw = resampler(self.images, seed, n_resamples)

    def write(self, programs: Mapping[str, str | None], view: Objects | None) -> None:
        """`programs` are those in Java that were asked for, each with the reason why it cannot run."""
        for term in (*BY_REFERENCES, *BY_OBJECTS, *STYLE):
            if term in self.estimates:
                self._term(term)
                continue
            reason = _reason(term, self.told, programs, view)
            if reason is not None:
                self.builder.add(term, None, system=self.source, n=0, reason=reason)
        self._vocabulary()
        if len(self.groups) > 1:
            self._gaps()

    @cached_property
    def estimates(self) -> dict[str, list[Estimate]]:
        """Per term: of all images, then of each group. A draw of images is one draw for all of them."""
        if not self.images:
            return {}
        counts = self.columns.counts
        wide = np.hstack([counts, *(counts * here[:, None] for here in self.member)])
        parts = 1 + len(self.groups)

        def statistic(sums: Array) -> Array:
            return np.hstack([self.columns.values(part) for part in np.split(sums, parts, axis=1)])

        found = bootstrap(wide, statistic, self.draw)
        names = list(self.columns.terms)
        return {name: found[place :: len(names)] for place, name in enumerate(names)}

    def _term(self, term: str) -> None:
        used = self.columns.counted[term] > 0
        for place, group in enumerate((None, *self.groups)):
            here = used if group is None else used & self.member[place - 1]
            estimate = self._sound(term, self.estimates[term][place], here)
            whose = f"of '{group}' " if group is not None else ""
            self.builder.add(
                term,
                estimate,
                system=self.source,
                group=group,
                n=int(here.sum()),
                reason=None if estimate.value is not None else f"no image {whose}has what it is counted from",
                evidence=self._behind(term, here),
                in_brief=group is not None,
                resampler=self.draw,
            )

    def _sound(self, term: str, estimate: Estimate, images: NDArray[np.bool_]) -> Estimate:
        """Of a rate the interval is Wilson's: where nothing happened, every draw would say that nothing can."""
        if term not in self.columns.rates or estimate.value is None:
            return estimate
        at = self.columns.rates[term]
        successes, trials = self.columns.counts[images, at : at + 2].T
        low, high = clustered_wilson(successes, trials)
        return replace(estimate, low=low, high=high)

    def _gaps(self) -> None:
        """The largest difference between two groups with enough images, for every term."""
        chance = self._chances()
        for place, (term, found) in enumerate(self.estimates.items()):
            enough = np.flatnonzero(self._enough[:, place]).tolist()
            here = (self.columns.counted[term] > 0) & self.member[enough].any(axis=0)
            if len(enough) < 2:
                reason = f"fewer than two groups have {TOO_FEW} images to compare"
                self.builder.add(term + GAP, None, system=self.source, n=int(here.sum()), reason=reason)
                continue
            ranked = sorted((found[number + 1] for number in enough), key=lambda one: one.value or 0.0)
            low, high = ranked[0], ranked[-1]
            apart = paired_difference(low.value or 0.0, high.value or 0.0, low.replicates, high.replicates)
            self.builder.add(
                term + GAP,
                Estimate(apart.value, apart.low, apart.high, apart.se, high.replicates - low.replicates),
                system=self.source,
                n=int(here.sum()),
                p=float(chance[place]),
                evidence=self._behind(term, here),
                in_brief=True,
                resampler=self.draw,
            )

    @cached_property
    def _enough(self) -> NDArray[np.bool_]:
        """(groups, terms): whether a group has a value that rests on enough images."""
        used = np.array([counted > 0 for counted in self.columns.counted.values()])
        sizes = self.member.astype(np.int64) @ used.T.astype(np.int64)
        known = np.array([[one.value is not None for one in some[1:]] for some in self.estimates.values()]).T
        return np.asarray((sizes >= TOO_FEW) & known, dtype=bool)

    def _chances(self) -> Array:
        """Per term, how often groups that are dealt to the labelled images anew are as far apart."""
        labelled = np.flatnonzero(self.member.any(axis=0))
        counts = self.columns.counts[labelled]
        member = self.member[:, labelled].astype(np.float64)

        def apart(order: NDArray[np.int64]) -> Array:
            values = np.where(self._enough, self.columns.values(member[:, order] @ counts), np.nan)
            high = np.where(np.isnan(values), -np.inf, values).max(axis=0)
            low = np.where(np.isnan(values), np.inf, values).min(axis=0)
            return np.where(np.isfinite(high), high - low, np.nan)

        return permutation_test(apart, len(labelled), self.seed, self.n_resamples)

    def _vocabulary(self) -> None:
        """How many different words there are. It grows with the captions, so draws would not tell its noise."""
        everyone = np.ones(len(self.images), dtype=bool)
        words = self.told.compared.captions
        for group, here in ((None, everyone), *zip(self.groups, self.member, strict=True)):
            chosen = np.flatnonzero(here[self.image]) if len(self.image) else ()
            different = {word for place in chosen for word in words[place]}
            self.builder.add(
                "vocabulary",
                float(len(different)),
                system=self.source,
                group=group,
                n=int(here.sum()),
                evidence=self._behind("length", here),
                in_brief=True,
            )

    def _behind(self, term: str, images: NDArray[np.bool_]) -> pl.DataFrame:
        """Captions from the lowest value to the highest, so that both ends are there."""
        values = self.measured.per_caption[term]
        use = np.flatnonzero(images[self.image] & np.isfinite(values))
        use = use[np.argsort(values[use], kind="stable")]
        if self.kept and len(use) > self.kept:
            use = use[np.linspace(0, len(use) - 1, self.kept).astype(np.int64)]
        rows = [self._evidence(place) for place in use.tolist()]
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")

    def _evidence(self, place: int) -> tuple[str, str, str]:
        detail = self.measured.details[place] | {"references": self._written[self.image[place]]}
        return (
            self.images[self.image[place]],
            self.told.text[place],
            json.dumps(detail, ensure_ascii=False),
        )

    @cached_property
    def _written(self) -> list[list[str]]:
        """The first references of each image."""
        made: list[list[str]] = [[] for _ in self.images]
        for place, caption in zip(
            self.told.compared.reference_image.tolist(), self.told.written, strict=True
        ):
            if len(made[place]) < _SHOWN:
                made[place].append(caption)
        return made


def _reason(term: str, told: Told, programs: Mapping[str, str | None], view: Objects | None) -> str | None:
    """Why a term has no value; None where it was not asked for."""
    if term in ("meteor", "spice") and term not in programs:
        return None
    if programs.get(term):
        return programs[term]
    if term in BY_OBJECTS and view is None:
        return "the study has no labels of objects"
    if term in BY_REFERENCES:
        if term.startswith("cider") and len(told.written) > (told.compared.own is not None):
            return "how rare words are takes two images with references or more"
        others = told.compared.own is not None
        return "no image has captions of two people" if others else "no caption has a reference"
    return "there is no caption"
