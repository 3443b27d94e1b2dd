"""The rows of CounterBias: of one model, one way to make counterfactuals and one pair of groups."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

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
from portrayal.counterfactual.questions import Answers, Questions
from portrayal.metrics.counter.means import Array, Means, Whole
from portrayal.metrics.findings import Findings
from portrayal.results import TOO_FEW, TOO_FEW_REASON
from portrayal.stats import (
    Estimate,
    benjamini_hochberg,
    bootstrap,
    bootstrap_p,
    divide_columns,
    rate,
    resampler,
)

ALL = "all"  # templates
BOTH, PICTURE, TEXT = "b@v-l", "b@v", "b@l"
BIASES = (BOTH, PICTURE, TEXT)
SUCCESS = "attack-success"
_EVIDENCE = dict.fromkeys(("image_id", "caption", "detail"), pl.String())


class Rows:
    """Everything that is said of one model by one kind of counterfactual."""

    def __init__(
        self,
        findings: Findings,
        model: str,
        instances: Sequence[Instance],
        answers: Answers,
        questions: Questions,
        stereotypes: Mapping[str, str],
        seed: int,
        draws: int,
    ) -> None:
        self.findings, self.model, self.instances, self.answers = findings, model, instances, answers
        self.questions, self.stereotypes, self.seed = questions, stereotypes, seed
        scenes = same_scenes(instances)
        names = tuple(sorted(set(scenes)))
        place = {name: number for number, name in enumerate(names)}
        self.image: Whole = np.array([place[name] for name in scenes], dtype=np.int64)
        self.group: Whole = np.array([questions.groups.index(one.group) for one in instances], dtype=np.int64)
        self.signs: Array = np.where(self.group == 0, 1.0, -1.0)
        self.draw = resampler(names, seed, draws)
        self.placebo = answers.target.shape[2] > PLACEBO
        self._settings = dict(findings.settings)

    def write(self) -> None:
        for kind in self.questions.concepts:
            here = np.array([one.kind == kind for one in self.instances], dtype=bool)
            if here.any():
                self._kind(kind, here)
        self.findings.settings = self._settings
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

        told = _Told(self, kind, concepts, rows, concept)
        for term in BIASES:
            told.bias(term, means(self._biases[term]))
        told.agreement_in_both(means(self._biases[PICTURE]), means(self._biases[TEXT]))
        told.observed(means(100 * self.answers.target[:, :, FACTUAL, OWN]))
        if self.placebo:
            for term in (BOTH, PICTURE):
                other = self._placebos[term]
                told.placebo(term, means(self._biases[term]), means(other), means(self._biases[term] - other))

    def settle(self, **more: object) -> None:
        """The settings of the rows that come next."""
        self.findings.settings = {**self._settings, **more}

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
            self.findings.add(
                "undefined", float((failed & some).sum()), system=self.model, group=name, n=int(some.sum()),
                n_unit="instance", evidence=self.evidence(np.flatnonzero(failed & some)),
            )  # fmt: skip

    def _mean(self, term: str, values: Array, image: Whole, group: str | None) -> None:
        if not len(values):
            self.findings.add(
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
        self.findings.add(term, estimate, system=self.model, group=group, n=len(values), resampler=self.draw)

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


def same_scenes(instances: Sequence[Instance]) -> list[str]:
    """Of each instance the name of its scene: pictures that are each other's counterfactuals are of one, and what is
    found on both is one observation.
    """
    root: dict[Path, Path] = {}

    def top(path: Path) -> Path:
        while root.setdefault(path, path) != path:
            path = root[path]
        return path

    for one in instances:
        if one.exact is not None:
            first, second = sorted((top(one.path), top(one.exact)))
            root[second] = first
    named: dict[Path, str] = {}
    for one in sorted(instances, key=lambda one: one.image):
        named.setdefault(top(one.path), one.image)
    return [named[top(one.path)] for one in instances]


class _Told:
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

    def placebo(self, term: str, real: Means, sham: Means, corrected: Means) -> None:
        self.rows.settle(kind=self.kind, template=ALL, of=term)
        self._size("placebo", sham.sizes()[0].at_least(0), sham)
        self._concepts("placebo", sham.leans(), sham)
        self._size("corrected", real.sizes_beyond(sham)[0], real)
        self._concepts("corrected", corrected.leans(), corrected, tested=True)

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
        self.rows.findings.add(
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
            self.rows.findings.add(
                term, estimate, system=self.rows.model, group=name, item=concept, n=images, reason=reason,
                p=chances[number], q=None,
                support=images if group is not None else 2 * int(counted.min()),
                evidence=self._behind(number, group) if term == BOTH and self._over_all else None,
            )  # fmt: skip
        if tested:
            self._correct(len(estimates))

    @property
    def _over_all(self) -> bool:
        return self.rows.findings.settings.get("template") == ALL

    def _correct(self, many: int) -> None:
        """False discovery rates of the rows just added; those of too few images have no p, and count for nothing."""
        added = self.rows.findings.measurements[-many:]
        rates = benjamini_hochberg([one.p for one in added])
        self.rows.findings.measurements[-many:] = [
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
        self.rows.findings.add(
            "agreement", Estimate.of(100 * float(np.mean(agreed)) if agreed else None), system=self.rows.model,
            n=len(agreed), n_unit="concept", support=means.pictures,
            reason=None if agreed else "raters tie none of the concepts to one of the groups",
        )  # fmt: skip


def text_rows(
    findings: Findings,
    model: str,
    said: Mapping[tuple[str, str], Array],
    questions: Questions,
    settings: Mapping[str, object],
) -> None:
    """b@text: without a picture, log P(T) in the first group's text less that in the second's."""
    names = [template.name for template in questions.templates]
    for kind, concepts in questions.concepts.items():
        by_concept = np.array([said[kind, concept][:, 0] - said[kind, concept][:, 1] for concept in concepts])
        asked = len(names) * len(concepts)
        for number, name in ((None, ALL), *enumerate(names)):
            findings.settings = {**settings, "kind": kind, "template": name}
            some = by_concept if number is None else by_concept[:, [number]]
            findings.add(
                "b@text", float(np.abs(some).mean()), system=model, n=asked if number is None else len(concepts),
                n_unit="text", support=_NO_IMAGES,
            )  # fmt: skip
            for concept, values in zip(concepts, some, strict=True):
                findings.add(
                    "b@text", float(values.mean()), system=model, item=concept, n=len(values), n_unit="text",
                    support=_NO_IMAGES,
                )  # fmt: skip


_NO_IMAGES = 10**9  # rests on texts, of which there are no others to draw: they are never too few


def _percent(of: Bias) -> dict[str, Array]:
    return {BOTH: 100 * of.by_both, PICTURE: 100 * of.by_picture, TEXT: 100 * of.by_text}


def _row_means(values: Array) -> Array:
    return np.asarray(values.mean(axis=1))


def _brief(value: float) -> float | None:
    return round(float(value), 4) if np.isfinite(value) else None


def _known(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
