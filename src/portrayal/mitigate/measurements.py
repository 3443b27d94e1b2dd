"""The measurements of a comparison: means over seeds, and differences from vanilla training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from portrayal.counterfactual.formulas import (
    COUNTERFACTUAL,
    FACTUAL,
    MIN_DROP,
    counterfactual_bias,
    group_prob_drop,
)
from portrayal.counterfactual.prompts import EXACT, ModelOutputs
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.counterbias.card import CARD as COUNTERBIAS
from portrayal.metrics.counterbias.means import Array, IntArray, Means
from portrayal.metrics.counterbias.terms import ALL, BIASES, BOTH, IMAGE, TEXT
from portrayal.metrics.retrieval.recall.card import CARD as RECALL
from portrayal.metrics.retrieval.recall.measurements import CUTOFFS
from portrayal.mitigate.card import CARD, CHANGE, DROP, DROP_SHARE, GROUP_RIGHT, WORDS_LOST, WORDS_RIGHT
from portrayal.mitigate.evaluation import PGD, EvaluationScores, EvaluationSet
from portrayal.mitigate.seed_means import SeedMean
from portrayal.models.masked_vlm.retrieval.recall import hit_probability
from portrayal.results import Results
from portrayal.stats import Estimate, Resampler, bootstrap, divide_columns, rate, resampler

VANILLA = "vanilla"
CARDS: dict[str, Card] = {card.name: card for card in (COUNTERBIAS, RECALL, CARD)}


class MitigationMeasurements:
    """Computes the measurements of methods that were trained over the same seeds."""

    def __init__(
        self,
        evaluation_set: EvaluationSet,
        scores: Mapping[str, Sequence[EvaluationScores]],  # by method, one per seed
        attribute: str,
        settings: Mapping[str, Any],
        attack: Mapping[str, Any],
        seed: int,
        n_resamples: int,
    ) -> None:
        self.evaluation_set, self.attribute, self.seed, self.n_resamples = (
            evaluation_set,
            attribute,
            seed,
            n_resamples,
        )
        self.scores = {name: scores[name] for name in sorted(scores, key=lambda name: name != VANILLA)}
        self.settings, self.attack = dict(settings), dict(attack)
        self.builders = {name: ResultBuilder(card, attribute, {}) for name, card in CARDS.items()}
        self._vanilla: dict[tuple[Any, ...], SeedMean] = {}  # values of vanilla, by term and settings

    def results(self) -> Results:
        # One thread sums in one order: the same digits on every machine.
        with threadpool_limits(1):
            for attack_kind in next(iter(self.scores.values()))[0].outputs:
                self._add_biases(attack_kind)
            self._add_retrieval()
            self._add_masked_words()
        return Results.join([builder.results() for builder in self.builders.values()], {})

    # -- bias ---------------------------------------------------------------------------------------------------------

    def _add_biases(self, attack_kind: str) -> None:
        assert self.evaluation_set.prompts is not None
        settings = {"attack": attack_kind, **(self.attack if attack_kind == PGD else {})}
        for kind, concepts in self.evaluation_set.prompts.concepts.items():
            excess: dict[str, dict[str, SeedMean]] = {}
            for method in self.scores:
                excess[method] = self._add_bias(
                    method, attack_kind, kind, list(concepts), {**settings, "kind": kind}
                )
            for method in self.scores:
                for term in BIASES:
                    self._add_drop(method, term, excess, {**settings, "kind": kind, "of": term})
        for method in self.scores:
            self._add_attack(method, attack_kind, settings)

    def _add_bias(
        self, method: str, attack_kind: str, kind: str, concepts: list[str], settings: dict[str, Any]
    ) -> dict[str, SeedMean]:
        rows = np.flatnonzero([item.kind == kind for item in self.evaluation_set.instances])
        concept_index = {concept: number for number, concept in enumerate(concepts)}
        concept = np.array(
            [concept_index[self.evaluation_set.instances[row].concept] for row in rows.tolist()],
            dtype=np.int64,
        )
        excess, n_images = {}, 0
        means_of: dict[str, list[Means]] = {term: [] for term in BIASES}
        for scores in self.scores[method]:
            for term, values in self._signed(scores.outputs[attack_kind]).items():
                means_of[term].append(
                    Means(
                        values[rows],
                        self.image[rows],
                        concept,
                        self.group[rows],
                        len(concepts),
                        self.image_resampler,
                    )
                )
        for term, means in means_of.items():
            sizes = self._seed_mean(item.mean_absolute()[0] for item in means)
            floors = [float(item.noise_floors(self.seed)[0]) for item in means]
            term_excess = self._seed_mean(
                size.shifted(-floor) if size.value is not None else size
                for size, floor in zip(sizes.seeds, floors, strict=True)
            )
            n_images = min(item.n_images for item in means)
            row_settings = {**settings, "template": ALL}
            self._add_seed_mean(COUNTERBIAS, term, sizes, method, n_images, row_settings, lowest=0.0)
            floor = self._seed_mean(Estimate.of(item if np.isfinite(item) else None) for item in floors)
            self._add_seed_mean(
                COUNTERBIAS,
                "floor",
                floor,
                method,
                n_images,
                {**row_settings, "of": term},
                with_interval=False,
            )
            self._add_seed_mean(
                COUNTERBIAS, "excess", term_excess, method, n_images, {**row_settings, "of": term}
            )
            excess[term] = term_excess
        return excess

    def _add_drop(
        self, method: str, term: str, excess: dict[str, dict[str, SeedMean]], settings: dict[str, Any]
    ) -> None:
        if method == VANILLA or VANILLA not in excess:
            return
        vanilla = excess[VANILLA][term]
        drop = vanilla.minus(excess[method][term])
        n_images = len(
            {
                instance.image
                for instance in self.evaluation_set.instances
                if instance.kind == settings["kind"]
            }
        )
        self._add_seed_mean(CARD, DROP, drop, method, n_images, settings)
        share = drop.ratio_to(vanilla)
        reason = None if share.value is not None else "vanilla has no bias beyond its floor to be dropped"
        self._add_estimate(CARD, DROP_SHARE, share, method, n_images, settings, reason=reason)

    def _add_attack(self, method: str, attack_kind: str, settings: dict[str, Any]) -> None:
        """Add the success of the attack and the predicted groups, with each image counted once."""
        names = [f"{instance.image}\x1f{instance.group}" for instance in self.evaluation_set.instances]
        first_rows = np.unique(names, return_index=True)[1]
        image = self.image[first_rows]

        def means(values_of: Callable[[ModelOutputs], Array]) -> SeedMean:
            return self._seed_mean(
                self._mean(values_of(scores.outputs[attack_kind])[first_rows], image)
                for scores in self.scores[method]
            )

        def rates(values_of: Callable[[ModelOutputs], Any]) -> SeedMean:
            successes = [
                np.asarray(values_of(scores.outputs[attack_kind]), dtype=np.float64)[first_rows]
                for scores in self.scores[method]
            ]
            return self._rate(successes, np.ones(len(first_rows)), image, self.image_resampler)

        stop_at = float(self.attack["stop_at"])
        success = rates(lambda a: a.other_group_share[:, COUNTERFACTUAL] >= stop_at).mean().scaled(100)
        self._add_estimate(COUNTERBIAS, "attack-success", success, method, len(first_rows), settings)
        numbers = {
            "p-before": means(lambda a: 100 * a.group_probs[:, FACTUAL]),
            "p-after": means(lambda a: 100 * a.group_probs[:, COUNTERFACTUAL]),
        }
        for term, number in numbers.items():
            self._add_seed_mean(COUNTERBIAS, term, number, method, len(first_rows), settings)
        undefined = self._seed_mean(
            Estimate.of(
                float((~(group_prob_drop(scores.outputs[attack_kind].group_probs) >= MIN_DROP)).sum())
            )
            for scores in self.scores[method]
        )
        self._add_seed_mean(
            COUNTERBIAS,
            "undefined",
            undefined,
            method,
            len(names),
            settings,
            with_interval=False,
            n_unit="instance",
        )
        if attack_kind == EXACT or not self.evaluation_set.has_exact:
            group_correct = rates(lambda a: a.other_group_share[:, FACTUAL] < 0.5)
            self._add_seed_mean(CARD, GROUP_RIGHT, group_correct, method, len(first_rows), {})
            self._add_change(GROUP_RIGHT, method, group_correct, "share", len(first_rows), {})

    def _signed(self, outputs: ModelOutputs) -> dict[str, Array]:
        """Return bias of shape (instances, templates), in percent toward the first group."""
        signed = counterfactual_bias(outputs.concept_probs, outputs.group_probs).toward_first_group(
            np.where(self.group == 0, 1.0, -1.0)
        )
        return {BOTH: 100 * signed.vision_language, IMAGE: 100 * signed.vision, TEXT: 100 * signed.language}

    @cached_property
    def _image_indices(self) -> dict[str, int]:
        return {
            name: n
            for n, name in enumerate(sorted({instance.image for instance in self.evaluation_set.instances}))
        }

    @cached_property
    def image(self) -> IntArray:
        return np.array(
            [self._image_indices[instance.image] for instance in self.evaluation_set.instances],
            dtype=np.int64,
        )

    @cached_property
    def group(self) -> IntArray:
        assert self.evaluation_set.prompts is not None
        groups = self.evaluation_set.prompts.groups
        return np.array(
            [groups.index(instance.group) for instance in self.evaluation_set.instances], dtype=np.int64
        )

    @cached_property
    def image_resampler(self) -> Resampler:
        return resampler(tuple(self._image_indices), self.seed, self.n_resamples)

    # -- retrieval and masked words -----------------------------------------------------------------------------------

    def _add_retrieval(self) -> None:
        image_resampler = resampler(tuple(sorted(self.evaluation_set.images)), self.seed, self.n_resamples)
        if self.evaluation_set.pool is None:
            return
        image_index = {name: n for n, name in enumerate(image_resampler.names)}
        images = np.array([image_index[name] for name in self.evaluation_set.images], dtype=np.int64)
        image_of_query = {"tr": images, "ir": images[self.evaluation_set.pool.image_of_caption]}
        for fitting in next(iter(self.scores.values()))[0].retrieval:
            for direction_index, direction in enumerate(("tr", "ir")):
                for k in CUTOFFS:
                    for method, scores in self.scores.items():
                        hits_by_seed = [
                            hit_probability(seed_scores.retrieval[fitting][direction_index], k)
                            for seed_scores in scores
                        ]
                        recall = self._rate(
                            hits_by_seed,
                            np.ones(len(image_of_query[direction])),
                            image_of_query[direction],
                            image_resampler,
                        )
                        settings = {"fitted": fitting, "rerank": self.evaluation_set.rerank}
                        term, n_queries = f"{direction}@{k}", len(image_of_query[direction])
                        unit = "image" if direction == "tr" else "caption"
                        self._add_seed_mean(RECALL, term, recall, method, n_queries, settings, n_unit=unit)
                        self._add_change(term, method, recall, "share", n_queries, settings, n_unit=unit)

    def _add_masked_words(self) -> None:
        for name, images in self.evaluation_set.text_images.items():
            image_resampler = resampler(tuple(sorted(images)), self.seed, self.n_resamples)
            image_index = {image: n for n, image in enumerate(image_resampler.names)}
            image_of_row = np.array([image_index[image] for image in images], dtype=np.int64)
            order = np.argsort(image_of_row)
            for method, scores in self.scores.items():
                masked_words = [item.masked_words[name] for item in scores]
                accuracy = self._rate(
                    [item.n_correct for item in masked_words],
                    masked_words[0].n_masked,
                    image_of_row,
                    image_resampler,
                )
                loss = self._seed_mean(
                    bootstrap(
                        np.column_stack([item.loss[order], item.n_masked[order]]),
                        divide_columns,
                        image_resampler,
                    )[0]
                    for item in masked_words
                )
                settings = {"texts": name}
                for term, seed_mean, unit in ((WORDS_RIGHT, accuracy, "share"), (WORDS_LOST, loss, "nats")):
                    self._add_seed_mean(CARD, term, seed_mean, method, len(images), settings)
                    self._add_change(term, method, seed_mean, unit, len(images), settings)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _seed_mean(self, estimates: Any) -> SeedMean:
        return SeedMean(tuple(estimates), self.seed)

    def _rate(
        self, successes: Sequence[Array], trials: Array, image_of_trial: IntArray, image_resampler: Resampler
    ) -> SeedMean:
        """Return a rate of successes over seeds; `image_of_trial` is the index of each trial's image."""
        counts = np.zeros((len(image_resampler.names), len(successes) + 1))
        np.add.at(counts, image_of_trial, np.column_stack([*successes, trials]))
        seeds = tuple(
            rate(counts[:, column], counts[:, -1], image_resampler) for column in range(len(successes))
        )
        return SeedMean(seeds, self.seed, rate(counts[:, :-1].mean(axis=1), counts[:, -1], image_resampler))

    def _mean(self, values: Array, image: IntArray) -> Estimate:
        counts = np.zeros((len(self.image_resampler.names), 2))
        np.add.at(counts, image, np.column_stack([values, np.ones(len(values))]))
        return bootstrap(counts, divide_columns, self.image_resampler)[0]

    def _add_change(
        self,
        of: str,
        method: str,
        seed_mean: SeedMean,
        unit: str,
        n: int,
        settings: dict[str, Any],
        n_unit: str = "image",
    ) -> None:
        """Add the difference from vanilla, which is added first."""
        key = (of, *settings.items())
        if method == VANILLA:
            self._vanilla[key] = seed_mean
        elif VANILLA in self.scores:
            lower = "lower" if of == WORDS_LOST else None
            self._add_seed_mean(
                CARD, CHANGE, seed_mean.minus(self._vanilla[key]), method, n, {**settings, "of": of}, n_unit=n_unit,
                unit=unit, better=lower,
            )  # fmt: skip

    def _add_seed_mean(
        self,
        card: Card,
        term: str,
        seed_mean: SeedMean,
        method: str,
        n: int,
        settings: dict[str, Any],
        *,
        n_unit: str = "image",
        with_interval: bool = True,
        unit: str | None = None,
        lowest: float | None = None,
        better: str | None = None,
    ) -> None:
        if with_interval:
            mean = seed_mean.mean()
        else:
            mean = Estimate.of(float(seed_mean.points.mean()) if seed_mean.defined else None)
        if lowest is not None:
            mean = mean.at_least(lowest)
        self._add_estimate(
            card,
            term,
            mean,
            method,
            n,
            settings,
            n_unit=n_unit,
            unit=unit,
            std_seed=seed_mean.std,
            better=better,
        )

    def _add_estimate(
        self,
        card: Card,
        term: str,
        estimate: Estimate,
        method: str,
        n: int,
        settings: dict[str, Any],
        *,
        n_unit: str = "image",
        unit: str | None = None,
        std_seed: float | None = None,
        reason: str | None = None,
        better: str | None = None,
    ) -> None:
        builder = self.builders[card.name].with_settings({**self.settings, **settings})
        if estimate.value is None and reason is None:
            reason = "not defined for every seed"
        builder.add(
            term, estimate, system=method, n=n, n_unit=n_unit, unit=unit, std_seed=std_seed, reason=reason,
            better=better,
        )  # fmt: skip
