"""The rows of a comparison: each number as a mean over seeds, and how far it is from vanilla's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from portrayal.counterfactual.formulas import COUNTERFACTUAL, FACTUAL, LEAST_DROP, bias, drops
from portrayal.counterfactual.prompts import EXACT, Answers
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.means import Array, Means, Whole
from portrayal.metrics.counterbias.metric import CARD as COUNTERBIAS
from portrayal.metrics.counterbias.terms import ALL, BIASES, BOTH, PICTURE, TEXT
from portrayal.metrics.retrieval.recall.measurements import TOPS
from portrayal.metrics.retrieval.recall.metric import CARD as RECALL
from portrayal.mitigate.card import CARD, CHANGE, DROP, DROP_SHARE, GROUP_RIGHT, WORDS_LOST, WORDS_RIGHT
from portrayal.mitigate.evaluation import PGD, Exam, Marks
from portrayal.mitigate.seed_means import Number
from portrayal.models.masked_vlm.retrieval.recall import hits
from portrayal.results import Results
from portrayal.stats import Estimate, Resampler, bootstrap, divide_columns, rate, resampler

VANILLA = "vanilla"
CARDS: dict[str, Card] = {card.name: card for card in (COUNTERBIAS, RECALL, CARD)}


class Rows:
    """Everything that is said of methods that were trained over the same seeds."""

    def __init__(
        self,
        exam: Exam,
        marks: Mapping[str, Sequence[Marks]],  # of each method, seed by seed
        attribute: str,
        settings: Mapping[str, Any],
        attack: Mapping[str, Any],
        seed: int,
        n_resamples: int,
    ) -> None:
        self.exam, self.attribute, self.seed, self.many = exam, attribute, seed, n_resamples
        self.marks = {name: marks[name] for name in sorted(marks, key=lambda name: name != VANILLA)}
        self.settings, self.attack = dict(settings), dict(attack)
        self.parts = {name: ResultBuilder(card, attribute, {}) for name, card in CARDS.items()}
        self._before: dict[tuple[Any, ...], Number] = {}  # vanilla's, by what it is

    def results(self) -> Results:
        with threadpool_limits(1):  # one thread adds in one order: the same digits on every machine
            for way in next(iter(self.marks.values()))[0].answers:
                self._biases(way)
            self._searches()
            self._words()
        return Results.join([part.results() for part in self.parts.values()], {})

    # -- bias ---------------------------------------------------------------------------------------------------------

    def _biases(self, way: str) -> None:
        assert self.exam.questions is not None
        told = {"attack": way, **(self.attack if way == PGD else {})}
        for kind, concepts in self.exam.questions.concepts.items():
            excess: dict[str, dict[str, Number]] = {}
            for method in self.marks:
                excess[method] = self._bias(method, way, kind, list(concepts), {**told, "kind": kind})
            for method in self.marks:
                for term in BIASES:
                    self._drop(method, term, excess, {**told, "kind": kind, "of": term})
        for method in self.marks:
            self._attack(method, way, told)

    def _bias(
        self, method: str, way: str, kind: str, concepts: list[str], told: dict[str, Any]
    ) -> dict[str, Number]:
        rows = np.flatnonzero([one.kind == kind for one in self.exam.instances])
        place = {concept: number for number, concept in enumerate(concepts)}
        concept = np.array([place[self.exam.instances[row].concept] for row in rows.tolist()], dtype=np.int64)
        made, images = {}, 0
        found: dict[str, list[Means]] = {term: [] for term in BIASES}
        for marks in self.marks[method]:
            for term, values in self._signed(marks.answers[way]).items():
                found[term].append(
                    Means(values[rows], self.image[rows], concept, self.group[rows], len(concepts), self.draw)
                )
        for term, means in found.items():
            sizes = self._number(one.sizes()[0] for one in means)
            floors = [float(one.floors(self.seed)[0]) for one in means]
            beyond = self._number(
                size.moved(-floor) if size.value is not None else size
                for size, floor in zip(sizes.seeds, floors, strict=True)
            )
            images = min(one.pictures for one in means)
            here = {**told, "template": ALL}
            self._add(COUNTERBIAS, term, sizes, method, images, here, lowest=0.0)
            floor = self._number(Estimate.of(one if np.isfinite(one) else None) for one in floors)
            self._add(COUNTERBIAS, "floor", floor, method, images, {**here, "of": term}, n_resamples=False)
            self._add(COUNTERBIAS, "excess", beyond, method, images, {**here, "of": term})
            made[term] = beyond
        return made

    def _drop(
        self, method: str, term: str, excess: dict[str, dict[str, Number]], told: dict[str, Any]
    ) -> None:
        if method == VANILLA or VANILLA not in excess:
            return
        before = excess[VANILLA][term]
        fell = before.less(excess[method][term])
        images = len({one.image for one in self.exam.instances if one.kind == told["kind"]})
        self._add(CARD, DROP, fell, method, images, told)
        share = fell.share_of(before)
        reason = None if share.value is not None else "vanilla has no bias beyond its floor to be dropped"
        self._one(CARD, DROP_SHARE, share, method, images, told, reason=reason)

    def _attack(self, method: str, way: str, told: dict[str, Any]) -> None:
        """Whether pictures were changed, and whom the model sees in them as they are: each picture once."""
        names = [f"{one.image}\x1f{one.group}" for one in self.exam.instances]
        once = np.unique(names, return_index=True)[1]
        image = self.image[once]

        def means(of: Callable[[Answers], Array]) -> Number:
            return self._number(
                self._mean(of(marks.answers[way])[once], image) for marks in self.marks[method]
            )

        def rates(of: Callable[[Answers], Any]) -> Number:
            cases = [
                np.asarray(of(marks.answers[way]), dtype=np.float64)[once] for marks in self.marks[method]
            ]
            return self._rate(cases, np.ones(len(once)), image, self.draw)

        stop = float(self.attack["stop_at"])
        worked = rates(lambda a: a.share[:, COUNTERFACTUAL] >= stop).mean().times(100)
        self._one(COUNTERBIAS, "attack-success", worked, method, len(once), told)
        numbers = {
            "p-before": means(lambda a: 100 * a.present[:, FACTUAL]),
            "p-after": means(lambda a: 100 * a.present[:, COUNTERFACTUAL]),
        }
        for term, number in numbers.items():
            self._add(COUNTERBIAS, term, number, method, len(once), told)
        failed = self._number(
            Estimate.of(float((~(drops(marks.answers[way].present) >= LEAST_DROP)).sum()))
            for marks in self.marks[method]
        )
        self._add(
            COUNTERBIAS, "undefined", failed, method, len(names), told, n_resamples=False, n_unit="instance"
        )
        if way == EXACT or not self.exam.exact:
            right = rates(lambda a: a.share[:, FACTUAL] < 0.5)
            self._add(CARD, GROUP_RIGHT, right, method, len(once), {})
            self._change(GROUP_RIGHT, method, right, "share", len(once), {})

    def _signed(self, answers: Answers) -> dict[str, Array]:
        """(instances, templates), in percent toward the first group."""
        found = bias(answers.target, answers.present).signed(np.where(self.group == 0, 1.0, -1.0))
        return {BOTH: 100 * found.by_both, PICTURE: 100 * found.by_picture, TEXT: 100 * found.by_text}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: n for n, name in enumerate(sorted({one.image for one in self.exam.instances}))}

    @cached_property
    def image(self) -> Whole:
        return np.array([self._places[one.image] for one in self.exam.instances], dtype=np.int64)

    @cached_property
    def group(self) -> Whole:
        assert self.exam.questions is not None
        groups = self.exam.questions.groups
        return np.array([groups.index(one.group) for one in self.exam.instances], dtype=np.int64)

    @cached_property
    def draw(self) -> Resampler:
        return resampler(tuple(self._places), self.seed, self.many)

    # -- searching and words ------------------------------------------------------------------------------------------

    def _searches(self) -> None:
        draw = resampler(tuple(sorted(self.exam.images)), self.seed, self.many)
        if self.exam.pool is None:
            return
        place = {name: n for n, name in enumerate(draw.names)}
        pictures = np.array([place[name] for name in self.exam.images], dtype=np.int64)
        whose = {"tr": pictures, "ir": pictures[self.exam.pool.owner]}
        for when in next(iter(self.marks.values()))[0].searches:
            for number, way in enumerate(("tr", "ir")):
                for k in TOPS:
                    for method, marks in self.marks.items():
                        tops = [hits(one.searches[when][number], k) for one in marks]
                        found = self._rate(tops, np.ones(len(whose[way])), whose[way], draw)
                        told = {"fitted": when, "rerank": self.exam.rerank}
                        term, many = f"{way}@{k}", len(whose[way])
                        unit = "image" if way == "tr" else "caption"
                        self._add(RECALL, term, found, method, many, told, n_unit=unit)
                        self._change(term, method, found, "share", many, told, n_unit=unit)

    def _words(self) -> None:
        for name, images in self.exam.names.items():
            draw = resampler(tuple(sorted(images)), self.seed, self.many)
            place = {image: n for n, image in enumerate(draw.names)}
            at = np.array([place[image] for image in images], dtype=np.int64)
            order = np.argsort(at)
            for method, marks in self.marks.items():
                all_filled = [one.words[name] for one in marks]
                right = self._rate([one.right for one in all_filled], all_filled[0].asked, at, draw)
                lost = self._number(
                    bootstrap(np.column_stack([one.lost[order], one.asked[order]]), divide_columns, draw)[0]
                    for one in all_filled
                )
                told = {"texts": name}
                for term, number, unit in ((WORDS_RIGHT, right, "share"), (WORDS_LOST, lost, "nats")):
                    self._add(CARD, term, number, method, len(images), told)
                    self._change(term, method, number, unit, len(images), told)

    # -- writing ------------------------------------------------------------------------------------------------------

    def _number(self, estimates: Any) -> Number:
        return Number(tuple(estimates), self.seed)

    def _rate(self, successes: Sequence[Array], trials: Array, whose: Whole, draw: Resampler) -> Number:
        """A share of trials, seed by seed. `whose` says which picture each case is of."""
        counts = np.zeros((len(draw.names), len(successes) + 1))
        np.add.at(counts, whose, np.column_stack([*successes, trials]))
        seeds = tuple(rate(counts[:, number], counts[:, -1], draw) for number in range(len(successes)))
        return Number(seeds, self.seed, rate(counts[:, :-1].mean(axis=1), counts[:, -1], draw))

    def _mean(self, values: Array, image: Whole) -> Estimate:
        counts = np.zeros((len(self.draw.names), 2))
        np.add.at(counts, image, np.column_stack([values, np.ones(len(values))]))
        return bootstrap(counts, divide_columns, self.draw)[0]

    def _change(
        self,
        of: str,
        method: str,
        number: Number,
        unit: str,
        n: int,
        told: dict[str, Any],
        n_unit: str = "image",
    ) -> None:
        """By how much it differs from vanilla's, which comes first."""
        about = (of, *told.items())
        if method == VANILLA:
            self._before[about] = number
        elif VANILLA in self.marks:
            lower = "lower" if of == WORDS_LOST else None
            self._add(
                CARD, CHANGE, number.less(self._before[about]), method, n, {**told, "of": of}, n_unit=n_unit, unit=unit,
                better=lower,
            )  # fmt: skip

    def _add(
        self,
        card: Card,
        term: str,
        number: Number,
        method: str,
        n: int,
        told: dict[str, Any],
        *,
        n_unit: str = "image",
        n_resamples: bool = True,
        unit: str | None = None,
        lowest: float | None = None,
        better: str | None = None,
    ) -> None:
        if n_resamples:
            mean = number.mean()
        else:
            mean = Estimate.of(float(number.points.mean()) if number.defined else None)
        if lowest is not None:
            mean = mean.at_least(lowest)
        self._one(
            card, term, mean, method, n, told, n_unit=n_unit, unit=unit, spread=number.spread, better=better
        )

    def _one(
        self,
        card: Card,
        term: str,
        estimate: Estimate,
        method: str,
        n: int,
        told: dict[str, Any],
        *,
        n_unit: str = "image",
        unit: str | None = None,
        spread: float | None = None,
        reason: str | None = None,
        better: str | None = None,
    ) -> None:
        part = self.parts[card.name]
        part.settings = {**self.settings, **told}
        if estimate.value is None and reason is None:
            reason = "not defined for every seed"
        part.add(
            term, estimate, system=method, n=n, n_unit=n_unit, unit=unit, std_seed=spread, reason=reason, better=better
        )  # fmt: skip
