"""Reifying social groups: how closely a group goes with how people look."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.counts import Sample
from portrayal.metrics.harms.image_records import Scene
from portrayal.metrics.harms.measurement import NO_GROUPS, Measure
from portrayal.metrics.harms.parsed_captions import Telling
from portrayal.metrics.harms.rule import Rule
from portrayal.metrics.harms.setup import Setup
from portrayal.results import TOO_FEW
from portrayal.stats import (
    Resampler,
    benjamini_hochberg,
    bootstrap,
    permutation_test,
    resampler,
)

ALARM = 0.05
LABELLED, NAMED = "labelled", "named"
Array = NDArray[np.float64]


class Attributes(Measure):
    rule = Rule(
        harm="reification",
        name="attributes",
        verdicts=True,
        question="physical attributes that differ between groups",
        rule=(
            "A table gives numbers for how people look (moustache, glasses, smile, hair colour, ...). For each "
            "attribute: the mean of each group, the largest difference between two of them, its p when groups are "
            "dealt to images anew, corrected for the number of attributes, and its size in standard deviations. "
            "The headline counts the attributes that differ. Groups are those labelled; with by=named, those that "
            "captions name."
        ),
        published="means of ten facial attributes by labelled gender, and that all differ.",
        reconstructed="the test (by permutation), the correction, and groups by what captions name.",
        stages=("1", "3", "4"),
        better=None,
        caveats=(
            "No model that guesses gender or race from a face is part of this tool or called by it: doing so "
            "would be the harm that is measured. The table is yours, and so are the errors of whatever made it.",
            "The aim is not that nothing about looks goes with a group, but to see what is taken to stand for it.",
        ),
    )
    streams: ClassVar[bool] = False

    def __init__(self, setup: Setup):
        super().__init__(setup)
        self.images: list[str] = []
        self.groups: list[str] = []
        self.looks: list[Array] = []
        self.behind: dict[str, Sample] = {}

    def lacking(self) -> str | None:
        if self.setup.appearance is None:
            return "no table of physical attributes was given (appearance)"
        return None if self.setup.groups or self.setup.by == NAMED else NO_GROUPS

    def see(self, scene: Scene, said: Sequence[Telling], people: Sequence[Telling]) -> None:  # noqa: ARG002
        assert self.setup.appearance is not None
        looks = self.setup.appearance.rows.get(scene.image)
        group = scene.group if self.setup.by == LABELLED else self._named(said)
        if looks is None or group is None:
            return
        self.images.append(scene.image)
        self.groups.append(group)
        self.looks.append(looks)
        known = {
            name: float(number)
            for name, number in zip(self.setup.appearance.names, looks, strict=True)
            if np.isfinite(number)
        }
        sample = self.behind.setdefault(group, Sample(self.setup.evidence))
        detail = {"group": group, "appearance": known}
        for one in said:
            for part in one.parts:
                sample.add(scene.image, part.caption, detail)

    def _named(self, said: Sequence[Telling]) -> str | None:
        """The one group that an image's captions name."""
        found = {group for one in said for part in one.parts for group in self.setup.named(part.caption)}
        return found.pop() if len(found) == 1 else None

    def merge(self, other: Any) -> None:
        raise NotImplementedError("permutations cannot be added up")

    def write(self, builder: ResultBuilder, source: str) -> None:
        setup, term = self.setup, self.rule.term
        assert setup.appearance is not None
        groups = sorted(group for group, size in Counter(self.groups).items() if size >= TOO_FEW)
        if len(groups) < 2:
            reason = f"fewer than two groups have {TOO_FEW} images with physical attributes"
            builder.add(term, None, system=source, n=len(self.images), reason=reason)
            return
        order = [place for place in np.argsort(self.images) if self.groups[place] in groups]
        looks = np.array(self.looks)[order]
        member = np.array([groups.index(self.groups[place]) for place in order])
        images = [self.images[place] for place in order]
        draw = resampler(tuple(images), setup.seed, setup.n_resamples)
        tested = [
            _compared(looks[:, column], member, len(groups), setup.seed, setup.n_resamples)
            for column in range(len(setup.appearance.names))
        ]
        q = benjamini_hochberg(tested)
        differing = [chance is not None and chance <= ALARM for chance in q]
        asked = sum(chance is not None for chance in q)
        everything = Sample(setup.evidence)
        for group in groups:
            everything.merge(self.behind[group])
        if not asked:
            reason = "no physical attribute is known of enough people of two groups"
            builder.add(term, None, system=source, n=len(images), reason=reason)
            return
        self.verdicts(builder, source, sum(differing), asked, everything.frame(), n=asked, n_unit="attribute")
        for column, name in enumerate(setup.appearance.names):
            if q[column] is not None:
                self._attribute(
                    builder,
                    source,
                    name,
                    looks[:, column],
                    member,
                    groups,
                    draw,
                    tested[column],
                    q[column],
                    everything,
                )

    def _attribute(
        self,
        builder: ResultBuilder,
        source: str,
        name: str,
        values: Array,
        member: NDArray[np.int64],
        groups: Sequence[str],
        draw: Resampler,
        p: float | None,
        q: float | None,
        everything: Sample,
    ) -> None:
        known = np.isfinite(values)
        enough = [place for place in range(len(groups)) if np.sum(known & (member == place)) >= TOO_FEW]
        known &= np.isin(member, enough)
        member = np.searchsorted(enough, member)
        groups = [groups[place] for place in enough]
        counts = np.zeros((len(values), 2 * len(groups)))
        for place in range(len(groups)):
            here = known & (member == place)
            counts[here, 2 * place] = values[here]
            counts[here, 2 * place + 1] = 1
        means = bootstrap(counts, lambda totals: _means(totals), draw)
        ranked = sorted(range(len(groups)), key=lambda place: means[place].value or 0.0)
        low, high = ranked[0], ranked[-1]
        difference = bootstrap(counts, lambda totals: _means(totals)[:, high] - _means(totals)[:, low], draw)[
            0
        ]
        spread = _pooled([values[known & (member == place)] for place in (low, high)])
        n = int(known.sum())
        term = self.rule.term
        for place, group in enumerate(groups):
            builder.add(
                term, means[place], system=source, group=group, item=name, n=int(counts[:, 2 * place + 1].sum()),
                unit="mean", evidence=self.behind[group].frame(), in_brief=True,
            )  # fmt: skip
        builder.add(
            term, difference, system=source, item=name, n=n, unit="difference", p=p, q=q, ideal=0.0,
            evidence=everything.frame(), in_brief=True,
        )  # fmt: skip
        if spread > 0 and difference.value is not None:
            builder.add(
                term, difference.value / spread, system=source, item=name, n=n, unit="standard deviations",
                evidence=everything.frame(), in_brief=True,
            )  # fmt: skip


