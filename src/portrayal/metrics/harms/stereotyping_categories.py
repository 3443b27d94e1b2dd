"""Stereotyping by categories: what captions of each group mention, and what a system amplifies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.amplification.formulas import a_to_t, association_sign
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.categories import (
    KINDS,
    CategoryFinder,
    chi_squared,
    cramers_v,
    mean_category_counts,
)
from portrayal.metrics.harms.counts import KIND_SEPARATOR, CaptionSample
from portrayal.metrics.harms.image_records import ImageRecord
from portrayal.metrics.harms.measurement import (
    NO_GROUPS,
    NO_OBJECTS,
    NO_REFERENCES,
    HarmMeasurement,
)
from portrayal.metrics.harms.measurement_card import MeasurementCard
from portrayal.metrics.harms.parsed_captions import Parsed
from portrayal.metrics.harms.settings import HarmSettings
from portrayal.metrics.harms.stereotyping import ALPHA, HARM
from portrayal.results import TOO_FEW
from portrayal.stats import (
    Estimate,
    bootstrap,
    permutation_test,
    resampler,
)

Array = NDArray[np.float64]


class _CategoryMeasurement(HarmMeasurement):
    """Keeps the category counts of every image, since permutations and resamples need them."""

    additive: ClassVar[bool] = False
    needs_vectors: ClassVar[bool] = True

    def __init__(self, settings: HarmSettings):
        super().__init__(settings)
        self.categories = CategoryFinder(settings.taxonomy, settings.vectors, settings.framing_words)
        self.images: list[str] = []
        self.groups: list[str] = []
        self.rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}
        self.sample = CaptionSample(settings.evidence)

    def merge(self, other: Any) -> None:
        raise NotImplementedError("permutations cannot be added up")

    def missing_data(self) -> str | None:
        if len(self.settings.groups) < 2:
            return NO_GROUPS if not self.settings.groups else "the study has one group"
        if self.settings.stage == "1":
            return None if self.settings.has_objects else NO_OBJECTS
        return NO_REFERENCES if self.settings.stage == "3" and not self.settings.has_references else None

    def _matrix(self, names: Sequence[str], rows: Sequence[Mapping[str, float]]) -> Array:
        column = {name: number for number, name in enumerate(names)}
        matrix = np.zeros((len(rows), len(names)))
        for number, row in enumerate(rows):
            for name, share in row.items():
                if name in column:
                    matrix[number, column[name]] = share
        return matrix

    def _group_membership(self) -> tuple[list[str], Array]:
        names = sorted(set(self.groups))
        column = {name: number for number, name in enumerate(names)}
        matrix = np.zeros((len(self.groups), len(names)))
        matrix[np.arange(len(self.groups)), [column[group] for group in self.groups]] = 1
        return names, matrix

    def _drop_small_groups(self) -> str | None:
        """Drop the images of groups that are too small; the reason if fewer than two groups remain."""
        sizes = Counter(self.groups)
        keep = [index for index, group in enumerate(self.groups) if sizes[group] >= TOO_FEW]
        if sum(size >= TOO_FEW for size in sizes.values()) < 2:
            return f"fewer than two groups have {TOO_FEW} images"
        if len(keep) < len(self.groups):
            for values in self._per_image_lists():
                values[:] = [values[index] for index in keep]
        return None

    def _per_image_lists(self) -> list[list[Any]]:
        """All lists that have one entry for each image."""
        return [self.images, self.groups, *self.rows.values()]


class CategoryDistributions(_CategoryMeasurement):
    card = MeasurementCard(
        harm=HARM,
        name="distributions",
        counts_tests=True,
        question="whether captions of different groups mention different kinds of objects, attributes and actions",
        rule=(
            "Nouns, adjectives and verbs (or human labels, at stage 1) are mapped to categories; a word outside the "
            "taxonomy has the category of the nearest taxonomy word by word vectors. Chi-squared of categories by "
            "group, with p by permutation of groups over images. The headline counts which of the three differ (p "
            "below 5 %, corrected for three); Cramér's V is the size of the difference, from 0 to 1."
        ),
        published="the taxonomies (COCO supercategories for objects), the nearest word by embedding, chi-squared.",
        reconstructed="p by permutation, since words of one image are not independent; the lists of words are ours.",
        stages=("1", "3", "4"),
        items=KINDS,
        caveats=("Images themselves differ between groups: compare with stages 1 and 3.",),
    )

    def add_image(self, record: ImageRecord, parsed: Sequence[Parsed], human: Sequence[Parsed]) -> None:  # noqa: ARG002
        if record.group is None or (not parsed and self.settings.stage != "1"):
            return
        self.images.append(record.image_id)
        self.groups.append(record.group)
        if self.settings.stage == "1":
            counts = self.categories.count_labels(record)
        else:
            counts = mean_category_counts([self.categories.count_caption(caption) for caption in parsed])
        for kind in KINDS:
            self.rows[kind].append(counts[kind])
        detail = {kind: sorted(counts[kind]) for kind in KINDS} | {"group": record.group}
        if self.settings.stage == "1":
            self.sample.add(record.image_id, ", ".join(record.labels or ()), detail)
            return
        for caption in parsed:
            for part in caption.parts:
                self.sample.add(record.image_id, part.caption, detail)

    def write(self, builder: ResultBuilder, source: str) -> None:
        term, too_few = self.card.term, self._drop_small_groups()
        if too_few is not None:
            builder.add(term, None, system=source, n=len(self.images), reason=too_few)
            return
        groups, members = self._group_membership()
        tables: dict[str, tuple[list[str], Array, float, float]] = {}
        for kind in KINDS:
            names = sorted({name for row in self.rows[kind] for name in row})
            matrix = self._matrix(names, self.rows[kind])
            if len(names) < 2:
                continue
            observed = members.T @ matrix

            def statistic(order: NDArray[np.int64], matrix: Array = matrix) -> Array:
                return np.array([chi_squared(members[order].T @ matrix)])

            p = float(
                permutation_test(statistic, len(self.images), self.settings.seed, self.settings.n_resamples)[
                    0
                ]
            )
            v = cramers_v(chi_squared(observed), observed)
            tables[kind] = (names, observed, v, p)
        if not tables:
            reason = "captions name fewer than two categories"
            builder.add(term, None, system=source, n=len(self.images), reason=reason)
            return
        differing = [kind for kind in tables if tables[kind][3] * len(tables) < ALPHA]
        evidence = self.sample.frame()
        self.write_headline(builder, source, len(differing), len(tables), evidence, n=len(self.images))
        for kind, (names, observed, v, p) in tables.items():
            builder.add(
                term, v, system=source, item=kind, n=len(self.images), unit="v", p=p,
                evidence=evidence, in_brief=True,
            )  # fmt: skip
            shares = observed / np.maximum(observed.sum(axis=1, keepdims=True), 1e-12)
            for number, name in enumerate(names):
                for group_number, group in enumerate(groups):
                    builder.add(
                        term, float(shares[group_number, number]), system=source, group=group,
                        item=f"{kind}{KIND_SEPARATOR}{name}", n=self.groups.count(group), unit="share",
                        evidence=evidence, in_brief=True,
                    )  # fmt: skip


class CategoryAmplification(_CategoryMeasurement):
    """Compares the categories of a system's captions with those of human captions of the same images."""

    card = MeasurementCard(
        harm=HARM,
        name="amplification",
        counts_tests=True,
        question="whether a system associates groups with kinds of objects, attributes and actions more than humans do",
        rule=(
            "Bias amplification from attribute to task, from human captions to a system's: the change of the rate of "
            "a category in a group, counted as positive where the rate grows in a group in which humans mention the "
            "category more often than by chance, or falls in a group in which they mention it less often; averaged "
            "over categories and groups. The headline counts which of objects, attributes and relations are "
            "amplified: a 95 % CI above 0."
        ),
        published="bias amplification between stages, over the same categories.",
        reconstructed="the form from attribute to task; rates that a system lowers for all groups are scaled back.",
        stages=("4",),
        items=KINDS,
        caveats=(
            "The direction in which a category leans is taken from human captions once; the CI does not cover it.",
        ),
    )

    def __init__(self, settings: HarmSettings):
        super().__init__(settings)
        self.human_rows: dict[str, list[dict[str, float]]] = {kind: [] for kind in KINDS}

    def missing_data(self) -> str | None:
        return super().missing_data() or (None if self.settings.has_references else NO_REFERENCES)

    def _per_image_lists(self) -> list[list[Any]]:
        return [*super()._per_image_lists(), *self.human_rows.values()]

    def add_image(self, record: ImageRecord, parsed: Sequence[Parsed], human: Sequence[Parsed]) -> None:  # noqa: ARG002
        if record.group is None or not parsed or not record.human_captions:
            return
        self.images.append(record.image_id)
        self.groups.append(record.group)
        counts = mean_category_counts([self.categories.count_caption(caption) for caption in parsed])
        references = self.settings.word_lists.parse_all(record.human_captions)
        human_counts = mean_category_counts(
            [self.categories.count_caption(caption) for caption in references]
        )
        for kind in KINDS:
            self.rows[kind].append(counts[kind])
            self.human_rows[kind].append(human_counts[kind])
        detail = {kind: [sorted(human_counts[kind]), sorted(counts[kind])] for kind in KINDS}
        for caption in parsed:
            for part in caption.parts:
                self.sample.add(record.image_id, part.caption, detail)

    def write(self, builder: ResultBuilder, source: str) -> None:
        term, too_few = self.card.term, self._drop_small_groups()
        if too_few is not None:
            builder.add(term, None, system=source, n=len(self.images), reason=too_few)
            return
        _, members = self._group_membership()
        order = np.argsort(self.images)
        resampling = resampler(
            tuple(np.array(self.images)[order].tolist()), self.settings.seed, self.settings.n_resamples
        )
        estimates: dict[str, Estimate] = {}
        for kind in KINDS:
            names = sorted({name for row in self.human_rows[kind] for name in row})
            if len(names) < 2:
                continue
            tables = [self._matrix(names, rows)[order] for rows in (self.human_rows[kind], self.rows[kind])]
            estimates[kind] = _amplification(tables[0], tables[1], members[order], resampling)
        estimates = {kind: estimate for kind, estimate in estimates.items() if estimate.value is not None}
        if not estimates:
            reason = "captions name fewer than two categories, or none that leans to a group"
            builder.add(term, None, system=source, n=len(self.images), reason=reason)
            return
        evidence = self.sample.frame()
        amplified = [
            kind for kind, estimate in estimates.items() if estimate.low is not None and estimate.low > 0
        ]
        self.write_headline(builder, source, len(amplified), len(estimates), evidence, n=len(self.images))
        for kind, estimate in estimates.items():
            builder.add(
                term, estimate, system=source, item=kind, n=len(self.images), unit="change", ideal=0.0,
                evidence=evidence, in_brief=True,
            )  # fmt: skip


