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
from portrayal.metrics.alongside import Objects, dealt_p
from portrayal.metrics.findings import Findings
from portrayal.metrics.relating.scoring import Scorer, Scores
from portrayal.metrics.relating.shares import base_rates, ratio, shares
from portrayal.metrics.relating.speakers import columns_of, memberships
from portrayal.metrics.speech import Speech, listen
from portrayal.stats import (
    Estimate,
    benjamini_hochberg,
    bootstrap,
    permutation_p,
    permutations,
    resampler,
)
from portrayal.study import Study

Values = NDArray[np.float64]
LISTED = 5  # images an object must be in to be listed unasked: classifiers know thousands that are seen once


@dataclass(frozen=True)
class Case:
    """One measurement under one set of settings."""

    study: Study
    findings: Findings
    attribute: str
    lexicon: Lexicon
    scorer: Scorer
    confidence: float | None
    both: str
    objects: str
    items: tuple[str, ...]
    synonyms: str | None
    seed: int
    draws: int

    def measure(self, speaker: str, in_full: bool) -> None:
        """All rows; where it is one of several settings, not those of single objects."""
        speech = listen(self.study, speaker, self.lexicon)
        counted = memberships(speech, self.lexicon, self.both)
        told = Told(speech, self._scores(speech, counted.sum(axis=1) > 0), counted, columns_of(self.lexicon))
        rows = _Rows(self, replace(self.findings, settings=self.settings), speaker, told)
        rows.add_groups()
        if in_full:
            rows.add_objects()

    def _scores(self, speech: Speech, which: NDArray[np.bool_]) -> Scores:
        """Of the captions that count; the others are nobody's, and a language model takes its time."""
        places = np.flatnonzero(which)
        images = [speech.images[speech.image[place]] for place in places]
        found = self.scorer.scores(images, [speech.captions[place] for place in places])
        return Scores(*(_spread(values, places, len(which)) for values in astuple(found)))

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "lexicon": self.lexicon.label,
            **self.scorer.settings,
            "confidence": self.confidence,
            "both": self.both,
            "objects": self.objects,
        }


@dataclass(frozen=True)
class Told:
    """A speaker's captions with their scores, and what each counts for; the last column may be neutral captions."""

    speech: Speech
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
        return self.speech.share_per_image(self.counted * score[:, None])

    @cached_property
    def counts(self) -> Values:
        """Per image and column, its scored captions."""
        return self.speech.share_per_image(self.counted * self.known[:, None])

    @property
    def groups(self) -> tuple[str, ...]:
        return self.speech.groups


