"""The response curve of a term: summaries of the simulated studies, and the verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from portrayal.lab.curves.simulate import Outcome
from portrayal.stats import wilson

# A curve with a larger Spearman correlation follows its dial.
MIN_SPEARMAN = 0.95
MAX_FALSE_POSITIVE_RATE = 0.08
# A test with a lower false-positive rate is called conservative.
CONSERVATIVE_RATE = 0.02
NOMINAL_RATE = 0.05
MIN_COVERAGE = 0.9
# A term reacts to a dial that changes it by more than this part of its own range.
REACTION_THRESHOLD = 0.1


@dataclass(frozen=True)
class StudyShare:
    """A share of studies, with its 95 % CI (Wilson)."""

    value: float
    low: float
    high: float
    studies: int

    @classmethod
    def of(cls, answers: Sequence[bool | None], missing: bool | None = None) -> StudyShare | None:
        """Return the share of true answers. None counts as `missing`, or is left out; None where nothing is left."""
        answers = [missing if answer is None else answer for answer in answers]
        defined = [answer for answer in answers if answer is not None]
        if not defined:
            return None
        low, high = wilson(sum(defined), len(defined))
        return cls(sum(defined) / len(defined), low, high, len(defined))


@dataclass(frozen=True)
class CurvePoint:
    """One point of a response curve: the mean over studies of the value and of its interval."""

    scenes: int
    level: float
    value: float | None
    low: float | None
    high: float | None
    studies: int


@dataclass(frozen=True)
class PowerEstimate:
    """The share of studies with a significant result at one level of the dial."""

    scenes: int
    level: float
    share: StudyShare | None


@dataclass(frozen=True)
class Reaction:
    """The effect of a dial that a term should ignore: the change of the value and of the false-positive rate."""

    dial: str
    # The level of the dial, compared with 0.
    turned: float
    # Mean over pairs of studies, at the level `coverage_level` of the term's own dial.
    change: float | None
    low: float | None
    high: float | None
    part_of_range: float | None
    # Where the term's own dial and this one are at 0.
    false_positive_rate_before: StudyShare | None
    # Where the term's own dial is at 0 and this one is turned up.
    false_positive_rate: StudyShare | None

    @property
    def reacts(self) -> bool:
        """Whether the change is significant and not small, or the false-positive rate changes with the dial."""
        significant = self.low is not None and self.high is not None and not self.low <= 0 <= self.high
        if significant and self.part_of_range is not None and abs(self.part_of_range) > REACTION_THRESHOLD:
            return True
        if self.false_positive_rate is None or self.false_positive_rate_before is None:
            return False
        pairs = (
            (self.false_positive_rate, self.false_positive_rate_before),
            (self.false_positive_rate_before, self.false_positive_rate),
        )
        return any(rate.low > max(MAX_FALSE_POSITIVE_RATE, reference.value) for rate, reference in pairs)


@dataclass(frozen=True)
class Curve:
    metric: str
    term: str
    dial: str
    falls: bool
    unit: str
    points: tuple[CurvePoint, ...]
    spearman: float | None
    # Images of a study, for false positives, coverage and reactions.
    study_scenes: int
    false_positive_rate: StudyShare | None
    truth_at_zero: float | None
    coverage_at_zero: StudyShare | None
    coverage_level: float
    truth: float | None
    coverage: StudyShare | None
    power: tuple[PowerEstimate, ...]
    reactions: tuple[Reaction, ...]

    @property
    def name(self) -> str:
        return f"{self.metric}:{self.term}"

    @property
    def monotone(self) -> bool:
        """Whether the curve is monotone in the claimed direction."""
        return self.spearman is not None and (-self.spearman if self.falls else self.spearman) > MIN_SPEARMAN

    @property
    def follows(self) -> bool:
        """Whether the curve is monotone, and the start value is outside the interval at its end."""
        if not self.monotone:
            return False
        first, *_, last = _of_largest(self.points)
        if first.value is None or last.value is None:
            return False
        # Without an interval, the order is the only evidence.
        if last.low is None or last.high is None:
            return True
        return not last.low <= first.value <= last.high

    @property
    def anti_conservative(self) -> bool:
        """Whether the false-positive rate is above the maximum and significantly above the nominal rate."""
        rate = self.false_positive_rate
        return rate is not None and rate.value > MAX_FALSE_POSITIVE_RATE and rate.low > NOMINAL_RATE

    @property
    def conservative(self) -> bool:
        """Whether the false-positive rate is significantly below the nominal rate."""
        rate = self.false_positive_rate
        return rate is not None and rate.value < CONSERVATIVE_RATE and rate.high < NOMINAL_RATE

    @property
    def failures(self) -> list[str]:
        """The criteria that the term fails, as sentences that begin with the verb."""
        sentences = []
        if not self.monotone:
            correlation = "undefined" if self.spearman is None else f"{self.spearman:.2f}"
            sentences.append(f"does not follow {self.dial}: Spearman's correlation is {correlation}")
        elif not self.follows:
            sentences.append(f"does not follow {self.dial}: start and end are not significantly different")
        if self.anti_conservative and self.false_positive_rate is not None:
            sentences.append(
                f"is significant in {self.false_positive_rate.value:.1%} of studies where nothing is planted"
            )
        for level, share in ((0.0, self.coverage_at_zero), (self.coverage_level, self.coverage)):
            if share is not None and share.high < MIN_COVERAGE:
                sentences.append(
                    f"has intervals of which {share.value:.1%} cover the true value at {self.dial} {level:g}"
                )
        reacting = [reaction.dial for reaction in self.reactions if reaction.reacts]
        if reacting:
            sentences.append(f"reacts to dials it should ignore: {', '.join(reacting)}")
        return sentences


def mean_value(outcomes: Sequence[Outcome]) -> float | None:
    return _mean([outcome.value for outcome in outcomes])


def curve_point(scenes: int, level: float, outcomes: Sequence[Outcome]) -> CurvePoint:
    return CurvePoint(
        scenes,
        level,
        mean_value(outcomes),
        _mean([outcome.low for outcome in outcomes]),
        _mean([outcome.high for outcome in outcomes]),
        len(outcomes),
    )


def spearman(points: Sequence[CurvePoint]) -> float | None:
    """Return Spearman's correlation of level and value over the points of the largest studies, or None."""
    known = [(point.level, point.value) for point in _of_largest(points) if point.value is not None]
    if len(known) < 3 or len({value for _, value in known}) < 2:
        return None
    return float(stats.spearmanr(*zip(*known, strict=True)).statistic)


