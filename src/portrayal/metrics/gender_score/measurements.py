"""The rows of the Gender Score: one speaker's captions scored, summed up by group and by object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from portrayal.lexicon import NEUTRAL, Lexicon
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.cooccurrence import Objects, dealt_p
from portrayal.metrics.shared.language_scores.caption_groups import columns_of, memberships
from portrayal.metrics.shared.language_scores.caption_scores import Scorer, Scores
from portrayal.metrics.shared.language_scores.ratios import base_rates, largest_share, ratio, shares
from portrayal.metrics.shared.mentions import CaptionMentions, find_mentions
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
LISTED = 5  # images an object must be in to be listed unasked: classifiers know thousands that are seen once


@dataclass(frozen=True)
class Case:
    """One measurement under one set of settings."""

    study: Study
    builder: ResultBuilder
    attribute: str
    lexicon: Lexicon
    scorer: Scorer
    confidence: float | None
    both: str
    objects: str
    items: tuple[str, ...]
    synonyms: str | None
    seed: int
    n_resamples: int

    def measure(self, source: str, in_full: bool) -> None:
        """All rows; where it is one of several settings, not those of single objects."""
        mentions = find_mentions(self.study, source, self.lexicon)
        counted = memberships(mentions, self.lexicon, self.both)
        told = Told(
            mentions, self._scores(mentions, counted.sum(axis=1) > 0), counted, columns_of(self.lexicon)
        )
        rows = _Rows(self, replace(self.builder, settings=self.settings), source, told)
        rows.add_groups()
        if in_full:
            rows.add_objects()

    def _scores(self, mentions: CaptionMentions, which: NDArray[np.bool_]) -> Scores:
        """Of the captions that count; the others are nobody's, and a language model takes its time."""
        places = np.flatnonzero(which)
        images = [mentions.images[mentions.image[place]] for place in places]
        found = self.scorer.scores(images, [mentions.captions[place] for place in places])
        return Scores(*(_spread(values, places, len(which)) for values in astuple(found)))

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "lexicon": self.lexicon.label,
            **self.scorer.settings,
            "confidence": self.confidence,
            "both": self.both,
            "objects": self.told_of.how,
            "synonyms": self.told_of.synonyms,
        }

    @cached_property
    def told_of(self) -> Objects:
        """The objects that are told apart."""
        seen = {image: [one.text for one in some] for image, some in self.scorer.visual.things.items()}
        return Objects.of(seen, self.objects, self.items, self.synonyms)


@dataclass(frozen=True)
class Told:
    """A speaker's captions with their scores, and what each counts for; the last column may be neutral captions."""

    mentions: CaptionMentions
    scores: Scores
    counted: Values
    columns: tuple[str, ...]

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        return np.isfinite(self.scores.score)

    @cached_property
    def sums(self) -> Values:
        """Per image and column, the scores of its captions, every image counting once."""
        score = np.where(self.known, self.scores.score, 0.0)
        return self.mentions.share_per_image(self.counted * score[:, None])

    @cached_property
    def counts(self) -> Values:
        """Per image and column, its scored captions."""
        return self.mentions.share_per_image(self.counted * self.known[:, None])

    @property
    def groups(self) -> tuple[str, ...]:
        return self.mentions.groups


