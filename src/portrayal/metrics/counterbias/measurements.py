"""The measurements of CounterBias for one model, one attack and one pair of groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.counterfactual.formulas import (
    COUNTERFACTUAL,
    FACTUAL,
    MIN_DROP,
    OTHER_GROUP,
    OWN_GROUP,
    PLACEBO,
    Bias,
    counterfactual_bias,
    group_prob_drop,
    placebo_bias,
)
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import ModelOutputs, Prompts
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.concept_measurements import ConceptMeasurements
from portrayal.metrics.counterbias.means import Array, IntArray, Means
from portrayal.metrics.counterbias.pairing import scene_names
from portrayal.metrics.counterbias.terms import BIASES, BOTH, IMAGE, TEXT
from portrayal.stats import (
    bootstrap,
    divide_columns,
    rate,
    resampler,
)

SUCCESS = "attack-success"
_EVIDENCE_SCHEMA = dict.fromkeys(("image_id", "caption", "detail"), pl.String())


class CounterbiasMeasurements:
    """Adds all measurements of one model and one attack to a result builder."""

    def __init__(
        self,
        builder: ResultBuilder,
        model: str,
        instances: Sequence[Instance],
        outputs: ModelOutputs,
        prompts: Prompts,
        stereotypes: Mapping[str, str],
        seed: int,
        n_resamples: int,
    ) -> None:
        self.builder, self.model, self.instances, self.outputs = builder, model, instances, outputs
        self.prompts, self.stereotypes, self.seed = prompts, stereotypes, seed
        scenes = scene_names(instances)
        names = tuple(sorted(set(scenes)))
        index_of = {name: number for number, name in enumerate(names)}
        self.image_index: IntArray = np.array([index_of[name] for name in scenes], dtype=np.int64)
        self.group_index: IntArray = np.array(
            [prompts.groups.index(instance.group) for instance in instances], dtype=np.int64
        )
        self.signs: Array = np.where(self.group_index == 0, 1.0, -1.0)
        self.resampler = resampler(names, seed, n_resamples)
        self.has_placebo = outputs.concept_probs.shape[2] > PLACEBO

    def write(self) -> None:
        for kind in self.prompts.concepts:
            is_kind = np.array([instance.kind == kind for instance in self.instances], dtype=bool)
            if is_kind.any():
                self._add_kind(kind, is_kind)
        self._add_attack()

    @cached_property
    def _biases(self) -> dict[str, Array]:
        """(instances, templates), in percent toward the first group."""
        return _percent_biases(
            counterfactual_bias(self.outputs.concept_probs, self.outputs.group_probs).toward_first_group(
                self.signs
            )
        )

    @cached_property
    def _placebos(self) -> dict[str, Array]:
        return _percent_biases(
            placebo_bias(self.outputs.concept_probs, self.outputs.group_probs).toward_first_group(self.signs)
        )

    def _add_kind(self, kind: str, is_kind: NDArray[np.bool_]) -> None:
        concepts = list(self.prompts.concepts[kind])
        index_of = {concept: number for number, concept in enumerate(concepts)}
        rows = np.flatnonzero(is_kind)
        concept_index = np.array(
            [index_of[self.instances[row].concept] for row in rows.tolist()], dtype=np.int64
        )

        def means(values: Array) -> Means:
            return Means(
                values[rows],
                self.image_index[rows],
                concept_index,
                self.group_index[rows],
                len(concepts),
                self.resampler,
            )

        measurements = ConceptMeasurements(self, kind, concepts, rows, concept_index)
        for term in BIASES:
            measurements.add_bias(term, means(self._biases[term]))
        measurements.add_joint_agreement(means(self._biases[IMAGE]), means(self._biases[TEXT]))
        measurements.add_observed(means(100 * self.outputs.concept_probs[:, :, FACTUAL, OWN_GROUP]))
        if self.has_placebo:
            for term in (BOTH, IMAGE):
                measurements.add_placebo(term, means(self._biases[term]), means(self._placebos[term]))

    def with_settings(self, **settings: object) -> ResultBuilder:
        """Return a builder that adds to the same rows, with further settings."""
        return replace(self.builder, settings={**self.builder.settings, **settings})

    def _add_attack(self) -> None:
        """Add whether the attack changed the images, by how much, and what else it changed: each image once."""
        once = np.unique(
            np.array([f"{instance.image}\x1f{instance.group}" for instance in self.instances]),
            return_index=True,
        )[1]
        outputs, image_index, group_index = self.outputs, self.image_index[once], self.group_index[once]
        controls = outputs.control_probs[once]
        drift = 0.5 * np.abs(controls[:, COUNTERFACTUAL] - controls[:, FACTUAL]).sum(axis=1)
        columns = {
            SUCCESS: 1.0
            * (outputs.other_group_share[once, COUNTERFACTUAL] >= self.builder.settings["stop_at"]),
            "p-before": 100 * outputs.group_probs[once, FACTUAL],
            "p-after": 100 * outputs.group_probs[once, COUNTERFACTUAL],
            "drift": 100 * drift,
            "moved": 255 * outputs.pixel_change[once, COUNTERFACTUAL],
        }
        for term, values in columns.items():
            for number, name in ((None, None), *enumerate(self.prompts.groups)):
                selected = np.isfinite(values) & (True if number is None else group_index == number)
                self._add_attack_mean(term, values[selected], image_index[selected], name)
        failed = ~(group_prob_drop(outputs.group_probs) >= MIN_DROP)
        for number, name in ((None, None), *enumerate(self.prompts.groups)):
            selected = np.ones(len(failed), dtype=bool) if number is None else self.group_index == number
            self.builder.add(
                "undefined", float((failed & selected).sum()), system=self.model, group=name,
                n=int(selected.sum()), n_unit="instance",
                evidence=self.evidence(np.flatnonzero(failed & selected)),
            )  # fmt: skip

    def _add_attack_mean(self, term: str, values: Array, image_index: IntArray, group: str | None) -> None:
        if not len(values):
            self.builder.add(
                term,
                None,
                system=self.model,
                group=group,
                n=0,
                reason="no image of the group has this number",
            )
            return
        totals = np.zeros((len(self.resampler.names), 2))
        np.add.at(totals, image_index, np.column_stack([values, np.ones(len(values))]))
        if term == SUCCESS:  # a rate: the bootstrap has no spread where all succeed
            estimate = rate(totals[:, 0], totals[:, 1], self.resampler).scaled(100)
        else:
            estimate = bootstrap(totals, divide_columns, self.resampler)[0]
        self.builder.add(
            term, estimate, system=self.model, group=group, n=len(values), resampler=self.resampler
        )

    def evidence(self, rows: NDArray[np.int64]) -> pl.DataFrame:
        """Return the prompts and outputs of these instances, as means over templates."""
        return pl.DataFrame(
            [self._evidence[row] for row in rows.tolist()], schema=_EVIDENCE_SCHEMA, orient="row"
        )

    @cached_property
    def _evidence(self) -> list[tuple[str, str, str]]:
        variants = {"factual": FACTUAL, "counterfactual": COUNTERFACTUAL} | (
            {"placebo": PLACEBO} if self.has_placebo else {}
        )
        target = self.outputs.concept_probs.mean(axis=1)
        values = {term: _row_means(self._biases[term]) for term in BIASES}
        rows = []
        for row, instance in enumerate(self.instances):
            text = self.prompts.templates[0].fill(
                self.prompts.words[instance.group], instance.kind, instance.concept
            )
            detail = {
                "group": instance.group,
                "concept": instance.concept,
                "kind": instance.kind,
                "target": {
                    name: _rounded(target[row, variant, OWN_GROUP if variant == FACTUAL else OTHER_GROUP])
                    for name, variant in variants.items()
                },
                "present": {
                    name: _rounded(self.outputs.group_probs[row, variant])
                    for name, variant in variants.items()
                    if variant != PLACEBO
                },
                **{term: _rounded(values[term][row]) for term in BIASES},
                "defined": bool(np.isfinite(values[BOTH][row])),
            }
            rows.append((instance.image, text, json.dumps(detail, ensure_ascii=False)))
        return rows


def _percent_biases(of: Bias) -> dict[str, Array]:
    return {BOTH: 100 * of.vision_language, IMAGE: 100 * of.vision, TEXT: 100 * of.language}


def _row_means(values: Array) -> Array:
    return np.asarray(values.mean(axis=1))


def _rounded(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None
