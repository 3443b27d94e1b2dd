"""The rows of CounterBias about concepts: how far each leans, and how far they lean on average."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from portrayal.metrics.counterbias.means import Means, Whole
from portrayal.metrics.counterbias.terms import ALL, BOTH, PICTURE, TEXT
from portrayal.results import TOO_FEW, TOO_FEW_REASON
from portrayal.stats import Estimate, benjamini_hochberg, bootstrap_p

if TYPE_CHECKING:
    from portrayal.metrics.counterbias.measurements import Rows


class ConceptRows:
    """The rows of one kind of concepts."""

    def __init__(self, rows: Rows, kind: str, concepts: list[str], where: Whole, concept: Whole) -> None:
        self.rows, self.kind, self.concepts, self.where, self.concept = rows, kind, concepts, where, concept

    def bias(self, term: str, means: Means) -> None:
        """How far concepts lean, over all templates and in each, with the floor, the excess and the pooled means."""
        templates = [template.name for template in self.rows.questions.templates]
        sizes, floors = means.sizes(), means.floors(self.rows.seed)
        for number, name in enumerate((ALL, *templates)):
            self.rows.settle(kind=self.kind, template=name)
            self._size(term, sizes[number].at_least(0), means, evidence=number == 0 and term == BOTH)
        self.rows.settle(kind=self.kind, template=ALL)
        leans = means.leans()
        self._concepts(term, leans, means, tested=True)
        for number, group in enumerate(self.rows.questions.groups):
            self._concepts(term, means.leans(group=number), means, group=number, name=group)
        for number, name in enumerate(templates if len(templates) > 1 else ()):
            self.rows.settle(kind=self.kind, template=name)
            self._concepts(term, means.leans(number), means)
        self.rows.settle(kind=self.kind, template=ALL, of=term)
        self._size("floor", Estimate.of(_known(floors[0])), means)
        self._size(
            "excess", sizes[0].moved(-float(floors[0])) if sizes[0].value is not None else sizes[0], means
        )
        self._size("pooled", means.sizes(pooled=True)[0].at_least(0), means)
        self._concepts("pooled", means.leans(pooled=True), means)
        self._agreement([leans], means)

    def agreement_in_both(self, picture: Means, text: Means) -> None:
        self.rows.settle(kind=self.kind, template=ALL, of=f"{PICTURE} and {TEXT}")
        self._agreement([picture.leans(), text.leans()], picture)

    def observed(self, means: Means) -> None:
        """The naive difference: what pictures of one group have more, for whatever reason."""
        self.rows.settle(kind=self.kind, template=ALL)
        self._size("observed", means.gap_size().at_least(0), means)
        self._concepts("observed", means.gaps(), means)

    def placebo(self, term: str, real: Means, sham: Means) -> None:
        self.rows.settle(kind=self.kind, template=ALL, of=term)
        self._size("placebo", sham.sizes()[0].at_least(0), sham)
        self._concepts("placebo", sham.leans(), sham)
        # Where the placebo does more than the attack nothing is left, and not less than nothing.
        self._size("corrected", real.sizes_beyond(sham)[0].at_least(0), real)
        self._concepts("corrected", real.leans_beyond(sham), real, tested=True)

    def _size(self, term: str, estimate: Estimate, means: Means, evidence: bool = False) -> None:
        """The mean over concepts."""
        known, images = means.defined, means.pictures
        reason = None
        if estimate.value is None:
            reason = "no concept has a picture of each group on which it is defined"
        elif not known.all():
            lacking = [name for name, fine in zip(self.concepts, known.tolist(), strict=True) if not fine]
            reason = f"over {int(known.sum())} of {len(known)} concepts: without {', '.join(lacking[:5])}" + (
                f" and {len(lacking) - 5} more" if len(lacking) > 5 else ""
            )
            if images < TOO_FEW:
                reason = f"{TOO_FEW_REASON}: {images} images, fewer than {TOO_FEW}; {reason}"
        self.rows.builder.add(
            term, estimate, system=self.rows.model, n=images, reason=reason,
            evidence=self.rows.evidence(self.where) if evidence else None, in_brief=True,
            resampler=self.rows.draw,
        )  # fmt: skip

    def _concepts(
        self,
        term: str,
        estimates: Sequence[Estimate],
        means: Means,
        tested: bool = False,
        group: int | None = None,
        name: str | None = None,
    ) -> None:
        chances = [
            bootstrap_p(one.replicates) if tested and one.value is not None else None for one in estimates
        ]
        for number, (concept, estimate) in enumerate(zip(self.concepts, estimates, strict=True)):
            counted = means.images[number]
            images = int(counted.sum() if group is None else counted[group])
            lacking = [
                one
                for one, many in zip(self.rows.questions.groups, counted.tolist(), strict=True)
                if not many
            ]
            reason = None
            if estimate.value is None:
                chances[number] = None
                reason = f"no picture on which it is defined is of {' or '.join(lacking) or name}"
            self.rows.builder.add(
                term, estimate, system=self.rows.model, group=name, item=concept, n=images, reason=reason,
                p=chances[number], q=None,
                support=images if group is not None else 2 * int(counted.min()),
                evidence=self._behind(number, group) if term == BOTH and self._over_all else None,
            )  # fmt: skip
        if tested:
            self._correct(len(estimates))

    @property
    def _over_all(self) -> bool:
        return self.rows.builder.settings.get("template") == ALL

    def _correct(self, many: int) -> None:
        """False discovery rates of the rows just added; those of too few images have no p, and count for nothing."""
        added = self.rows.builder.measurements[-many:]
        rates = benjamini_hochberg([one.p for one in added])
        self.rows.builder.measurements[-many:] = [
            replace(one, q=q) for one, q in zip(added, rates, strict=True)
        ]

    def _behind(self, concept: int, group: int | None) -> pl.DataFrame:
        some = self.concept == concept
        if group is not None:
            some &= self.rows.group[self.where] == group
        return self.rows.evidence(self.where[some])

    def _agreement(self, leans: Sequence[Sequence[Estimate]], means: Means) -> None:
        """Of concepts that raters tie to one of the groups, how many lean to it, in all of these ways."""
        groups = self.rows.questions.groups
        agreed = []
        for number, concept in enumerate(self.concepts):
            tied = self.rows.stereotypes.get(concept)
            found = [way[number].value for way in leans]
            if tied in groups and all(value is not None for value in found):
                side = 1 if tied == groups[0] else -1
                agreed.append(all(value * side > 0 for value in found if value is not None))
        self.rows.builder.add(
            "agreement", Estimate.of(100 * float(np.mean(agreed)) if agreed else None), system=self.rows.model,
            n=len(agreed), n_unit="concept", support=means.pictures,
            reason=None if agreed else "raters tie none of the concepts to one of the groups",
        )  # fmt: skip


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