def _amplification(human: Array, system: Array, members: Array, resampling: Any) -> Estimate:
    """Amplification from attribute to task, with its CI.

    The system's rates are scaled to the human total of each category, so that a category that a system mentions less
    often in all groups is no amplification.
    """
    categories, groups = human.shape[1], members.shape[1]
    counts = np.hstack(
        [np.repeat(members, categories, axis=1) * np.tile(part, (1, groups)) for part in (human, system)]
        + [members]
    )

    def tables(totals: Array) -> tuple[Array, Array, Array]:
        size = groups * categories
        parts = [totals[:, :size], totals[:, size : 2 * size]]
        first, second = (part.reshape(-1, groups, categories).transpose(0, 2, 1) for part in parts)
        return first, second, totals[:, 2 * size :]

    first, _, sizes = tables(counts.sum(axis=0)[None])
    lean = association_sign(first, first.sum(axis=2), sizes, sizes.sum(axis=1), "drop")

    def statistic(totals: Array) -> Array:
        truth, predicted, sizes = tables(totals)
        human_total, system_total = truth.sum(axis=2, keepdims=True), predicted.sum(axis=2, keepdims=True)
        factor = np.divide(
            human_total, system_total, out=np.full_like(human_total, np.nan), where=system_total > 0
        )
        scaled = predicted * factor
        return a_to_t(truth, scaled, sizes, lean)

    return bootstrap(counts, statistic, resampling)[0]
