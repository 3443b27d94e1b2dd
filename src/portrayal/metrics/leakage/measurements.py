"""The measurements of leakage for one source, compared with noisy true labels."""

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
from portrayal.metrics.leakage.evidence import MAX_ROWS, NOISY, OUTPUTS, TRUE, LabelEvidence
from portrayal.metrics.leakage.label_noise import Array, add_label_noise
from portrayal.metrics.leakage.labels import SourceLabels
from portrayal.metrics.shared.classifier.aggregation import (
    PERCENT,
    RepeatedEstimate,
    difference,
    relative_difference,
)
from portrayal.metrics.shared.classifier.corpus import LabelSets
from portrayal.metrics.shared.classifier.cross_validation import Protocol
from portrayal.metrics.shared.classifier.source_evaluation import SourceEvaluation
from portrayal.stats import Estimate, Resampler, bootstrap, divide_columns, resampler

NEED_NOISY_TRUTH = ("on-truth", "difference", "predictability")
TERMS = ("on-outputs", "on-truth", "difference", "predictability", "on-labels", "f1")


@dataclass(frozen=True, eq=False)
class LeakageMeasurements:
    """One source, and the builder that collects its rows."""

    builder: ResultBuilder
    system: str
    source_labels: SourceLabels
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    protocol: Protocol
    mistakes: str  # method of the label noise
    n_permutations: int
    seed: int
    n_resamples: int

    def measure(self) -> None:
        reason = self.source_labels.missing_reason() or self._too_small()
        if reason is None:
            try:
                self._measure()
            except Undefined as undefined:
                reason = str(undefined)
        if reason is not None:
            for term in TERMS:
                self._undefined(term, reason)

    def _too_small(self) -> str | None:
        """Reason if a group is too small for each fold to train on it."""
        sizes, folds = self._sizes, self.protocol.folds
        few = [group for group, size in zip(self.groups, sizes, strict=True) if size < folds]
        if not few:
            return None
        counts = ", ".join(f"{sizes[self.groups.index(group)]} of {group}" for group in few)
        return f"{folds} folds need as many images of each group, and there are {counts}"

    @cached_property
    def _sizes(self) -> list[int]:
        sizes: list[int] = np.bincount(self.source_labels.group, minlength=len(self.groups)).tolist()
        return sizes

    def _measure(self) -> None:
        outputs = self._evaluate([self.source_labels.outputs] * len(self.protocol.seeds), self.n_permutations)
        labels = self._evaluate([self.source_labels.truth] * len(self.protocol.seeds))
        for group in self._groups_with_total:
            chance_level = outputs.chance_level(group)
            ideal = (
                None if chance_level is None or chance_level.value is None else chance_level.value / PERCENT
            )
            p = outputs.p(group) if group is None else None
            self._add("on-outputs", outputs.estimate(group), group, {OUTPUTS: outputs}, p=p, ideal=ideal)
        if self.source_labels.f1:
            truth = self._evaluate([self._noisy_truth(repeat) for repeat in range(len(self.protocol.seeds))])
            for group in self._groups_with_total:
                self._add("on-truth", truth.estimate(group), group, {NOISY: truth})
            compared = {OUTPUTS: outputs, NOISY: truth}
            # For one group alone it would reflect the class of images without informative labels.
            paired = difference(
                outputs.caption_scores, truth.caption_scores, None, self.seed, self.n_resamples
            )
            self._add("difference", paired, None, compared, p=paired.p)
            relative = relative_difference(
                outputs.caption_scores, truth.caption_scores, self.seed, self.n_resamples
            ).scaled(PERCENT)
            self._add("predictability", relative, None, compared, p=relative.p)
        else:
            for term in NEED_NOISY_TRUTH:
                self._undefined(term, "no named label is true (F1 is 0), and label noise cannot match that")
        for group in self._groups_with_total:
            self._add("on-labels", labels.estimate(group), group, {TRUE: labels})
        for group in self._groups_with_total:
            self._add_f1(group)

    @property
    def _groups_with_total(self) -> tuple[int | None, ...]:
        """None for the mean over groups, then the index of each group."""
        return (None, *range(len(self.groups)))

    def _noisy_truth(self, repeat: int) -> Array:
        """True labels with noise, for one repeat."""
        rng = np.random.default_rng([self.protocol.seeds[repeat], 7])
        return add_label_noise(self.source_labels.truth, self.source_labels.outputs, self.mistakes, rng)

    def _evaluate(self, shares: Sequence[Array], n_permutations: int = 0) -> SourceEvaluation:
        """Predict the group from labels, given for each repeat."""
        label_sets: dict[int, LabelSets] = {}
        for repeat_shares in shares:
            if id(repeat_shares) not in label_sets:
                label_sets[id(repeat_shares)] = LabelSets.of(
                    self.source_labels.images, self.source_labels.group, self.labels, repeat_shares
                )
        corpora = [[label_sets[id(repeat_shares)]] for repeat_shares in shares]
        predictions = self.protocol.cross_val_predict(corpora)
        return SourceEvaluation(
            self.protocol, corpora, predictions, self.groups, self.seed, self.n_resamples, n_permutations
        )

    @cached_property
    def _evidence_rows(self) -> LabelEvidence:
        return LabelEvidence(self.source_labels, self.labels, self.groups)

    @cached_property
    def _resampler(self) -> Resampler:
        return resampler(self.source_labels.images, self.seed, self.n_resamples)

    def _undefined(self, term: str, reason: str) -> None:
        self.builder.add(term, None, system=self.system, n=len(self.source_labels.images), reason=reason)

    def _add(
        self,
        term: str,
        estimate: RepeatedEstimate,
        group: int | None,
        evaluations: Mapping[str, SourceEvaluation],
        *,
        p: float | None = None,
        ideal: float | None = None,
    ) -> None:
        share = estimate.scaled(1 / PERCENT)
        self._add_row(term, share.estimate, group, self._evidence(group, evaluations, term == "on-outputs"),
                      p=p, ideal=ideal, std_seed=share.std_seed)  # fmt: skip

    def _add_f1(self, group: int | None) -> None:
        indices = self._indices(group)
        outputs, truth = self.source_labels.outputs[indices], self.source_labels.truth[indices]
        counts = np.column_stack([2 * (outputs * truth).sum(axis=1), (outputs + truth).sum(axis=1)])
        images = tuple(self.source_labels.images[index] for index in indices)
        f1 = bootstrap(counts, divide_columns, resampler(images, self.seed, self.n_resamples))[0]
        self._add_row("f1", f1, group, self._evidence(group, {}))

    def _add_row(
        self, term: str, estimate: Estimate, group: int | None, evidence: pl.DataFrame, **details: Any
    ) -> None:
        self.builder.add(
            term,
            estimate,
            system=self.system,
            group=None if group is None else self.groups[group],
            n=len(self._indices(group)),
            support=min(self._sizes) if group is None else self._sizes[group],
            reason=None if estimate.value is not None else "no label is named or true in these images",
            evidence=evidence,
            resampler=self._resampler,
            **details,
        )

    def _indices(self, group: int | None) -> NDArray[np.int64]:
        return np.flatnonzero((self.source_labels.group == group) | (group is None))

    def _evidence(
        self, group: int | None, evaluations: Mapping[str, SourceEvaluation], in_full: bool = False
    ) -> pl.DataFrame:
        """Evidence for some images of a group; for the mean over groups all of them with `in_full`."""
        indices = self._indices(group)
        if not (in_full and group is None) and len(indices) > MAX_ROWS:
            indices = indices[:: -(-len(indices) // MAX_ROWS)]
        return self._evidence_rows.rows(indices, evaluations)
