"""The rows of CounterBias: of one model, one way to make counterfactuals and one pair of groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.counterfactual.formulas import (
    COUNTERFACTUAL,
    FACTUAL,
    LEAST_DROP,
    OTHER,
    OWN,
    PLACEBO,
    Bias,
    bias,
    drops,
    placebo,
)
from portrayal.counterfactual.manifest import Instance
from portrayal.counterfactual.prompts import Answers, Questions
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.concept_measurements import ConceptRows
from portrayal.metrics.counterbias.means import Array, Means, Whole
from portrayal.metrics.counterbias.pairing import same_scenes
from portrayal.metrics.counterbias.terms import BIASES, BOTH, PICTURE, TEXT
from portrayal.stats import (
    bootstrap,
    divide_columns,
    rate,
    resampler,
)

SUCCESS = "attack-success"
_EVIDENCE = dict.fromkeys(("image_id", "caption", "detail"), pl.String())


class Rows:
    """Everything that is said of one model by one kind of counterfactual."""

    def __init__(
        self,
        builder: ResultBuilder,
        model: str,
        instances: Sequence[Instance],
        answers: Answers,
        questions: Questions,
        stereotypes: Mapping[str, str],
        seed: int,
        n_resamples: int,
    ) -> None:
        self.builder, self.model, self.instances, self.answers = builder, model, instances, answers
        self.questions, self.stereotypes, self.seed = questions, stereotypes, seed
        scenes = same_scenes(instances)
        names = tuple(sorted(set(scenes)))
        place = {name: number for number, name in enumerate(names)}
        self.image: Whole = np.array([place[name] for name in scenes], dtype=np.int64)
        self.group: Whole = np.array([questions.groups.index(one.group) for one in instances], dtype=np.int64)
        self.signs: Array = np.where(self.group == 0, 1.0, -1.0)
        self.draw = resampler(names, seed, n_resamples)
        self.placebo = answers.target.shape[2] > PLACEBO
        self._settings = dict(builder.settings)

    def write(self) -> None:
        for kind in self.questions.concepts:
            here = np.array([one.kind == kind for one in self.instances], dtype=bool)
            if here.any():
                self._kind(kind, here)
        self.builder.settings = self._settings
        self._attack()

    @cached_property
    def _biases(self) -> dict[str, Array]:
        """(instances, templates), in percent toward the first group."""
        return _percent(bias(self.answers.target, self.answers.present).signed(self.signs))

    @cached_property
    def _placebos(self) -> dict[str, Array]:
        return _percent(placebo(self.answers.target, self.answers.present).signed(self.signs))

    def _kind(self, kind: str, here: NDArray[np.bool_]) -> None:
        concepts = list(self.questions.concepts[kind])
        place = {concept: number for number, concept in enumerate(concepts)}
        rows = np.flatnonzero(here)
        concept = np.array([place[self.instances[row].concept] for row in rows.tolist()], dtype=np.int64)

        def means(values: Array) -> Means:
            return Means(values[rows], self.image[rows], concept, self.group[rows], len(concepts), self.draw)

        told = ConceptRows(self, kind, concepts, rows, concept)
        for term in BIASES:
            told.bias(term, means(self._biases[term]))
        told.agreement_in_both(means(self._biases[PICTURE]), means(self._biases[TEXT]))
        told.observed(means(100 * self.answers.target[:, :, FACTUAL, OWN]))
        if self.placebo:
            for term in (BOTH, PICTURE):
                told.placebo(term, means(self._biases[term]), means(self._placebos[term]))

    def settle(self, **more: object) -> None:
        """The settings of the rows that come next."""
        self.builder.settings = {**self._settings, **more}

    def _attack(self) -> None:
        """Whether pictures were changed, how far, and what else changed with them: each picture once."""
        once = np.unique(
            np.array([f"{one.image}\x1f{one.group}" for one in self.instances]), return_index=True
        )[1]
        answers, image, group = self.answers, self.image[once], self.group[once]
        other = answers.controls[once]
        away = 0.5 * np.abs(other[:, COUNTERFACTUAL] - other[:, FACTUAL]).sum(axis=1)
        columns = {
            SUCCESS: 1.0 * (answers.share[once, COUNTERFACTUAL] >= self._settings["stop_at"]),
            "p-before": 100 * answers.present[once, FACTUAL],
            "p-after": 100 * answers.present[once, COUNTERFACTUAL],
            "drift": 100 * away,
            "moved": 255 * answers.moved[once, COUNTERFACTUAL],
        }
        for term, values in columns.items():
            for number, name in ((None, None), *enumerate(self.questions.groups)):
                some = np.isfinite(values) & (True if number is None else group == number)
                self._mean(term, values[some], image[some], name)
        failed = ~(drops(answers.present) >= LEAST_DROP)
        for number, name in ((None, None), *enumerate(self.questions.groups)):
            some = np.ones(len(failed), dtype=bool) if number is None else self.group == number
            self.builder.add(
                "undefined", float((failed & some).sum()), system=self.model, group=name, n=int(some.sum()),
                n_unit="instance", evidence=self.evidence(np.flatnonzero(failed & some)),
            )  # fmt: skip

    def _mean(self, term: str, values: Array, image: Whole, group: str | None) -> None:
        if not len(values):
            self.builder.add(
                term,
                None,
                system=self.model,
                group=group,
                n=0,
                reason="no picture of the group has this number",
            )
            return
        counts = np.zeros((len(self.draw.names), 2))
        np.add.at(counts, image, np.column_stack([values, np.ones(len(values))]))
        if term == SUCCESS:  # a rate, of which draws say nothing where all succeed
            estimate = rate(counts[:, 0], counts[:, 1], self.draw).times(100)
        else:
            estimate = bootstrap(counts, divide_columns, self.draw)[0]
        self.builder.add(term, estimate, system=self.model, group=group, n=len(values), resampler=self.draw)

    def evidence(self, rows: NDArray[np.int64]) -> pl.DataFrame:
        """What was asked and answered of these instances, the means over templates."""
        return pl.DataFrame([self._evidence[row] for row in rows.tolist()], schema=_EVIDENCE, orient="row")

    @cached_property
    def _evidence(self) -> list[tuple[str, str, str]]:
        seen = {"factual": FACTUAL, "counterfactual": COUNTERFACTUAL} | (
            {"placebo": PLACEBO} if self.placebo else {}
        )
        target = self.answers.target.mean(axis=1)
        values = {term: _row_means(self._biases[term]) for term in BIASES}
        made = []
        for row, one in enumerate(self.instances):
            text = self.questions.templates[0].of(self.questions.words[one.group], one.kind, one.concept)
            detail = {
                "group": one.group,
                "concept": one.concept,
                "kind": one.kind,
                "target": {
                    name: _brief(target[row, kind, OWN if kind == FACTUAL else OTHER])
                    for name, kind in seen.items()
                },
                "present": {
                    name: _brief(self.answers.present[row, kind])
                    for name, kind in seen.items()
                    if kind != PLACEBO
                },
                **{term: _brief(values[term][row]) for term in BIASES},
                "defined": bool(np.isfinite(values[BOTH][row])),
            }
            made.append((one.image, text, json.dumps(detail, ensure_ascii=False)))
        return made


def _percent(of: Bias) -> dict[str, Array]:
    return {BOTH: 100 * of.by_both, PICTURE: 100 * of.by_picture, TEXT: 100 * of.by_text}


def _row_means(values: Array) -> Array:
    return np.asarray(values.mean(axis=1))


def _brief(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None
