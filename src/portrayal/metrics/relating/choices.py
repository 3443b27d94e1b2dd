"""Which group a caption would be about, by a score for each: counts, shares, and what the caption and label said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.findings import Findings
from portrayal.metrics.relating.shares import ratio, shares
from portrayal.metrics.speech import Speech
from portrayal.stats import Resampler, bootstrap, bootstrap_p

Values = NDArray[np.float64]
_NOT_DECIDED, _NOT_SCORED = -1, -2


@dataclass(frozen=True)
class Choices:
    """Scores of captions for each group; `asked` are the captions that are looked at, the others count for nothing."""

    speech: Speech
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
        findings: Findings,
        speaker: str,
        draw: Resampler,
        evidence: Any,
        said: Mapping[str, NDArray[np.int64]],
        expected: NDArray[np.int64] | None,
    ) -> None:
        """The rows. `said` has, by what it is ("caption", "label"), the group that others say; -1 where they say none.

        `expected`, where there is one, is the group that predictions are held against.
        """
        rows = _Rows(self, findings, speaker, draw, evidence)
        rows.add_counts()
        rows.add_shares(expected)
        rows.add_scores()
        for source, groups in said.items():
            rows.add_confusion(source, groups)


@dataclass(frozen=True)
class _Rows:
    choices: Choices
    findings: Findings
    speaker: str
    draw: Resampler
    evidence: Any

    @property
    def _groups(self) -> tuple[str, ...]:
        return self.choices.speech.groups

    def _put(
        self, term: str, estimate: Any, which: NDArray[np.bool_], group: str | None = None, **more: Any
    ) -> None:
        speech = self.choices.speech
        counted = self.findings.card.term(term).unit == "count"  # out of how many, not how many again
        images = speech.image[self.choices.asked if counted else which]
        self.findings.add(
            term, estimate, system=self.speaker, group=group, n=len(set(images.tolist())),
            evidence=speech.evidence(which, self.evidence), resampler=self.draw,
            in_brief=term != "predicted" or group is None, **more,
        )  # fmt: skip

    def _once(self, which: NDArray[np.bool_]) -> Any:
        counted = self.choices.speech.share_per_image(which.astype(np.float64)[:, None])
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
        totals = choices.speech.share_per_image(columns)
        why = None if decided.any() else "no caption has a score that tells the groups apart"
        found = bootstrap(totals, lambda t: shares(t[:, :groups]), self.draw)
        apart = (
            bootstrap(totals, lambda t: shares(t[:, :groups]) - shares(t[:, groups:]), self.draw)
            if expected is not None
            else []
        )
        ideals = (
            shares(totals.sum(axis=0)[None, groups:])[0] if expected is not None else np.full(groups, np.nan)
        )
        top = 0 if why else int(np.argmax([one.value or 0.0 for one in found]))
        for place, group in [(top, None), *enumerate(self._groups)]:
            self._put(
                "to-group", None if why else found[place], decided, group, reason=why,
                p=bootstrap_p(apart[place].replicates) if apart and not why else None,
                ideal=float(ideals[place]) if np.isfinite(ideals[place]) else None,
            )  # fmt: skip

    def add_scores(self) -> None:
        """Mean scores by group, and the mean over captions of a group's part of a caption's scores."""
        choices = self.choices
        known = choices.known.astype(np.float64)[:, None]
        filled = np.where(choices.known[:, None], choices.scores, 0.0)
        parts = np.where(choices.known[:, None], shares(filled), 0.0)
        why = None if choices.known.any() else "no caption has a score"
        for term, columns in (("score", filled), ("ratio", np.nan_to_num(parts))):
            totals = choices.speech.share_per_image(np.hstack([columns, known]))
            found = bootstrap(totals, lambda t: ratio(t[:, :-1], t[:, -1:]), self.draw)
            for place, group in enumerate(self._groups):
                self._put(term, None if why else found[place], choices.known, group, reason=why)

    def add_confusion(self, source: str, said: NDArray[np.int64]) -> None:
        """How captions of which something is said were decided: a row for each group said and predicted."""
        predicted = self.choices.predicted
        for says, name in enumerate(self._groups):
            for place, group in enumerate(self._groups):
                which = (said == says) & (predicted == place)
                self._put("predicted", self._once(which), which, group, item=f"{source}: {name}")
            which = (said == says) & (predicted == _NOT_DECIDED)
            self._put("undecided", self._once(which), which, item=f"{source}: {name}")


def said_by_caption(speech: Speech) -> NDArray[np.int64]:
    """The one group a caption names; -1 where it names none or several."""
    return np.where(speech.how_many == 1, speech.named.argmax(axis=1), -1)


def said_by_label(speech: Speech, labels: Mapping[str, str], groups: Sequence[str]) -> NDArray[np.int64]:
    """The group of each caption's image by its label; -1 where it has none."""
    place = {group: number for number, group in enumerate(groups)}
    of_image = np.array([place.get(labels.get(image, ""), -1) for image in speech.images], dtype=np.int64)
    return of_image[speech.image] if len(of_image) else np.zeros(0, dtype=np.int64)


def _one_hot(places: NDArray[np.int64], size: int) -> Values:
    made = np.zeros((len(places), size))
    known = places >= 0
    made[np.flatnonzero(known), places[known]] = 1.0
    return made


def _itself(totals: Values) -> Values:
    return totals