@dataclass(frozen=True)
class _Rows:
    case: Case
    builder: ResultBuilder
    source: str
    told: Told

    @cached_property
    def _groups(self) -> int:
        return len(self.told.groups)

    @cached_property
    def _evidence(self) -> Any:
        scores, mentions = self.told.scores, self.told.mentions
        texts = [self._seen_in(mentions.images[place]) for place in mentions.image]
        return mentions.described(
            objects=texts,
            likely=_rounded(scores.hypothesis),
            similarity=_rounded(scores.similarity),
            confidence=_rounded(scores.confidence),
            score=_rounded(scores.score),
        )

    def _seen_in(self, image: str) -> str:
        return ", ".join(one.text for one in self.case.scorer.visual.of(image))

    def add_groups(self) -> None:
        told, case = self.told, self.case
        draw = resampler(told.mentions.images, case.seed, case.n_resamples)
        totals = np.hstack([told.sums, told.counts])
        columns, groups = len(told.columns), self._groups

        def of_means(t: Values) -> Values:
            return shares(ratio(t[:, :groups], t[:, columns : columns + groups]))

        def of_sums(t: Values) -> Values:
            return shares(t[:, :groups])

        people = list(range(groups))
        whole = bootstrap(totals, lambda t: _all_people(t, columns, groups), draw)
        self._add("score", whole[0], None, people, draw)
        means = bootstrap(totals, lambda t: ratio(t[:, :columns], t[:, columns:]), draw)
        for place, column in enumerate(told.columns):
            self._add("score", means[place], column, [place], draw)
        p = self._dealt_means()
        rates = base_rates(case.study, case.attribute, case.lexicon)
        for term, part in (("to-group", of_means), ("to-group-sum", of_sums)):
            top, most = largest_share(totals, part, draw, groups)
            found = [(None, top, most), *zip(told.groups, people, bootstrap(totals, part, draw), strict=True)]
            for group, place, estimate in found:
                chosen = groups - 1 if group is None else 1  # the largest was chosen among so many others
                known = p[place] if term == "to-group" else None
                self._add(
                    term, estimate, group, people, draw, each=term == "to-group",
                    p=None if known is None else min(1.0, known * max(chosen, 1)),
                    ideal=rates.get(told.groups[place]) if term == "to-group-sum" else None,
                )  # fmt: skip
        if NEUTRAL in told.columns:
            to_neutral = bootstrap(totals, lambda t: _to_neutral(t, columns, groups), draw)
            self._add("to-neutral", to_neutral[groups], None, people, draw, beside=columns - 1)
            for place, group in enumerate(told.groups):
                self._add("to-neutral", to_neutral[place], group, [place], draw, beside=columns - 1)
        without = (told.counted.any(axis=1)) & ~told.known
        self.builder.add(
            "unscored", float(without.sum()), system=self.source, n=len(told.mentions.captions), n_unit="caption",
            evidence=told.mentions.evidence(without),
        )  # fmt: skip

    def _add(
        self,
        term: str,
        estimate: Estimate | None,
        group: str | None,
        columns: Sequence[int],
        draw: Resampler,
        each: bool = False,
        beside: int | None = None,
        p: float | None = None,
        ideal: float | None = None,
    ) -> None:
        """A number of all captions of some columns; with `each` it rests on each of them, and on those `beside` it."""
        told = self.told
        parts = [
            *([[column] for column in columns] if each else [list(columns)]),
            *([[beside]] if beside else []),
        ]
        support = [self._images(part) for part in parts]
        which = (told.counted[:, list(columns)].sum(axis=1) > 0) & told.known
        reason = None
        if estimate is None or estimate.value is None:
            empty = [
                told.columns[column]
                for part, n in zip(parts, support, strict=True)
                if not n
                for column in part
            ]
            named = " or ".join(empty)
            reason = (
                f"no caption of an image with a known object names {named}" if empty else "all scores are 0"
            )
        self.builder.add(
            term, estimate, system=self.source, group=group, n=self._images(columns), support=min(support),
            reason=reason, p=p, ideal=ideal, evidence=told.mentions.evidence(which, self._evidence), resampler=draw,
            in_brief=term != "score" or group is None,
        )  # fmt: skip

    def _images(self, columns: Sequence[int]) -> int:
        """In how many images a scored caption counts for one of these columns."""
        return int(np.count_nonzero(self.told.counts[:, list(columns)].sum(axis=1)))

    def _dealt_means(self) -> list[float | None]:
        """p of each group's part of the mean scores, from dealing captions' groups anew and leaving scores in place."""
        told, groups = self.told, self._groups
        use = np.flatnonzero((told.counted[:, :groups].sum(axis=1) > 0) & told.known)
        if not len(use):
            return [None] * groups
        named, weight = told.counted[use, :groups], told.mentions.weight[use]
        score = weight * told.scores.score[use]

        def distance(order: NDArray[np.int64]) -> Values:
            dealt = named[order]
            part = shares(ratio((score @ dealt)[None], (weight @ dealt)[None]))[0]
            return np.asarray(np.abs(part - 1 / groups))

        found = permutation_test(distance, told.mentions.image[use], self.case.seed, self.case.n_resamples)
        return [float(one) if np.isfinite(one) else None for one in found]

    # -- objects ------------------------------------------------------------------------------------------------

    def add_objects(self) -> None:
        told, case, groups = self.told, self.case, self._groups
        objects = case.told_of
        labels, shown = list(objects.labels), objects.beside(told.mentions)
        if not labels or not len(told.mentions.captions):
            return
        score = np.where(told.known, told.scores.score, 0.0)[:, None]
        counted = told.counted[:, :groups]
        to_image = told.mentions.to_image
        sums = [to_image @ shown.multiply((counted * score)[:, [g]]).tocsr() for g in range(groups)]
        counts = [
            to_image @ shown.multiply((counted * told.known[:, None])[:, [g]]).tocsr() for g in range(groups)
        ]
        n = np.asarray((sum(matrix for matrix in counts) > 0).sum(axis=0)).reshape(-1)
        keep = np.flatnonzero(n >= (0 if case.items else LISTED))
        if not len(keep):
            return
        labels = [labels[place] for place in keep]
        columns = sparse.hstack([matrix.tocsc()[:, keep] for matrix in (*sums, *counts)], format="csr")
        size = groups * len(labels)

        def cube(totals: Values) -> Values:
            return totals.reshape(len(totals), groups, len(labels))

        draw = resampler(told.mentions.images, case.seed, case.n_resamples)
        means = bootstrap(columns, lambda t: ratio(t[:, :size], t[:, size:]), draw)
        of_means = bootstrap(
            columns, lambda t: shares(cube(ratio(t[:, :size], t[:, size:]))).reshape(len(t), -1), draw
        )
        of_sums = bootstrap(columns, lambda t: shares(cube(t[:, :size])).reshape(len(t), -1), draw)
        value = np.where(told.known, told.scores.score, 0.0)
        beside = shown.tocsc()[:, keep]
        p = dealt_p(told.mentions, beside.tocsr(), counted, value, n[keep], case.seed, case.n_resamples)
        q = [benjamini_hochberg(p[g]) for g in range(groups)]
        rates = base_rates(case.study, case.attribute, case.lexicon)
        of_group = [np.asarray((matrix > 0).sum(axis=0)).reshape(-1)[keep] for matrix in counts]
        for index, label in enumerate(labels):
            with_object = np.asarray(beside[:, [index]].todense()).reshape(-1) > 0
            mine = [int(of_group[g][index]) for g in range(groups)]
            empty = " or ".join(group for group, images in zip(told.groups, mine, strict=True) if not images)
            for g, group in enumerate(told.groups):
                place = g * len(labels) + index
                which = with_object & (counted[:, g] > 0) & told.known
                captions = told.mentions.evidence(which, self._evidence)
                said = {"group": group, "item": label, "evidence": captions}
                nobody = f"no scored caption names {empty} beside it"
                images = int(n[keep][index])
                self._add_object(
                    "to-group-sum", of_sums[place], images, images, nobody, p=p[g][index], q=q[g][index],
                    ideal=rates.get(group), **said,
                )  # fmt: skip
                self._add_object(
                    "to-group", of_means[place], images, min(mine), nobody, in_brief=True, **said
                )
                nobody = f"no scored caption names {group} beside it"
                self._add_object("score", means[place], mine[g], mine[g], nobody, in_brief=True, **said)

    def _add_object(self, term: str, estimate: Estimate, n: int, support: int, why: str, **more: Any) -> None:
        reason = why if estimate.value is None else None
        self.builder.add(term, estimate, system=self.source, n=n, support=support, reason=reason, **more)


def _all_people(totals: Values, columns: int, groups: int) -> Values:
    """The mean over all captions that name a group."""
    return ratio(
        totals[:, :groups].sum(axis=1, keepdims=True),
        totals[:, columns : columns + groups].sum(axis=1, keepdims=True),
    )


def _to_neutral(totals: Values, columns: int, groups: int) -> Values:
    """Each group's mean over that of neutral captions, and last that of all people."""
    means = ratio(totals[:, :columns], totals[:, columns:])
    return ratio(
        np.hstack([means[:, :groups], _all_people(totals, columns, groups)]), means[:, [columns - 1]]
    )


def _spread(values: Values, places: NDArray[np.int64], size: int) -> Values:
    made = np.full(size, np.nan)
    made[places] = values
    return made


def _rounded(values: Values) -> list[float | None]:
    return [round(float(value), 6) if np.isfinite(value) else None for value in values]
