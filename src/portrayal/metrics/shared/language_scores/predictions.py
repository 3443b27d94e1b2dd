"""Which group a caption would be about, by a score for each: counts, shares, and what the caption and label said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.language_scores.ratios import largest_share, ratio, shares
from portrayal.metrics.shared.mentions import CaptionMentions
from portrayal.stats import Resampler, bootstrap, bootstrap_p, divide_columns, permutation_test

Values = NDArray[np.float64]
_NOT_DECIDED, _NOT_SCORED = -1, -2


@dataclass(frozen=True)
class Choices:
    """Scores of captions for each group; `asked` are the captions that are looked at, the others count for nothing."""

    mentions: CaptionMentions
    asked: NDArray[np.bool_]
    scores: Values  # (captions, groups), nan where a caption has none
    margin: float

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        return np.asarray(self.asked & np.isfinite(self.scores).all(axis=1), dtype=bool)

    @cached_property
    def predicted(self) -> NDArray[np.int64]:
        """The group with the highest score; -1 where the next one is as high (within the margin), -2 without scores."""
        filled = np.where(self.known[:, None], self.scores, 0.0)
        order = np.sort(filled, axis=1)
        clear = order[:, -1] - order[:, -2] > self.margin
        found = np.where(clear, filled.argmax(axis=1), _NOT_DECIDED)
        return np.where(self.known, found, _NOT_SCORED)

    def add(
        self,
        builder: ResultBuilder,
        source: str,
        draw: Resampler,
        evidence: Any,
        said: Mapping[str, NDArray[np.int64]],
        expected: NDArray[np.int64] | None,
    ) -> None:
        """The rows. `said` has, by what it is ("caption", "label"), the group that others say; -1 where they say none.

        `expected`, where there is one, is the group that predictions are held against.
        """
        rows = _Rows(self, builder, source, draw, evidence)
        rows.add_counts()
        rows.add_shares(expected)
        rows.add_scores()
        if expected is not None:
            rows.add_agreement(expected)
        for source, groups in said.items():
            rows.add_confusion(source, groups)


@dataclass(frozen=True)
class _Rows:
    choices: Choices
    builder: ResultBuilder
    source: str
    draw: Resampler
    evidence: Any

    @property
    def _groups(self) -> tuple[str, ...]:
        return self.choices.mentions.groups

    def _put(
        self,
        term: str,
        estimate: Any,
        which: NDArray[np.bool_],
        group: str | None = None,
        of: NDArray[np.bool_] | None = None,
        **more: Any,
    ) -> None:
        """A number of some captions; a count is one `of` others, by default of all that were asked about."""
        mentions = self.choices.mentions
        counted = self.builder.card.term(term).unit == "count"  # out of how many, not how many again
        images = mentions.image[(self.choices.asked if of is None else of) if counted else which]
        self.builder.add(
            term, estimate, system=self.source, group=group, n=len(set(images.tolist())),
            evidence=mentions.evidence(which, self.evidence), resampler=self.draw,
            in_brief=term != "predicted" or group is None, **more,
        )  # fmt: skip

    def _once(self, which: NDArray[np.bool_]) -> Any:
        counted = self.choices.mentions.share_per_image(which.astype(np.float64)[:, None])
        return bootstrap(counted, _itself, self.draw)[0]

    def add_counts(self) -> None:
        choices = self.choices
        decided = choices.predicted >= 0
        self._put("predicted", self._once(decided), decided)
        for place, group in enumerate(self._groups):
            which = choices.predicted == place
            self._put("predicted", self._once(which), which, group)
        for term, which in (
            ("undecided", choices.predicted == _NOT_DECIDED),
            ("unscored", choices.asked & ~choices.known),
        ):
            self._put(term, self._once(which), which)

    def add_shares(self, expected: NDArray[np.int64] | None) -> None:
        """Each group's part of the predictions, and whether it is that of what was said of the same captions."""
        choices, groups = self.choices, len(self._groups)
        decided = choices.predicted >= 0
        columns = _one_hot(np.where(decided, choices.predicted, -1), groups)
        if expected is not None:
            columns = np.hstack([columns, _one_hot(np.where(decided, expected, -1), groups)])
        totals = choices.mentions.share_per_image(columns)
        why = None if decided.any() else "no caption has a score that tells the groups apart"
        found = bootstrap(totals, lambda t: shares(t[:, :groups]), self.draw)
        top, most = largest_share(totals, lambda t: shares(t[:, :groups]), self.draw, groups)
        apart = []
        if expected is not None:
            apart = bootstrap(totals, lambda t: shares(t[:, :groups]) - shares(t[:, groups:]), self.draw)
            ideals = shares(totals.sum(axis=0)[None, groups:])[0]
        for group, place, estimate in [
            (None, top, most),
            *zip(self._groups, range(groups), found, strict=True),
        ]:
            p = bootstrap_p(apart[place].replicates) if apart and not why else None
            chosen = max(groups - 1, 1) if group is None else 1  # the largest was chosen among so many others
            self._put(
                "to-group", None if why else estimate, decided, group, reason=why,
                p=None if p is None else min(1.0, p * chosen),
                ideal=float(ideals[place]) if apart and np.isfinite(ideals[place]) else None,
            )  # fmt: skip

    def add_agreement(self, said: NDArray[np.int64]) -> None:
        """How many predictions are what was said; p from dealing to the captions anew what they say."""
        choices = self.choices
        decided = (choices.predicted >= 0) & (said >= 0)
        agree = decided & (choices.predicted == said)
        totals = choices.mentions.share_per_image(np.column_stack([agree, decided]).astype(np.float64))
        why = None if decided.any() else "no caption has a score that tells the groups apart"
        estimate = None if why else bootstrap(totals, divide_columns, self.draw)[0]
        self._put("as-said", estimate, decided, reason=why, p=None if why else self._dealt(said, decided))

    def _dealt(self, said: NDArray[np.int64], decided: NDArray[np.bool_]) -> float:
        mentions, groups = self.choices.mentions, len(self._groups)
        use = np.flatnonzero(decided)
        says, predicted, weight = said[use], self.choices.predicted[use], mentions.weight[use]
        shares_said, shares_predicted = (
            np.bincount(one, weights=weight, minlength=groups) / weight.sum() for one in (says, predicted)
        )
        by_chance = float(shares_said @ shares_predicted)

        def distance(order: NDArray[np.int64]) -> Values:
            agreeing = float(weight @ (says[order] == predicted)) / float(weight.sum())
            return np.array([abs(agreeing - by_chance)])

        return float(
            permutation_test(distance, mentions.image[use], self.draw.seed, self.draw.n_resamples)[0]
        )

    def add_scores(self) -> None:
        """Mean scores by group, and the mean over captions of a group's part of a caption's scores.

        Captions whose scores are all 0 have no parts.
        """
        choices, groups = self.choices, len(self._groups)
        scores = np.where(choices.known[:, None], choices.scores, 0.0)
        parts = shares(scores)
        told = choices.known & np.isfinite(parts).all(axis=1)
        for term, values, which in (("score", scores, choices.known), ("ratio", parts, told)):
            why = None if which.any() else "no caption has a score"
            columns = np.where(which[:, None], values, 0.0)
            totals = choices.mentions.share_per_image(np.column_stack([columns, which]))

            def means(t: Values) -> Values:
                return ratio(t[:, :-1], t[:, -1:])

            found = bootstrap(totals, means, self.draw)
            if term == "ratio":
                _, whole = largest_share(totals, means, self.draw, groups)
            else:
                whole = bootstrap(totals, lambda t: means(t).mean(axis=1), self.draw)[0]
            for group, estimate in [(None, whole), *zip(self._groups, found, strict=True)]:
                self._put(term, None if why else estimate, which, group, reason=why)

    def add_confusion(self, source: str, said: NDArray[np.int64]) -> None:
        """How captions of which something is said were decided: a row for each group said and predicted."""
        predicted, asked = self.choices.predicted, self.choices.asked
        for says, name in enumerate(self._groups):
            mine, item = asked & (said == says), f"{source}: {name}"
            for place, group in enumerate(self._groups):
                which = mine & (predicted == place)
                self._put("predicted", self._once(which), which, group, mine, item=item)
            which = mine & (predicted == _NOT_DECIDED)
            self._put("undecided", self._once(which), which, None, mine, item=item)


def said_by_caption(mentions: CaptionMentions) -> NDArray[np.int64]:
    """The one group a caption names; -1 where it names none or several."""
    return np.where(mentions.how_many == 1, mentions.named.argmax(axis=1), -1)


def said_by_label(
    mentions: CaptionMentions, labels: Mapping[str, str], groups: Sequence[str]
) -> NDArray[np.int64]:
    """The group of each caption's image by its label; -1 where it has none."""
    place = {group: number for number, group in enumerate(groups)}
    of_image = np.array([place.get(labels.get(image, ""), -1) for image in mentions.images], dtype=np.int64)
    return of_image[mentions.image] if len(of_image) else np.zeros(0, dtype=np.int64)


def _one_hot(places: NDArray[np.int64], size: int) -> Values:
    made = np.zeros((len(places), size))
    known = places >= 0
    made[np.flatnonzero(known), places[known]] = 1.0
    return made


def _itself(totals: Values) -> Values:
    return totals
