"""The rows of leakage: what one system's labels give away, beside true labels that are as wrong as they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.errors import Undefined
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.leakage.evidence import DEGRADED, FEW, SAID, TRUE, Told
from portrayal.metrics.leakage.label_noise import Array, degrade
from portrayal.metrics.leakage.labels import Named
from portrayal.metrics.shared.classifier.aggregation import PERCENT, Spread, difference, relative
from portrayal.metrics.shared.classifier.corpus import LabelSets
from portrayal.metrics.shared.classifier.evaluation import Voice
from portrayal.metrics.shared.classifier.protocol import Protocol
from portrayal.stats import Estimate, Resampler, bootstrap, divide_columns, resampler

BESIDE_TRUTH = ("on-truth", "difference", "predictability")
TERMS = ("on-outputs", "on-truth", "difference", "predictability", "on-labels", "f1")


@dataclass(frozen=True, eq=False)
class Case:
    """One system, and where its rows go."""

    builder: ResultBuilder
    system: str
    named: Named
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    protocol: Protocol
    how: str  # true labels are made as wrong
    null: int
    seed: int
    n_resamples: int

    def measure(self) -> None:
        reason = self.named.lacking() or self._too_small()
        if reason is None:
            try:
                self._measure()
            except Undefined as undefined:
                reason = str(undefined)
        if reason is not None:
            for term in TERMS:
                self._undefined(term, reason)

    def _too_small(self) -> str | None:
        """Every fold should learn from every group."""
        sizes, folds = self._sizes, self.protocol.folds
        few = [group for group, size in zip(self.groups, sizes, strict=True) if size < folds]
        if not few:
            return None
        counts = ", ".join(f"{sizes[self.groups.index(group)]} of {group}" for group in few)
        return f"{folds} folds need as many images of each group, and there are {counts}"

    @cached_property
    def _sizes(self) -> list[int]:
        found: list[int] = np.bincount(self.named.group, minlength=len(self.groups)).tolist()
        return found

    def _measure(self) -> None:
        outputs = self._voice([self.named.said] * len(self.protocol.seeds), self.null)
        labels = self._voice([self.named.truth] * len(self.protocol.seeds))
        for group in self._each:
            null = outputs.chance(group)
            ideal = None if null is None or null.value is None else null.value / PERCENT
            p = outputs.p(group) if group is None else None
            self._add("on-outputs", outputs.spread(group), group, {SAID: outputs}, p=p, ideal=ideal)
        if self.named.f1:
            truth = self._voice([self._degraded(number) for number in range(len(self.protocol.seeds))])
            for group in self._each:
                self._add("on-truth", truth.spread(group), group, {DEGRADED: truth})
            both = {SAID: outputs, DEGRADED: truth}
            # Of one group alone it would tell to which side images fall that tell nothing.
            found = difference(outputs.tally, truth.tally, None, self.seed, self.n_resamples)
            self._add("difference", found, None, both, p=found.p)
            share = relative(outputs.tally, truth.tally, self.seed, self.n_resamples).scaled(PERCENT)
            self._add("predictability", share, None, both, p=share.p)
        else:
            for term in BESIDE_TRUTH:
                self._undefined(term, "no named label is true (F1 is 0), and no truth is as wrong as that")
        for group in self._each:
            self._add("on-labels", labels.spread(group), group, {TRUE: labels})
        for group in self._each:
            self._add_f1(group)

    @property
    def _each(self) -> tuple[int | None, ...]:
        """All people, then each group."""
        return (None, *range(len(self.groups)))

    def _degraded(self, number: int) -> Array:
        """True labels of one repeat."""
        rng = np.random.default_rng([self.protocol.seeds[number], 7])
        return degrade(self.named.truth, self.named.said, self.how, rng)

    def _voice(self, shares: Sequence[Array], dealings: int = 0) -> Voice:
        """The attacker's guesses from labels, those of each repeat."""
        made: dict[int, LabelSets] = {}
        for some in shares:
            if id(some) not in made:
                made[id(some)] = LabelSets.of(self.named.images, self.named.group, self.labels, some)
        readings = [[made[id(some)]] for some in shares]
        guesses = self.protocol.guess(readings)
        return Voice(self.protocol, readings, guesses, self.groups, self.seed, self.n_resamples, dealings)

    @cached_property
    def _told(self) -> Told:
        return Told(self.named, self.labels, self.groups)

    @cached_property
    def _resampler(self) -> Resampler:
        return resampler(self.named.images, self.seed, self.n_resamples)

    def _undefined(self, term: str, reason: str) -> None:
        self.builder.add(term, None, system=self.system, n=len(self.named.images), reason=reason)

    def _add(
        self,
        term: str,
        spread: Spread,
        group: int | None,
        voices: Mapping[str, Voice],
        *,
        p: float | None = None,
        ideal: float | None = None,
    ) -> None:
        share = spread.scaled(1 / PERCENT)
        self._add_row(term, share.estimate, group, self._evidence(group, voices, term == "on-outputs"),
                      p=p, ideal=ideal, std_seed=share.std_seed)  # fmt: skip

    def _add_f1(self, group: int | None) -> None:
        mine = self._mine(group)
        said, truth = self.named.said[mine], self.named.truth[mine]
        counts = np.column_stack([2 * (said * truth).sum(axis=1), (said + truth).sum(axis=1)])
        images = tuple(self.named.images[place] for place in mine)
        found = bootstrap(counts, divide_columns, resampler(images, self.seed, self.n_resamples))[0]
        self._add_row("f1", found, group, self._evidence(group, {}))

    def _add_row(
        self, term: str, estimate: Estimate, group: int | None, evidence: pl.DataFrame, **more: Any
    ) -> None:
        self.builder.add(
            term,
            estimate,
            system=self.system,
            group=None if group is None else self.groups[group],
            n=len(self._mine(group)),
            support=min(self._sizes) if group is None else self._sizes[group],
            reason=None if estimate.value is not None else "no label is named or true in these images",
            evidence=evidence,
            resampler=self._resampler,
            **more,
        )

    def _mine(self, group: int | None) -> NDArray[np.int64]:
        return np.flatnonzero((self.named.group == group) | (group is None))

    def _evidence(
        self, group: int | None, voices: Mapping[str, Voice], in_full: bool = False
    ) -> pl.DataFrame:
        """Some images of a group; of all people every one where that is asked for."""
        mine = self._mine(group)
        if not (in_full and group is None) and len(mine) > FEW:
            mine = mine[:: -(-len(mine) // FEW)]
        return self._told.rows(mine, voices)
