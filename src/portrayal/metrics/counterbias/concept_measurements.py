"""The measurements of CounterBias for concepts: the bias of each, and its mean absolute value over concepts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.means import IntArray, Means
from portrayal.metrics.counterbias.terms import ALL, BOTH, IMAGE, TEXT
from portrayal.results import TOO_FEW, TOO_FEW_REASON
from portrayal.stats import Estimate, benjamini_hochberg, bootstrap_p

if TYPE_CHECKING:
    from portrayal.metrics.counterbias.measurements import CounterbiasMeasurements


class ConceptMeasurements:
    """Adds the measurements of one kind of concepts."""

    def __init__(
        self,
        measurements: CounterbiasMeasurements,
        kind: str,
        concepts: list[str],
        rows: IntArray,
        concept_index: IntArray,
    ) -> None:
        self.measurements, self.kind, self.concepts = measurements, kind, concepts
        self.rows, self.concept_index = rows, concept_index

    def add_bias(self, term: str, means: Means) -> None:
        """Add the bias of concepts, over all templates and in each, with noise floor, excess and pooled means."""
        prompts = self.measurements.prompts
        templates = [template.name for template in prompts.templates]
        mean_absolute, floors = means.mean_absolute(), means.noise_floors(self.measurements.seed)
        for number, name in enumerate((ALL, *templates)):
            with_evidence = number == 0 and term == BOTH
            self._add_mean(
                self._builder(template=name), term, mean_absolute[number].at_least(0), means, with_evidence
            )
        over_all = self._builder(template=ALL)
        biases = means.concept_biases()
        self._add_concepts(over_all, term, biases, means, tested=True)
        for number, group in enumerate(prompts.groups):
            self._add_concepts(
                over_all, term, means.concept_biases(group=number), means, group=number, name=group
            )
        for number, name in enumerate(templates if len(templates) > 1 else ()):
            self._add_concepts(self._builder(template=name), term, means.concept_biases(number), means)
        of_term = self._builder(template=ALL, of=term)
        self._add_mean(of_term, "floor", Estimate.of(_finite_or_none(floors[0])), means)
        excess = mean_absolute[0]
        if excess.value is not None:
            excess = excess.shifted(-float(floors[0]))
        self._add_mean(of_term, "excess", excess, means)
        self._add_mean(of_term, "pooled", means.mean_absolute(pooled=True)[0].at_least(0), means)
        self._add_concepts(of_term, "pooled", means.concept_biases(pooled=True), means)
        self._add_agreement(of_term, [biases], means)

    def add_joint_agreement(self, image: Means, text: Means) -> None:
        """Add the share of concepts whose image bias and text bias both agree with raters."""
        builder = self._builder(template=ALL, of=f"{IMAGE} and {TEXT}")
        self._add_agreement(builder, [image.concept_biases(), text.concept_biases()], image)

    def add_observed(self, means: Means) -> None:
        """Add the observed difference between the images of the groups, whatever its cause."""
        builder = self._builder(template=ALL)
        self._add_mean(builder, "observed", means.mean_absolute_difference().at_least(0), means)
        self._add_concepts(builder, "observed", means.group_differences(), means)

    def add_placebo(self, term: str, attacked: Means, placebo: Means) -> None:
        """Add the bias of the placebo attack, and the bias that is left after it is subtracted."""
        builder = self._builder(template=ALL, of=term)
        self._add_mean(builder, "placebo", placebo.mean_absolute()[0].at_least(0), placebo)
        self._add_concepts(builder, "placebo", placebo.concept_biases(), placebo)
        # Where the placebo has the larger effect, nothing is left, and not less than nothing.
        corrected = attacked.mean_absolute_excess_over(placebo)[0].at_least(0)
        self._add_mean(builder, "corrected", corrected, attacked)
        biases = attacked.concept_biases_beyond(placebo)
        self._add_concepts(builder, "corrected", biases, attacked, tested=True)

    def _builder(self, **settings: object) -> ResultBuilder:
        return self.measurements.with_settings(kind=self.kind, **settings)

    def _add_mean(
        self, builder: ResultBuilder, term: str, estimate: Estimate, means: Means, with_evidence: bool = False
    ) -> None:
        """Add a mean over concepts."""
        is_defined, n_images = means.defined, means.n_images
        reason = None
        if estimate.value is None:
            reason = "no concept has an image of each group on which it is defined"
        elif not is_defined.all():
            undefined = [
                name for name, known in zip(self.concepts, is_defined.tolist(), strict=True) if not known
            ]
            more = f" and {len(undefined) - 5} more" if len(undefined) > 5 else ""
            reason = (
                f"over {int(is_defined.sum())} of {len(is_defined)} concepts: without "
                f"{', '.join(undefined[:5])}{more}"
            )
            if n_images < TOO_FEW:
                reason = f"{TOO_FEW_REASON}: {n_images} images, fewer than {TOO_FEW}; {reason}"
        builder.add(
            term, estimate, system=self.measurements.model, n=n_images, reason=reason,
            evidence=self.measurements.evidence(self.rows) if with_evidence else None, in_brief=True,
            resampler=self.measurements.resampler,
        )  # fmt: skip

    def _add_concepts(
        self,
        builder: ResultBuilder,
        term: str,
        estimates: Sequence[Estimate],
        means: Means,
        tested: bool = False,
        group: int | None = None,
        name: str | None = None,
    ) -> None:
        p_values = [
            bootstrap_p(estimate.replicates) if tested and estimate.value is not None else None
            for estimate in estimates
        ]
        with_evidence = term == BOTH and builder.settings.get("template") == ALL
        for number, (concept, estimate) in enumerate(zip(self.concepts, estimates, strict=True)):
            counts = means.n_images_by_concept[number]
            n_images = int(counts.sum() if group is None else counts[group])
            lacking = [
                label
                for label, count in zip(self.measurements.prompts.groups, counts.tolist(), strict=True)
                if not count
            ]
            reason = None
            if estimate.value is None:
                p_values[number] = None
                reason = f"no image on which it is defined is of {' or '.join(lacking) or name}"
            builder.add(
                term, estimate, system=self.measurements.model, group=name, item=concept, n=n_images,
                reason=reason, p=p_values[number], q=None,
                support=n_images if group is not None else 2 * int(counts.min()),
                evidence=self._concept_evidence(number, group) if with_evidence else None,
            )  # fmt: skip
        if tested:
            self._add_q_values(builder, len(estimates))

    def _add_q_values(self, builder: ResultBuilder, n: int) -> None:
        """Add false discovery rates to the last n rows; those of too few images have no p and do not count."""
        added = builder.measurements[-n:]
        q_values = benjamini_hochberg([measurement.p for measurement in added])
        builder.measurements[-n:] = [
            replace(measurement, q=q) for measurement, q in zip(added, q_values, strict=True)
        ]

    def _concept_evidence(self, concept: int, group: int | None) -> pl.DataFrame:
        selected = self.concept_index == concept
        if group is not None:
            selected &= self.measurements.group_index[self.rows] == group
        return self.measurements.evidence(self.rows[selected])

    def _add_agreement(
        self, builder: ResultBuilder, biases: Sequence[Sequence[Estimate]], means: Means
    ) -> None:
        """Add the share of concepts that raters associate with a group and whose biases all lean to it."""
        groups = self.measurements.prompts.groups
        agreed = []
        for number, concept in enumerate(self.concepts):
            stereotype = self.measurements.stereotypes.get(concept)
            values = [estimates[number].value for estimates in biases]
            if stereotype in groups and all(value is not None for value in values):
                sign = 1 if stereotype == groups[0] else -1
                agreed.append(all(value * sign > 0 for value in values if value is not None))
        builder.add(
            "agreement", Estimate.of(100 * float(np.mean(agreed)) if agreed else None),
            system=self.measurements.model, n=len(agreed), n_unit="concept", support=means.n_images,
            reason=None if agreed else "raters associate none of the concepts with one of the groups",
        )  # fmt: skip


def _finite_or_none(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
