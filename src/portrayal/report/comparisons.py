"""The comparison behind a sentence: which numbers it is about, their difference, and how sure that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from portrayal.report.layout import is_too_few
from portrayal.results import HUMAN, Measurement
from portrayal.statements import GROUPS, HUMAN_CAPTIONS, IDEAL, Statement
from portrayal.stats import Interval, difference

ALPHA = 0.05
_FEWEST_PERMUTATIONS = 1 / 200  # the smallest p that a quick audit's permutations can give
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
    pairs of groups the one compared was chosen: its interval holds for all of them at once. `others` are rows of the
    same number under other settings, `beside` rows of other terms, and `meanings` says what each term is.
    """

    statement: Statement
    row: Measurement
    versus: Measurement | None = None
    gap: Interval | None = None
    p: float | None = None
    p_itself: float | None = None
    pairs: int = 1
    human: tuple[Measurement, ...] = ()
    beyond_human: Interval | None = None
    others: tuple[Measurement, ...] = ()
    beside: tuple[Measurement, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    remainder: Measurement | None = None
    values: Mapping[str, object] = field(default_factory=dict)


def compare_all(statement: Statement, metric: str, rows: Sequence[Measurement]) -> Iterator[Compared]:
    """The statement's comparison for each system, attribute and case that `rows` (of one metric) hold."""
    cases: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in rows:
        if m.metric == metric and m.system not in (None, HUMAN) and m.group is None and _fits(statement, m):
            case = str([m.settings.get(name) for name in _APART])
            cases.setdefault((m.system, m.attribute, case), []).append(m)
    seen: set[tuple[Any, ...]] = set()
    for row, *others in cases.values():
        compared = _COMPARE[statement.against](statement, row, rows)
        if compared is None:
            continue
        # Some numbers do not depend on the attribute and stand in the results once for each: one sentence is enough.
        about = (row.system, row.value, row.low, row.high, row.n, row.reason)
        if statement.against == HUMAN_CAPTIONS and about in seen:
            continue
        seen.add(about)
        yield _with_context(compared, others, rows)


def _with_context(compared: Compared, others: list[Measurement], rows: Sequence[Measurement]) -> Compared:
    row, statement = compared.row, compared.statement
    beside = tuple(m for term in statement.beside for m in _same(row, rows, term=term) if m.group is None)
    remainder = next((m for m in _same(row, rows, term=statement.remainder) if m.group is None), None)
    group = compared.group
    if statement.group_term:
        shown = [m for m in _same(row, rows, term=statement.group_term) if m.group and m.value is not None]
        group = max(shown, key=lambda m: m.value or 0.0).group if shown else None
    values = {
        **row.settings,
        "system": row.system,
        "attribute": row.attribute or "the group",
        "group": group or "one group",
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


def _against_ideal(statement: Statement, row: Measurement, rows: Sequence[Measurement]) -> Compared:
    """The value less its ideal. It is significant where it is by itself, and beyond that of human captions."""
    interval = _interval(row)
    if interval is None:
        return Compared(statement, row)
    gap = _from_ideal(row, interval)
    p = _p(row, gap)
    human = _human(row, rows)
    theirs = None if human is None else _interval(human)
    if human is None or theirs is None:
        return Compared(statement, row, gap=gap, p=p, p_itself=p)
    beyond = difference(gap, _from_ideal(human, theirs))
    return Compared(
        statement,
        row,
        gap=gap,
        p=max(p, _p_beyond(gap, beyond)),
        p_itself=p,
        human=(human,),
        beyond_human=beyond,
    )


def _p(row: Measurement, gap: Interval) -> float:
    """The row's own p; where permutations could not have given a smaller one, that of its interval."""
    if row.p is None or row.p <= _FEWEST_PERMUTATIONS:
        return gap.p() if row.p is None else min(row.p, gap.p())
    return row.p


def _from_ideal(m: Measurement, interval: Interval) -> Interval:
    ideal = m.ideal or 0.0
    return Interval(interval.value - ideal, interval.low - ideal, interval.high - ideal)


def _p_beyond(gap: Interval, beyond: Interval) -> float:
    """p of being beyond human captions; 1 where theirs is larger."""
    return beyond.p() if beyond.value * gap.value > 0 else 1.0


def _against_human(statement: Statement, row: Measurement, rows: Sequence[Measurement]) -> Compared | None:
    human = _human(row, rows)
    if human is None or human.value is None:
        return None  # there is nobody to compare with, which is no sentence
    ours, theirs = _interval(row), _interval(human)
    if ours is None or theirs is None:
        return Compared(statement, row, human)
    gap = difference(ours, theirs)
    return Compared(statement, row, human, gap, gap.p(), gap.p())


def _between_groups(statement: Statement, row: Measurement, rows: Sequence[Measurement]) -> Compared | None:
    """The two groups that differ most. It is significant where it is by itself, and beyond that of human captions."""
    listed = [m for m in _same(row, rows) if m.group is not None]
    groups = [m for m in listed if _interval(m) is not None]
    if len(groups) < 2:
        few = next((m for m in listed if is_too_few(m)), None)
        return Compared(statement, few) if few is not None else None
    higher = (statement.worse or ("higher" if row.better == "lower" else "lower")) == "higher"
    ordered = sorted(groups, key=lambda m: m.value or 0.0, reverse=higher)
    worst, best = ordered[0], ordered[-1]
    gap, pairs = _gap(worst, best), math.comb(len(groups), 2)
    p = min(1.0, gap.p() * pairs)
    gap = gap.simultaneous(pairs)
    own = next((m for m in _same(row, rows, term=statement.gap_term) if m.group is None), None)
    if own is not None and own.low is not None and own.high is not None and own.value is not None:
        low, high = (own.low, own.high) if gap.value > 0 else (-own.high, -own.low)
        gap = Interval(gap.value, min(low, gap.value), max(high, gap.value))
        p, pairs = _p(own, gap), 1  # the metric allows for the choice itself
    human = tuple(_human(m, rows) for m in (worst, best))
    known = tuple(m for m in human if m is not None and _interval(m) is not None)
    if len(known) < 2:
        return Compared(statement, worst, best, gap, p, p, pairs, group=worst.group)
    beyond = difference(gap, _gap(*known))
    both = max(p, _p_beyond(gap, beyond))
    return Compared(statement, worst, best, gap, both, p, pairs, known, beyond, group=worst.group)


_COMPARE = {IDEAL: _against_ideal, HUMAN_CAPTIONS: _against_human, GROUPS: _between_groups}


def _gap(a: Measurement, b: Measurement) -> Interval:
    ours, theirs = _interval(a), _interval(b)
    if ours is None or theirs is None:
        raise ValueError("Both numbers need an interval.")
    return difference(ours, theirs)


def _interval(m: Measurement) -> Interval | None:
    """None where nothing can be tested: undefined, without bounds, or on too few images."""
    if m.value is None or m.low is None or m.high is None or is_too_few(m):
        return None
    return Interval(m.value, m.low, m.high)


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
