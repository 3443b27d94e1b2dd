"""The comparison behind a sentence: which numbers it is about, their difference, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.report.tables.layout import is_too_few
from portrayal.results import HUMAN, Measurement, Results
from portrayal.statements import GROUPS, HUMAN_CAPTIONS, IDEAL, ZERO, Statement
from portrayal.stats import Interval, correlation_of, difference

ALPHA = 0.05
_PERMUTATIONS = 100  # are made in hundreds, 200 of them at least
_FEWEST_PERMUTATIONS = 200
_APART = (
    "kind",
    "attack",
    "groups",
)  # settings that make another case of a statement, not another way to compute it


@dataclass(frozen=True)
class Compared:
    """One statement about one system: the number, what it is compared with, and the test of their difference.

    `gap` is the number less what it is compared with; None where it cannot be tested. `p_itself` tests the gap, `p`
    also whether it goes beyond that of human captions. `human` holds the rows of human captions that stand beside a
    comparison of groups or with an ideal, `beyond_human` how far the gap is from theirs. `pairs` says among how many
    pairs of groups the one compared was chosen: its interval holds for all of them at once; `left_out` are rows of
    groups that cannot be among them, and `human_left_out` rows of human captions that should stand beside and cannot be
    compared. `others` are rows of the same number under other settings, `beside` rows of other terms, and `meanings`
    says what each term is.
    """

    statement: Statement
    row: Measurement
    versus: Measurement | None = None
    gap: Interval | None = None
    p: float | None = None
    p_itself: float | None = None
    pairs: int = 1
    left_out: tuple[Measurement, ...] = ()
    human_left_out: tuple[Measurement, ...] = ()
    human: tuple[Measurement, ...] = ()
    beyond_human: Interval | None = None
    others: tuple[Measurement, ...] = ()
    beside: tuple[Measurement, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    remainder: Measurement | None = None
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class _Number:
    """A number's interval, and its resamples where they are known: which they are, and its value in each."""

    interval: Interval
    sample: str = ""
    draws: NDArray[np.float64] | None = None

    def less(self, other: _Number) -> _Number:
        """self - other. What both share (images, most of all) is in the resamples of both."""
        if self.draws is None or other.draws is None or len(self.draws) != len(other.draws):
            return _Number(difference(self.interval, other.interval))
        if self.sample != other.sample:
            return _Number(difference(self.interval, other.interval))
        together = correlation_of(self.interval, other.interval, self.draws, other.draws)
        apart = difference(self.interval, other.interval, together)
        return _Number(apart, self.sample, self.draws - other.draws)


class Numbers:
    """The numbers of results that can be tested: defined, with bounds, and on enough images."""

    def __init__(self, results: Results):
        wanted = [m.id for m in results.measurements if m.item is None and m.low is not None]
        kept = results.replicates.filter(pl.col("id").is_in(wanted) & pl.col("draws").is_not_null())
        self._draws = {
            identifier: (sample, np.array(draws, dtype=np.float64))  # a null is undefined: nan
            for identifier, sample, draws in kept.iter_rows()
        }

    def of(self, m: Measurement) -> _Number | None:
        if m.value is None or m.low is None or m.high is None or is_too_few(m):
            return None
        return _Number(Interval(m.value, m.low, m.high), *self._draws.get(m.id, ("", None)))


def compare_all(
    statement: Statement, metric: str, rows: Sequence[Measurement], numbers: Numbers
) -> Iterator[Compared]:
    """The statement's comparison for each system, attribute and case that `rows` (of one metric) hold."""
    cases: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in rows:
        if m.metric == metric and m.system not in (None, HUMAN) and m.group is None and _fits(statement, m):
            case = str([m.settings.get(name) for name in _APART])
            cases.setdefault((m.system, m.attribute, case), []).append(m)
    seen: set[tuple[Any, ...]] = set()
    for row, *others in cases.values():
        compared = _COMPARE[statement.against](statement, row, rows, numbers)
        if compared is None:
            continue
        # Some numbers do not depend on the attribute and stand in the results once for each: one sentence is enough.
        sides = (m for m in (row, compared.versus) if m is not None)
        about = (row.system, *((m.value, m.low, m.high, m.n, m.reason) for m in sides))
        if statement.against == HUMAN_CAPTIONS and about in seen:
            continue
        seen.add(about)
        yield _with_context(compared, others, rows)


