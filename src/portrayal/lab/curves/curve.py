"""A term held against its dial: what came out of the simulated studies, and the verdict on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from portrayal.lab.curves.simulate import Outcome
from portrayal.stats import wilson

MONOTONE = 0.95  # Spearman's correlation of a curve that follows its dial
MOST_ALARMS = 0.08
FEW_ALARMS = 0.02  # below this a test is called cautious, which the documentation explains
EXPECTED_ALARMS = 0.05
LEAST_COVERAGE = 0.9
REACTS = 0.1  # a term reacts to a dial that moves it by more than this part of its own range


@dataclass(frozen=True)
class Share:
    """A share of studies, with its interval."""

    value: float
    low: float
    high: float
    studies: int

    @classmethod
    def of(cls, answers: Sequence[bool | None], silence: bool | None = None) -> Share | None:
        """The share of yes. Who does not answer counts as `silence`, or not at all; None where nobody is left."""
        answers = [silence if answer is None else answer for answer in answers]
        known = [answer for answer in answers if answer is not None]
        if not known:
            return None
        low, high = wilson(sum(known), len(known))
        return cls(sum(known) / len(known), low, high, len(known))


@dataclass(frozen=True)
class Point:
    """One place on a response curve: the mean over studies of the value and of its interval."""

    scenes: int
    level: float
    value: float | None
    low: float | None
    high: float | None
    studies: int


@dataclass(frozen=True)
class Power:
    scenes: int
    level: float
    share: Share | None


@dataclass(frozen=True)
class Reaction:
    """What a dial does that should be ignored: the change of the value, and the alarms it sets off."""

    dial: str
    turned: float  # from 0 to here
    change: float | None  # mean over pairs of studies, at the level where there is something to find
    low: float | None
    high: float | None
    part_of_range: float | None
    alarms_before: Share | None  # where the term's own dial is at 0, and this one too
    alarms: Share | None  # where the term's own dial is at 0

    @property
    def reacts(self) -> bool:
        """A change that is neither small nor noise, or false alarms that come or go with the dial."""
        sure = self.low is not None and self.high is not None and not self.low <= 0 <= self.high
        if sure and self.part_of_range is not None and abs(self.part_of_range) > REACTS:
            return True
        if self.alarms is None or self.alarms_before is None:
            return False
        pairs = ((self.alarms, self.alarms_before), (self.alarms_before, self.alarms))
        return any(one.low > max(MOST_ALARMS, other.value) for one, other in pairs)


@dataclass(frozen=True)
class Curve:
    metric: str
    term: str
    dial: str
    falls: bool
    unit: str
    points: tuple[Point, ...]
    spearman: float | None
    alarm_scenes: int  # images of a study, for false alarms, coverage and reactions
    false_alarms: Share | None
    truth_at_zero: float | None
    coverage_at_zero: Share | None
    coverage_level: float
    truth: float | None
    coverage: Share | None
    power: tuple[Power, ...]
    reactions: tuple[Reaction, ...]

    @property
    def name(self) -> str:
        return f"{self.metric}:{self.term}"

    @property
    def monotone(self) -> bool:
        """In the claimed direction."""
        return self.spearman is not None and (-self.spearman if self.falls else self.spearman) > MONOTONE

    @property
    def follows(self) -> bool:
        """The curve is monotone, and its end is further from its start than noise is."""
        if not self.monotone:
            return False
        first, *_, last = _of_largest(self.points)
        if first.value is None or last.value is None:
            return False
        if last.low is None or last.high is None:  # it has no interval, so its order is all there is
            return True
        return not last.low <= first.value <= last.high

    @property
    def too_loud(self) -> bool:
        """More false alarms than are accepted, and more than chance makes of the expected share."""
        found = self.false_alarms
        return found is not None and found.value > MOST_ALARMS and found.low > EXPECTED_ALARMS

    @property
    def cautious(self) -> bool:
        found = self.false_alarms
        return found is not None and found.value < FEW_ALARMS and found.high < EXPECTED_ALARMS

    @property
    def failures(self) -> list[str]:
        """What the term does not hold, in sentences that begin with its verb."""
        found = []
        if not self.monotone:
            size = "undefined" if self.spearman is None else f"{self.spearman:.2f}"
            found.append(f"does not follow {self.dial}: Spearman's correlation is {size}")
        elif not self.follows:
            found.append(f"does not follow {self.dial}: its end is no further from its start than noise is")
        if self.too_loud and self.false_alarms is not None:
            found.append(f"alarms in {self.false_alarms.value:.1%} of studies where nothing is planted")
        for level, share in ((0.0, self.coverage_at_zero), (self.coverage_level, self.coverage)):
            if share is not None and share.high < LEAST_COVERAGE:
                found.append(
                    f"has intervals of which {share.value:.1%} hold the true value at {self.dial} {level:g}"
                )
        reacting = [reaction.dial for reaction in self.reactions if reaction.reacts]
        if reacting:
            found.append(f"reacts to dials it should ignore: {', '.join(reacting)}")
        return found


def mean_value(outcomes: Sequence[Outcome]) -> float | None:
    return _mean([one.value for one in outcomes])


def response(scenes: int, level: float, outcomes: Sequence[Outcome]) -> Point:
    return Point(
        scenes,
        level,
        mean_value(outcomes),
        _mean([one.low for one in outcomes]),
        _mean([one.high for one in outcomes]),
        len(outcomes),
    )


def spearman(points: Sequence[Point]) -> float | None:
    """Between level and value, over the points of the largest studies."""
    known = [(point.level, point.value) for point in _of_largest(points) if point.value is not None]
    if len(known) < 3 or len({value for _, value in known}) < 2:
        return None
    return float(stats.spearmanr(*zip(*known, strict=True)).statistic)


def reaction(
    dial: str,
    turned: float,
    before: Sequence[Outcome],
    after: Sequence[Outcome],
    alarms_before: Sequence[Outcome],
    alarms_after: Sequence[Outcome],
    full_range: float | None,
) -> Reaction:
    """`before` and `after` are the same studies with this dial at 0 and turned, so that they can be paired."""
    pairs = [(one.value, other.value) for one, other in zip(before, after, strict=True)]
    steps = np.array([b - a for a, b in pairs if a is not None and b is not None])
    change = low = high = part = None
    if len(steps) > 1:
        change = float(steps.mean())
        spread = float(stats.t.ppf(0.975, len(steps) - 1) * steps.std(ddof=1) / np.sqrt(len(steps)))
        low, high = change - spread, change + spread
        part = change / full_range if full_range else None
    quiet, loud = (alarm_share(some) for some in (alarms_before, alarms_after))
    return Reaction(dial, turned, change, low, high, part, quiet, loud)


def range_of(points: Sequence[Point]) -> float | None:
    """How far the term moves when its own dial goes all the way, in the largest studies."""
    ends = [point.value for point in _of_largest(points)]
    if len(ends) < 2 or ends[0] is None or ends[-1] is None:
        return None
    return ends[-1] - ends[0]


def alarm_share(outcomes: Sequence[Outcome], tests: bool | None = None) -> Share | None:
    """How often a term alarms. A study too small for an answer raises none; a term that never tests has no share."""
    alarms = [one.alarm for one in outcomes]
    tests = any(alarm is not None for alarm in alarms) if tests is None else tests
    return Share.of(alarms, silence=False) if tests else None


def _of_largest(points: Sequence[Point]) -> list[Point]:
    largest = max((point.scenes for point in points), default=0)
    return [point for point in points if point.scenes == largest]


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return float(np.mean(known)) if known and len(known) == len(numbers) else None
