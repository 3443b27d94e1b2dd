"""Measurements of the Gender Score: scores of the captions of one source, by group and by object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.lexicon import NEUTRAL, Lexicon
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import CaptionMentions, find_mentions
from portrayal.metrics.shared.language_scores.caption_groups import group_columns, memberships
from portrayal.metrics.shared.language_scores.caption_scores import CaptionScorer, RevisedScores
from portrayal.metrics.shared.language_scores.ratios import base_rates, largest_share, ratio, shares
from portrayal.metrics.shared.object_cooccurrence import ObjectMatcher, permutation_p_values
from portrayal.stats import (
    Estimate,
    Resampler,
    benjamini_hochberg,
    bootstrap,
    permutation_test,
    resampler,
)
from portrayal.study import Study

Values = NDArray[np.float64]
# Minimum number of images of an object to be listed, unless the user names it: classifiers detect thousands once.
MIN_IMAGES_LISTED = 5


@dataclass(frozen=True)
class GenderScoreMeasurements:
    """The Gender Score under one set of settings."""

    study: Study
    builder: ResultBuilder
    attribute: str
    lexicon: Lexicon
    scorer: CaptionScorer
    confidence: float | None
    both: str
    objects: str
    items: tuple[str, ...]
    synonyms: str | None
    seed: int
    n_resamples: int

    def measure(self, source: str, in_full: bool) -> None:
        """Add the rows of a source; with `in_full`, also those of single objects."""
        mentions = find_mentions(self.study, source, self.lexicon)
        membership = memberships(mentions, self.lexicon, self.both)
        scored_source = ScoredSource(
            mentions,
            self._scores(mentions, membership.sum(axis=1) > 0),
            membership,
            group_columns(self.lexicon),
        )
        measurements = _SourceMeasurements(
            self, self.builder.with_settings(self.settings), source, scored_source
        )
        measurements.add_groups()
        if in_full:
            measurements.add_objects()

    def _scores(self, mentions: CaptionMentions, mask: NDArray[np.bool_]) -> RevisedScores:
        """Scores of the captions in `mask`, else nan: the others count for no group, and language models are slow."""
        indices = np.flatnonzero(mask)
        images = [mentions.images[mentions.image_index[index]] for index in indices]
        scores = self.scorer.score_captions(images, [mentions.captions[index] for index in indices])
        return RevisedScores(*(_scatter(values, indices, len(mask)) for values in astuple(scores)))

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "lexicon": self.lexicon.label,
            **self.scorer.settings,
            "confidence": self.confidence,
            "both": self.both,
            "objects": self.object_matcher.method,
            "synonyms": self.object_matcher.synonyms,
        }

    @cached_property
    def object_matcher(self) -> ObjectMatcher:
        """Finds the objects that have rows of their own."""
        labels_by_image = {
            image: [item.text for item in items]
            for image, items in self.scorer.visual_context.items_by_image.items()
        }
        return ObjectMatcher.create(labels_by_image, self.objects, self.items, self.synonyms)


@dataclass(frozen=True)
class ScoredSource:
    """The captions of one source, their scores, and their membership in groups (the last column may be neutral)."""

    mentions: CaptionMentions
    scores: RevisedScores
    membership: Values
    columns: tuple[str, ...]

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """Whether each caption has a score."""
        return np.isfinite(self.scores.score)

    @cached_property
    def sums(self) -> Values:
        """Mean over the captions of each image of score times membership: (images, columns)."""
        score = np.where(self.scored, self.scores.score, 0.0)
        return self.mentions.mean_per_image(self.membership * score[:, None])

    @cached_property
    def counts(self) -> Values:
        """Mean over the captions of each image of the membership of scored captions: (images, columns)."""
        return self.mentions.mean_per_image(self.membership * self.scored[:, None])

    @property
    def groups(self) -> tuple[str, ...]:
        return self.mentions.groups


@dataclass(frozen=True)
class _SourceMeasurements:
    setup: GenderScoreMeasurements
    builder: ResultBuilder
    source: str
    scored_source: ScoredSource

    @cached_property
    def _n_groups(self) -> int:
        return len(self.scored_source.groups)

    @cached_property
    def _evidence(self) -> Any:
        scores, mentions = self.scored_source.scores, self.scored_source.mentions
        texts = [self._objects_text(mentions.images[index]) for index in mentions.image_index]
        return mentions.evidence_table(
            objects=texts,
            hypothesis=_rounded(scores.hypothesis),
            similarity=_rounded(scores.similarity),
            confidence=_rounded(scores.confidence),
            score=_rounded(scores.score),
        )

    def _objects_text(self, image: str) -> str:
        return ", ".join(item.text for item in self.setup.scorer.visual_context.items_of(image))

    def add_groups(self) -> None:
        """Add the rows of all people and of each group, and the number of captions without a score."""
        source, setup = self.scored_source, self.setup
        resamples = resampler(source.mentions.images, setup.seed, setup.n_resamples)
        totals = np.hstack([source.sums, source.counts])
        columns, groups = len(source.columns), self._n_groups

        def of_means(t: Values) -> Values:
            return shares(ratio(t[:, :groups], t[:, columns : columns + groups]))

        def of_sums(t: Values) -> Values:
            return shares(t[:, :groups])

        group_indices = list(range(groups))
        overall = bootstrap(totals, lambda t: _overall_mean(t, columns, groups), resamples)
        self._add("score", overall[0], None, group_indices, resamples)
        means = bootstrap(totals, lambda t: ratio(t[:, :columns], t[:, columns:]), resamples)
        for index, column in enumerate(source.columns):
            self._add("score", means[index], column, [index], resamples)
        p = self._permutation_p_of_means()
        rates = base_rates(setup.study, setup.attribute, setup.lexicon)
        for term, statistic in (("to-group", of_means), ("to-group-sum", of_sums)):
            top, largest = largest_share(totals, statistic, resamples, groups)
            estimates = [
                (None, top, largest),
                *zip(source.groups, group_indices, bootstrap(totals, statistic, resamples), strict=True),
            ]
            for group, index, estimate in estimates:
                n_candidates = (
                    groups - 1 if group is None else 1
                )  # Bonferroni: the largest share is chosen among these
                group_p = p[index] if term == "to-group" else None
                self._add(
                    term, estimate, group, group_indices, resamples, each=term == "to-group",
                    p=None if group_p is None else min(1.0, group_p * max(n_candidates, 1)),
                    ideal=rates.get(source.groups[index]) if term == "to-group-sum" else None,
                )  # fmt: skip
        if NEUTRAL in source.columns:
            to_neutral = bootstrap(totals, lambda t: _ratios_to_neutral(t, columns, groups), resamples)
            self._add(
                "to-neutral", to_neutral[groups], None, group_indices, resamples, compared_with=columns - 1
            )
            for index, group in enumerate(source.groups):
                self._add(
                    "to-neutral", to_neutral[index], group, [index], resamples, compared_with=columns - 1
                )
        unscored = (source.membership.any(axis=1)) & ~source.scored
        self.builder.add(
            "unscored", float(unscored.sum()), system=self.source, n=len(source.mentions.captions), n_unit="caption",
            evidence=source.mentions.evidence(unscored),
        )  # fmt: skip

    def _add(
        self,
        term: str,
        estimate: Estimate | None,
        group: str | None,
        columns: Sequence[int],
        resamples: Resampler,
        each: bool = False,
        compared_with: int | None = None,
        p: float | None = None,
        ideal: float | None = None,
    ) -> None:
        """Add a number of all captions of these columns.

        Its support is the number of images of all columns, or with `each` the least of any column; also of the column
        that it is `compared_with`.
        """
        source = self.scored_source
        column_sets = [
            *([[column] for column in columns] if each else [list(columns)]),
            *([[compared_with]] if compared_with else []),
        ]
        support = [self._count_images(column_set) for column_set in column_sets]
        mask = (source.membership[:, list(columns)].sum(axis=1) > 0) & source.scored
        reason = None
        if estimate is None or estimate.value is None:
            empty = [
                source.columns[column]
                for column_set, n in zip(column_sets, support, strict=True)
                if not n
                for column in column_set
            ]
            names = " or ".join(empty)
            reason = (
                f"no caption of an image with a known object names {names}" if empty else "all scores are 0"
            )
        self.builder.add(
            term, estimate, system=self.source, group=group, n=self._count_images(columns), support=min(support),
            reason=reason, p=p, ideal=ideal, evidence=source.mentions.evidence(mask, self._evidence),
            resampler=resamples, in_brief=term != "score" or group is None,
        )  # fmt: skip

    def _count_images(self, columns: Sequence[int]) -> int:
        """Number of images with a scored caption of one of these columns."""
        return int(np.count_nonzero(self.scored_source.counts[:, list(columns)].sum(axis=1)))

    def _permutation_p_of_means(self) -> list[float | None]:
        """p of each group's share of the mean scores: captions' groups are permuted, scores are kept."""
        source, groups = self.scored_source, self._n_groups
        used = np.flatnonzero((source.membership[:, :groups].sum(axis=1) > 0) & source.scored)
        if not len(used):
            return [None] * groups
        named, weight = source.membership[used, :groups], source.mentions.weight[used]
        score = weight * source.scores.score[used]

        def distance(order: NDArray[np.int64]) -> Values:
            permuted_groups = named[order]
            group_shares = shares(ratio((score @ permuted_groups)[None], (weight @ permuted_groups)[None]))[0]
            return np.asarray(np.abs(group_shares - 1 / groups))

        p_values = permutation_test(
            distance, source.mentions.image_index[used], self.setup.seed, self.setup.n_resamples
        )
        return [float(p) if np.isfinite(p) else None for p in p_values]

    # -- objects ------------------------------------------------------------------------------------------------

    def add_objects(self) -> None:
        """Add the rows of each object: shares of sums and of means, and mean scores."""
        source, setup, groups = self.scored_source, self.setup, self._n_groups
        objects = setup.object_matcher
        labels, cooccurring = list(objects.labels), objects.cooccurring(source.mentions)
        if not labels or not len(source.mentions.captions):
            return
        score = np.where(source.scored, source.scores.score, 0.0)[:, None]
        membership = source.membership[:, :groups]
        averaging = source.mentions.averaging_matrix
        sums = [averaging @ cooccurring.multiply((membership * score)[:, [g]]).tocsr() for g in range(groups)]
        counts = [
            averaging @ cooccurring.multiply((membership * source.scored[:, None])[:, [g]]).tocsr()
            for g in range(groups)
        ]
        n = np.asarray((sum(matrix for matrix in counts) > 0).sum(axis=0)).reshape(-1)
        keep = np.flatnonzero(n >= (0 if setup.items else MIN_IMAGES_LISTED))
        if not len(keep):
            return
        labels = [labels[column] for column in keep]
        columns = sparse.hstack([matrix.tocsc()[:, keep] for matrix in (*sums, *counts)], format="csr")
        size = groups * len(labels)

        def cube(totals: Values) -> Values:
            return totals.reshape(len(totals), groups, len(labels))

        resamples = resampler(source.mentions.images, setup.seed, setup.n_resamples)
        means = bootstrap(columns, lambda t: ratio(t[:, :size], t[:, size:]), resamples)
        of_means = bootstrap(
            columns, lambda t: shares(cube(ratio(t[:, :size], t[:, size:]))).reshape(len(t), -1), resamples
        )
        of_sums = bootstrap(columns, lambda t: shares(cube(t[:, :size])).reshape(len(t), -1), resamples)
        value = np.where(source.scored, source.scores.score, 0.0)
        kept_objects = cooccurring.tocsc()[:, keep]
        p = permutation_p_values(
            source.mentions, kept_objects.tocsr(), membership, value, n[keep], setup.seed, setup.n_resamples
        )
        q = [benjamini_hochberg(p[g]) for g in range(groups)]
        rates = base_rates(setup.study, setup.attribute, setup.lexicon)
        group_images = [np.asarray((matrix > 0).sum(axis=0)).reshape(-1)[keep] for matrix in counts]
        for index, label in enumerate(labels):
            with_object = np.asarray(kept_objects[:, [index]].todense()).reshape(-1) > 0
            images_per_group = [int(group_images[g][index]) for g in range(groups)]
            missing_groups = " or ".join(
                group for group, images in zip(source.groups, images_per_group, strict=True) if not images
            )
            for g, group in enumerate(source.groups):
                column = g * len(labels) + index
                mask = with_object & (membership[:, g] > 0) & source.scored
                captions = source.mentions.evidence(mask, self._evidence)
                common = {"group": group, "item": label, "evidence": captions}
                reason = f"no scored caption names {missing_groups} together with it"
                images = int(n[keep][index])
                self._add_object(
                    "to-group-sum", of_sums[column], images, images, reason, p=p[g][index], q=q[g][index],
                    ideal=rates.get(group), **common,
                )  # fmt: skip
                self._add_object(
                    "to-group",
                    of_means[column],
                    images,
                    min(images_per_group),
                    reason,
                    in_brief=True,
                    **common,
                )
                reason = f"no scored caption names {group} together with it"
                self._add_object(
                    "score",
                    means[column],
                    images_per_group[g],
                    images_per_group[g],
                    reason,
                    in_brief=True,
                    **common,
                )

    def _add_object(
        self, term: str, estimate: Estimate, n: int, support: int, undefined_reason: str, **more: Any
    ) -> None:
        reason = undefined_reason if estimate.value is None else None
        self.builder.add(term, estimate, system=self.source, n=n, support=support, reason=reason, **more)


def _overall_mean(totals: Values, columns: int, groups: int) -> Values:
    """Mean score over all captions that name a group."""
    return ratio(
        totals[:, :groups].sum(axis=1, keepdims=True),
        totals[:, columns : columns + groups].sum(axis=1, keepdims=True),
    )


def _ratios_to_neutral(totals: Values, columns: int, groups: int) -> Values:
    """Ratio of each group's mean to that of neutral captions; the last column is that of all groups."""
    means = ratio(totals[:, :columns], totals[:, columns:])
    return ratio(
        np.hstack([means[:, :groups], _overall_mean(totals, columns, groups)]), means[:, [columns - 1]]
    )


def _scatter(values: Values, indices: NDArray[np.int64], size: int) -> Values:
    spread = np.full(size, np.nan)
    spread[indices] = values
    return spread


def _rounded(values: Values) -> list[float | None]:
    return [round(float(value), 6) if np.isfinite(value) else None for value in values]