def _with_context(compared: Compared, others: list[Measurement], rows: Sequence[Measurement]) -> Compared:
    row, statement = compared.row, compared.statement
    beside = tuple(m for term in statement.beside for m in _same(row, rows, term=term) if m.group is None)
    remainder = next((m for m in _same(row, rows, term=statement.remainder) if m.group is None), None)
    group, mostly = compared.group, ""
    if statement.group_term:
        leads = [m for m in _same(row, rows, term=statement.group_term) if m.group and m.low and m.low > 0]
        group = max(leads, key=lambda m: m.value or 0.0).group if leads else None
        mostly = f", mostly {group}" if group else ", no group more than the others"
    values = {
        **row.settings,
        "system": row.system,
        "n": "an unknown number of" if row.n is None else row.n,
        "attribute": row.attribute or "the group",
        "group": group or "one group",
        "mostly": mostly,
        "other": compared.versus.group if compared.versus is not None else "another",
    }
    return replace(
        compared, others=tuple(others), beside=beside, group=group, remainder=remainder, values=values
    )


def _fits(statement: Statement, m: Measurement) -> bool:
    item = None if m.item is None else m.item.partition(" (")[0]  # a bracket tells a setting
    return (m.term, item) == (statement.term, statement.item) and all(
        m.settings.get(name) == value for name, value in statement.settings.items()
    )


def _against_ideal(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], numbers: Numbers
) -> Compared:
    """The value less its ideal. It is significant where it is by itself, and beyond that of human captions."""
    number = numbers.of(row)
    ideal = 0.0 if statement.against == ZERO else row.ideal
    if number is None or ideal is None:  # what is not known is not 0
        return Compared(statement, row)
    gap = _from(ideal, number)
    p = _p_of(row, gap.interval.p())
    compared = Compared(statement, row, gap=gap.interval, p=p, p_itself=p)
    human = _human(row, rows)
    theirs = None if human is None else numbers.of(human)
    if human is None or (human.ideal is None and statement.against == IDEAL):
        return compared
    if theirs is None:
        return replace(compared, human_left_out=(human,))
    beyond = gap.less(_from(human.ideal or 0.0, theirs)).interval
    return replace(compared, p=max(p, _p_beyond(gap.interval, beyond)), human=(human,), beyond_human=beyond)


def _p_of(row: Measurement, by_interval: float) -> float:
    """The row's own p; where permutations could not have given a smaller one, that of its interval."""
    if row.p is None:
        return by_interval
    return min(row.p, by_interval) if _at_floor(row.p) else row.p


def _at_floor(p: float) -> bool:
    """Whether none of the permutations went as far: p is then 1 / (1 + N), where N, which rows do not hold, is a number
    of hundreds. Of another N the permutations alone decide, which errs on the careful side."""
    if not 0 < p < 1 / _FEWEST_PERMUTATIONS or abs(1 / p - round(1 / p)) > 1e-6:
        return False
    return (round(1 / p) - 1) % _PERMUTATIONS == 0


def _from(ideal: float, number: _Number) -> _Number:
    interval = number.interval
    moved = Interval(interval.value - ideal, interval.low - ideal, interval.high - ideal)
    return replace(number, interval=moved)


def _p_beyond(gap: Interval, beyond: Interval) -> float:
    """p of being beyond human captions; 1 where theirs is larger."""
    return beyond.p() if beyond.value * gap.value > 0 else 1.0