def reaction(
    dial: str,
    turned: float,
    before: Sequence[Outcome],
    after: Sequence[Outcome],
    null_before: Sequence[Outcome],
    null_after: Sequence[Outcome],
    full_range: float | None,
) -> Reaction:
    """Return the reaction to a dial that should be ignored.

    `before` and `after` are the same studies with this dial at 0 and at `turned`, so the differences are paired.
    `null_before` and `null_after` are the same where the term's own dial is at 0.
    """
    pairs = [(first.value, second.value) for first, second in zip(before, after, strict=True)]
    differences = np.array([b - a for a, b in pairs if a is not None and b is not None])
    change = low = high = part = None
    if len(differences) > 1:
        change = float(differences.mean())
        half_width = float(
            stats.t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
        )
        low, high = change - half_width, change + half_width
        part = change / full_range if full_range else None
    rate_before, rate_after = (rejection_rate(outcomes) for outcomes in (null_before, null_after))
    return Reaction(dial, turned, change, low, high, part, rate_before, rate_after)


def range_of(points: Sequence[CurvePoint]) -> float | None:
    """Return the change of the term from the lowest to the highest level of its dial, in the largest studies."""
    ends = [point.value for point in _of_largest(points)]
    if len(ends) < 2 or ends[0] is None or ends[-1] is None:
        return None
    return ends[-1] - ends[0]


def rejection_rate(outcomes: Sequence[Outcome], tests: bool | None = None) -> StudyShare | None:
    """Return the share of studies in which a term is significant.

    A study that is too small to test counts as not significant; a term that never tests has no share.
    """
    decisions = [outcome.significant for outcome in outcomes]
    tests = any(decision is not None for decision in decisions) if tests is None else tests
    return StudyShare.of(decisions, missing=False) if tests else None


def _of_largest(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    largest = max((point.scenes for point in points), default=0)
    return [point for point in points if point.scenes == largest]


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return float(np.mean(known)) if known and len(known) == len(numbers) else None