@dataclass(frozen=True)
class _Rows:
    case: Case
    findings: Findings
    speaker: str
    told: Told

    @cached_property
    def _groups(self) -> int:
        return len(self.told.groups)

    @cached_property
    def _evidence(self) -> Any:
        scores, speech = self.told.scores, self.told.speech
        texts = [self._seen_in(speech.images[place]) for place in speech.image]
        return speech.described(
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
        draw = resampler(told.speech.images, case.seed, case.draws)
        totals = np.hstack([told.sums, told.counts])
        columns, groups = len(told.columns), self._groups
        means = bootstrap(totals, lambda t: ratio(t[:, :columns], t[:, columns:]), draw)
        whole = bootstrap(totals, lambda t: _all_people(t, columns, groups), draw)
        of_means = bootstrap(
            totals, lambda t: shares(ratio(t[:, :groups], t[:, columns : columns + groups])), draw
        )
        of_sums = bootstrap(totals, lambda t: shares(t[:, :groups]), draw)
        to_neutral = bootstrap(totals, lambda t: _to_neutral(t, columns, groups), draw)
        rates = base_rates(case.study, case.attribute, case.lexicon)
        p = self._dealt_means()
        self._add("score", whole[0], None, self._missing(range(groups), any_of=True), draw)
        for place, column in enumerate(told.columns):
            self._add("score", means[place], column, self._missing([place]), draw)
        nothing = self._missing(range(groups))
        for term, found in (("to-group", of_means), ("to-group-sum", of_sums)):
            why = nothing if term == "to-group" else self._missing(range(groups), any_of=True)
            top = (
                int(np.nanargmax([np.nan if one.value is None else one.value for one in found]))
                if not why
                else 0
            )
            for place, group in _with_all(top, told.groups):
                self._add(
                    term, None if why else found[place], group, why, draw,
                    p=p[place] if term == "to-group" and not why else None,
                    ideal=rates.get(told.groups[place]) if term == "to-group-sum" else None,
                )  # fmt: skip
        if NEUTRAL in told.columns:
            for place, group in _with_all(groups, told.groups):
                missing = self._missing([columns - 1, *([place] if group else [])])
                self._add("to-neutral", to_neutral[place], group, missing, draw)
        without = (told.counted.any(axis=1)) & ~told.known
        self.findings.add(
            "unscored", float(without.sum()), system=self.speaker, n=len(told.speech.captions), n_unit="caption",
            evidence=told.speech.evidence(without),
        )  # fmt: skip

    def _missing(self, columns: Sequence[int], any_of: bool = False) -> str | None:
        """Why a number of these columns is undefined: no caption of one of them (or of any) has a score."""
        empty = [self.told.columns[place] for place in columns if not self.told.counts[:, place].any()]
        if not empty or (any_of and len(empty) < len(list(columns))):
            return None
        return f"no caption of an image with a known object names {' or '.join(empty)}"

    def _add(
        self,
        term: str,
        estimate: Estimate | None,
        group: str | None,
        why: str | None,
        draw: Any,
        p: float | None = None,
        ideal: float | None = None,
    ) -> None:
        told = self.told
        place = None if group is None else told.columns.index(group)
        counted = told.counted[:, : self._groups].any(axis=1) if place is None else told.counted[:, place] > 0
        which = counted & told.known
        n = len(set(told.speech.image[which].tolist()))
        self.findings.add(
            term, None if why else estimate, system=self.speaker, group=group, n=n, reason=why, p=p, ideal=ideal,
            evidence=told.speech.evidence(which, self._evidence), resampler=draw,
            in_brief=term != "score" or group is None,
        )  # fmt: skip

    def _dealt_means(self) -> list[float | None]:
        """p of each group's part of the mean scores, from dealing groups to images anew and leaving scores in place."""
        told, groups = self.told, self._groups
        named, score = told.counts[:, :groups], told.sums[:, :groups].sum(axis=1)
        weight = named.sum(axis=1)
        use = weight > 0
        named = named[use]
        mean = score[use] / weight[use]
        if not use.any():
            return [None] * groups

        def distance(order: NDArray[np.int64]) -> Values:
            part = shares(ratio((named * mean[order][:, None]).sum(axis=0)[None], named.sum(axis=0)[None]))[0]
            return np.asarray(np.abs(part - 1 / groups))

        null = permutations(distance, len(named), self.case.seed, self.case.draws)
        found = permutation_p(distance(np.arange(len(named))), null)
        return [float(one) if np.isfinite(one) else None for one in found]

    # -- objects ------------------------------------------------------------------------------------------------

    def add_objects(self) -> None:
        told, case, groups = self.told, self.case, self._groups
        seen = {image: [one.text for one in some] for image, some in case.scorer.visual.things.items()}
        objects = Objects.of(seen, case.objects, case.items, case.synonyms)
        labels, shown = list(objects.labels), objects.beside(told.speech)
        if not labels or not len(told.speech.captions):
            return
        score = np.where(told.known, told.scores.score, 0.0)[:, None]
        counted = told.counted[:, :groups]
        to_image = told.speech.to_image
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

        draw = resampler(told.speech.images, case.seed, case.draws)
        means = bootstrap(columns, lambda t: ratio(t[:, :size], t[:, size:]), draw)
        of_means = bootstrap(
            columns, lambda t: shares(cube(ratio(t[:, :size], t[:, size:]))).reshape(len(t), -1), draw
        )
        of_sums = bootstrap(columns, lambda t: shares(cube(t[:, :size])).reshape(len(t), -1), draw)
        here = (to_image @ shown).tocsc()[:, keep].tocsr()
        p = dealt_p(here, told.sums[:, :groups], n[keep], case.seed, case.draws)
        q = [benjamini_hochberg(p[g]) for g in range(groups)]
        rates = base_rates(case.study, case.attribute, case.lexicon)
        by_object = shown.tocsc()[:, keep]
        for index, label in enumerate(labels):
            with_object = np.asarray(by_object[:, [index]].todense()).reshape(-1) > 0
            support = int(n[keep][index])
            for g, group in enumerate(told.groups):
                place = g * len(labels) + index
                which = with_object & (counted[:, g] > 0) & told.known
                for term, found in (("to-group-sum", of_sums), ("to-group", of_means), ("score", means)):
                    estimate, sums_only = found[place], term == "to-group-sum"
                    self.findings.add(
                        term, estimate, system=self.speaker, group=group, item=label,
                        n=len(set(told.speech.image[which].tolist())) if term == "score" else support,
                        reason=None if estimate.value is not None else f"no scored caption names {group} beside it",
                        p=p[g][index] if sums_only else None, q=q[g][index] if sums_only else None,
                        ideal=rates.get(group) if sums_only else None,
                        evidence=told.speech.evidence(which, self._evidence) if sums_only else None,
                    )  # fmt: skip


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


def _with_all(place: int, groups: Sequence[str]) -> list[tuple[int, str | None]]:
    """Where the number of all people stands, and those of the groups."""
    return [(place, None), *enumerate(groups)]


def _rounded(values: Values) -> list[float | None]:
    return [round(float(value), 6) if np.isfinite(value) else None for value in values]