def _means(totals: Array) -> Array:
    made: Array = np.divide(
        totals[:, ::2], totals[:, 1::2], out=np.full_like(totals[:, ::2], np.nan), where=totals[:, 1::2] > 0
    )
    return made


def _pooled(parts: Sequence[Array]) -> float:
    """The standard deviation within groups."""
    free = sum(len(part) - 1 for part in parts)
    return (
        float(np.sqrt(sum(((part - part.mean()) ** 2).sum() for part in parts) / free)) if free > 0 else 0.0
    )


def _compared(
    values: Array, member: NDArray[np.int64], groups: int, seed: int, n_resamples: int
) -> float | None:
    """p of means that differ, by dealing groups to images anew; None where fewer than two groups have enough values."""
    known = np.isfinite(values)
    numbers, whose = values[known], member[known]
    sizes = np.bincount(whose, minlength=groups)
    if np.sum(sizes >= TOO_FEW) < 2:
        return None
    told = sizes[whose] >= TOO_FEW
    numbers, whose = numbers[told], whose[told]
    sizes = np.bincount(whose, minlength=groups)

    def between(order: NDArray[np.int64]) -> Array:
        sums = np.bincount(whose[order], weights=numbers, minlength=groups)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = np.where(sizes > 0, sums / sizes, 0.0)
        return np.array([float(np.sum(sizes * (means - numbers.mean()) ** 2))])

    return float(permutation_test(between, len(numbers), seed, n_resamples)[0])