def _against_human(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], numbers: Numbers
) -> Compared | None:
    human = _human(row, rows)
    if human is None or human.value is None:
        return None  # there is nobody to compare with, which is no sentence
    ours, theirs = numbers.of(row), numbers.of(human)
    if ours is None or theirs is None:
        return Compared(statement, row, human)
    gap = ours.less(theirs).interval
    return Compared(statement, row, human, gap, gap.p(), gap.p())


def _between_groups(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], numbers: Numbers
) -> Compared | None:
    """The two groups that differ most. It is significant where it is by itself, and beyond that of human captions."""
    worse = statement.worse or {"lower": "higher", "higher": "lower"}.get(row.better or "")
    if worse not in ("lower", "higher"):
        return None  # who is worse off is not known
    listed = [m for m in _same(row, rows) if m.group is not None]
    known = {m.id: number for m in listed if (number := numbers.of(m)) is not None}
    groups = [m for m in listed if m.id in known]
    if len(groups) < 2:
        few = next((m for m in listed if is_too_few(m)), None)
        return Compared(statement, few) if few is not None else None
    ordered = sorted(groups, key=lambda m: m.value or 0.0, reverse=worse == "higher")
    first, last = ordered[0], ordered[-1]
    gap, pairs = known[first.id].less(known[last.id]), math.comb(len(groups), 2)
    p = min(1.0, gap.interval.p() * pairs)
    own = next((m for m in _same(row, rows, term=statement.gap_term) if m.group is None), None)
    if own is not None and own.low is not None and own.high is not None and own.value is not None:
        if pairs == 1:  # the same difference, as the table has it
            value = gap.interval.value
            low, high = (own.low, own.high) if value > 0 else (-own.high, -own.low)
            gap = replace(gap, interval=Interval(value, min(low, value), max(high, value)))
            p = gap.interval.p()
        p = _p_of(own, p)
    gap = replace(gap, interval=gap.interval.simultaneous(pairs))
    left_out = tuple(m for m in listed if m.id not in known)
    compared = Compared(
        statement, first, last, gap.interval, p, p, pairs, left_out=left_out, group=first.group
    )
    human = [m for m in (_human(first, rows), _human(last, rows)) if m is not None]
    theirs = [numbers.of(m) for m in human]
    if len(human) < 2:
        return compared
    if theirs[0] is None or theirs[1] is None:
        return replace(compared, human_left_out=tuple(m for m in human if numbers.of(m) is None))
    beyond = gap.less(theirs[0].less(theirs[1])).interval
    return replace(
        compared, p=max(p, _p_beyond(gap.interval, beyond)), human=tuple(human), beyond_human=beyond
    )


_COMPARE = {
    IDEAL: _against_ideal,
    ZERO: _against_ideal,
    HUMAN_CAPTIONS: _against_human,
    GROUPS: _between_groups,
}


def _same(row: Measurement, rows: Sequence[Measurement], term: str | None = None) -> list[Measurement]:
    """The rows of every group of the same number, or of another term beside it."""
    wanted = (row.metric, row.term if term is None else term, row.system, row.attribute, row.item, row.unit)
    return [
        m
        for m in rows
        if (m.metric, m.term, m.system, m.attribute, m.item, m.unit if term is None else row.unit) == wanted
        and m.settings == row.settings
    ]


def _human(row: Measurement, rows: Sequence[Measurement]) -> Measurement | None:
    """The same number of human captions; of several, the one whose settings are most alike."""
    wanted = (row.metric, row.term, row.attribute, row.group, row.item, row.unit)
    found = [
        m
        for m in rows
        if m.system == HUMAN and (m.metric, m.term, m.attribute, m.group, m.item, m.unit) == wanted
    ]
    alike = [sum(m.settings.get(name) == value for name, value in row.settings.items()) for m in found]
    return found[alike.index(max(alike))] if found else None
