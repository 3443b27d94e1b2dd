"""Groups predicted for captions by a score per group: counts, shares, and agreement with captions and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import CaptionMentions
from portrayal.metrics.shared.language_scores.ratios import largest_share, ratio, shares
from portrayal.stats import Resampler, bootstrap, bootstrap_p, divide_columns, permutation_test

Values = NDArray[np.float64]
_UNDECIDED, _UNSCORED = -1, -2


@dataclass(frozen=True)
class GroupPredictions:
    """Scores of captions for each group. Only `eligible` captions count."""

    mentions: CaptionMentions
    eligible: NDArray[np.bool_]
    # (captions, groups); nan where a caption has no score
    scores: Values
    margin: float

    @cached_property
    def scored(self) -> NDArray[np.bool_]:
        """Whether a caption is eligible and has a score for every group."""
        return np.asarray(self.eligible & np.isfinite(self.scores).all(axis=1), dtype=bool)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """Index of the group with the highest score; -1: undecided (within the margin), -2: without scores."""
        filled = np.where(self.scored[:, None], self.scores, 0.0)
        ranked = np.sort(filled, axis=1)
        decided = ranked[:, -1] - ranked[:, -2] > self.margin
        best = np.where(decided, filled.argmax(axis=1), _UNDECIDED)
        return np.where(self.scored, best, _UNSCORED)

    def add(
        self,
        builder: ResultBuilder,
        source: str,
        resamples: Resampler,
        evidence: Any,
        named_groups: Mapping[str, NDArray[np.int64]],
        expected: NDArray[np.int64] | None,
    ) -> None:
        """Add all measurements of one source.

        `named_groups`: the group index (-1: none) of each caption, by its origin ("caption", "label"). `expected`: the
        groups that predictions are compared with, if any.
        """
        measurements = _PredictionMeasurements(self, builder, source, resamples, evidence)
        measurements.add_counts()
        measurements.add_shares(expected)
        measurements.add_scores()
        if expected is not None:
            measurements.add_agreement(expected)
        for source, groups in named_groups.items():
            measurements.add_confusion(source, groups)


@dataclass(frozen=True)
class _PredictionMeasurements:
    predictions: GroupPredictions
    builder: ResultBuilder
    source: str
    resamples: Resampler
    evidence: Any

    @property
    def _groups(self) -> tuple[str, ...]:
        return self.predictions.mentions.groups

    def _add(
        self,
        term: str,
        estimate: Any,
        mask: NDArray[np.bool_],
        group: str | None = None,
        total: NDArray[np.bool_] | None = None,
        **more: Any,
    ) -> None:
        """Add a number of the captions in `mask`; n of a count is that of `total`, by default all eligible captions."""
        mentions = self.predictions.mentions
        is_count = self.builder.card.term(term).unit == "count"  # n of a count is its denominator
        images = mentions.image_index[
            (self.predictions.eligible if total is None else total) if is_count else mask
        ]
        self.builder.add(
            term, estimate, system=self.source, group=group, n=len(set(images.tolist())),
            evidence=mentions.evidence(mask, self.evidence), resampler=self.resamples,
            in_brief=term != "predicted" or group is None, **more,
        )  # fmt: skip

    def _count(self, mask: NDArray[np.bool_]) -> Any:
        per_image = self.predictions.mentions.mean_per_image(mask.astype(np.float64)[:, None])
        return bootstrap(per_image, _identity, self.resamples)[0]

    def add_counts(self) -> None:
        predictions = self.predictions
        decided = predictions.predicted >= 0
        self._add("predicted", self._count(decided), decided)
        for index, group in enumerate(self._groups):
            mask = predictions.predicted == index
            self._add("predicted", self._count(mask), mask, group)
        for term, mask in (
            ("undecided", predictions.predicted == _UNDECIDED),
            ("unscored", predictions.eligible & ~predictions.scored),
        ):
            self._add(term, self._count(mask), mask)

    def add_shares(self, expected: NDArray[np.int64] | None) -> None:
        """Each group's share of the predictions, tested against its share of the expected groups."""
        predictions, groups = self.predictions, len(self._groups)
        decided = predictions.predicted >= 0
        columns = _one_hot(np.where(decided, predictions.predicted, -1), groups)
        if expected is not None:
            columns = np.hstack([columns, _one_hot(np.where(decided, expected, -1), groups)])
        totals = predictions.mentions.mean_per_image(columns)
        reason = None if decided.any() else "no caption has a score that tells the groups apart"
        estimates = bootstrap(totals, lambda t: shares(t[:, :groups]), self.resamples)
        top, largest = largest_share(totals, lambda t: shares(t[:, :groups]), self.resamples, groups)
        differences = []
        if expected is not None:
            differences = bootstrap(
                totals, lambda t: shares(t[:, :groups]) - shares(t[:, groups:]), self.resamples
            )
            ideals = shares(totals.sum(axis=0)[None, groups:])[0]
        for group, index, estimate in [
            (None, top, largest),
            *zip(self._groups, range(groups), estimates, strict=True),
        ]:
            p = bootstrap_p(differences[index].replicates) if differences and not reason else None
            n_candidates = (
                max(groups - 1, 1) if group is None else 1
            )  # Bonferroni: the largest share is chosen among these
            self._add(
                "to-group", None if reason else estimate, decided, group, reason=reason,
                p=None if p is None else min(1.0, p * n_candidates),
                ideal=float(ideals[index]) if differences and np.isfinite(ideals[index]) else None,
            )  # fmt: skip

    def add_agreement(self, expected: NDArray[np.int64]) -> None:
        """Share of predictions that equal the expected group; p from permuting the expected groups."""
        predictions = self.predictions
        decided = (predictions.predicted >= 0) & (expected >= 0)
        agree = decided & (predictions.predicted == expected)
        totals = predictions.mentions.mean_per_image(np.column_stack([agree, decided]).astype(np.float64))
        reason = None if decided.any() else "no caption has a score that tells the groups apart"
        estimate = None if reason else bootstrap(totals, divide_columns, self.resamples)[0]
        self._add(
            "as-said",
            estimate,
            decided,
            reason=reason,
            p=None if reason else self._agreement_p(expected, decided),
        )

    def _agreement_p(self, expected: NDArray[np.int64], decided: NDArray[np.bool_]) -> float:
        mentions, groups = self.predictions.mentions, len(self._groups)
        used = np.flatnonzero(decided)
        truth, predicted, weight = expected[used], self.predictions.predicted[used], mentions.weight[used]
        truth_shares, predicted_shares = (
            np.bincount(groups_of, weights=weight, minlength=groups) / weight.sum()
            for groups_of in (truth, predicted)
        )
        expected_agreement = float(truth_shares @ predicted_shares)

        def distance(order: NDArray[np.int64]) -> Values:
            agreement = float(weight @ (truth[order] == predicted)) / float(weight.sum())
            return np.array([abs(agreement - expected_agreement)])

        return float(
            permutation_test(
                distance, mentions.image_index[used], self.resamples.seed, self.resamples.n_resamples
            )[0]
        )

    def add_scores(self) -> None:
        """Mean scores by group, and the mean over captions of a group's share of a caption's scores.

        Captions whose scores are all 0 have no shares.
        """
        predictions, groups = self.predictions, len(self._groups)
        scores = np.where(predictions.scored[:, None], predictions.scores, 0.0)
        score_shares = shares(scores)
        has_shares = predictions.scored & np.isfinite(score_shares).all(axis=1)
        for term, values, mask in (
            ("score", scores, predictions.scored),
            ("ratio", score_shares, has_shares),
        ):
            reason = None if mask.any() else "no caption has a score"
            columns = np.where(mask[:, None], values, 0.0)
            totals = predictions.mentions.mean_per_image(np.column_stack([columns, mask]))

            def means(t: Values) -> Values:
                return ratio(t[:, :-1], t[:, -1:])

            estimates = bootstrap(totals, means, self.resamples)
            if term == "ratio":
                _, overall = largest_share(totals, means, self.resamples, groups)
            else:
                overall = bootstrap(totals, lambda t: means(t).mean(axis=1), self.resamples)[0]
            for group, estimate in [(None, overall), *zip(self._groups, estimates, strict=True)]:
                self._add(term, None if reason else estimate, mask, group, reason=reason)

    def add_confusion(self, source: str, named_groups: NDArray[np.int64]) -> None:
        """Confusion matrix of named and predicted groups: a row for each pair."""
        predicted, eligible = self.predictions.predicted, self.predictions.eligible
        for index, name in enumerate(self._groups):
            row_mask, item = eligible & (named_groups == index), f"{source}: {name}"
            for predicted_index, group in enumerate(self._groups):
                mask = row_mask & (predicted == predicted_index)
                self._add("predicted", self._count(mask), mask, group, row_mask, item=item)
            mask = row_mask & (predicted == _UNDECIDED)
            self._add("undecided", self._count(mask), mask, None, row_mask, item=item)


def groups_from_captions(mentions: CaptionMentions) -> NDArray[np.int64]:
    """Index of the one group that each caption names; -1 where it names none or several."""
    return np.where(mentions.n_groups == 1, mentions.named.argmax(axis=1), -1)


def groups_from_labels(
    mentions: CaptionMentions, labels: Mapping[str, str], groups: Sequence[str]
) -> NDArray[np.int64]:
    """Index of the labelled group of each caption's image; -1 without a label."""
    index_of = {group: number for number, group in enumerate(groups)}
    group_of_image = np.array(
        [index_of.get(labels.get(image, ""), -1) for image in mentions.images], dtype=np.int64
    )
    return group_of_image[mentions.image_index] if len(group_of_image) else np.zeros(0, dtype=np.int64)


def _one_hot(indices: NDArray[np.int64], size: int) -> Values:
    encoded = np.zeros((len(indices), size))
    known = indices >= 0
    encoded[np.flatnonzero(known), indices[known]] = 1.0
    return encoded


def _identity(totals: Values) -> Values:
    return totals
