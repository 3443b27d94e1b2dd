"""The comparison behind a sentence: its numbers, their difference, and the test of it."""

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
_PERMUTATION_STEP = 100  # their number is a multiple of it
_MIN_PERMUTATIONS = 200
# Settings that make another case of a statement, not another way to compute it.
_CASE_SETTINGS = ("kind", "attack", "groups")


@dataclass(frozen=True)
class ComparedStatement:
    """One statement about one system: a number, its reference, and the test of their difference.

    Attributes
    ----------
    row, reference
        The number, and the number that it is compared with; None if that is a constant.
    difference
        The number less its reference, or None if it cannot be tested.
    p, p_difference
        `p_difference` tests the difference. `p` also tests whether it is larger than that of human captions.
    n_pairs
        The number of pairs of groups of which the largest difference is reported; its interval is simultaneous.
    excluded_groups
        Rows of groups that cannot be compared.
    human_rows, excluded_human_rows
        The same numbers of human captions, and those that cannot be compared.
    difference_to_human
        The difference less that of human captions.
    other_rows
        The same number under other settings.
    related
        Rows of the statement's other terms.
    meanings
        The meaning of each term.
    """

    statement: Statement
    row: Measurement
    reference: Measurement | None = None
    difference: Interval | None = None
    p: float | None = None
    p_difference: float | None = None
    n_pairs: int = 1
    excluded_groups: tuple[Measurement, ...] = ()
    excluded_human_rows: tuple[Measurement, ...] = ()
    human_rows: tuple[Measurement, ...] = ()
    difference_to_human: Interval | None = None
    other_rows: tuple[Measurement, ...] = ()
    related: tuple[Measurement, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    remainder: Measurement | None = None
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class _Estimate:
    """The interval of a number, and its bootstrap resamples if known. `sample` identifies how they were drawn."""

    interval: Interval
    sample: str = ""
    resamples: NDArray[np.float64] | None = None

    def minus(self, other: _Estimate) -> _Estimate:
        """self - other, paired if both have the same resamples."""
        if self.resamples is None or other.resamples is None or len(self.resamples) != len(other.resamples):
            return _Estimate(difference(self.interval, other.interval))
        if self.sample != other.sample:
            return _Estimate(difference(self.interval, other.interval))
        correlation = correlation_of(self.interval, other.interval, self.resamples, other.resamples)
        interval = difference(self.interval, other.interval, correlation)
        return _Estimate(interval, self.sample, self.resamples - other.resamples)


class Estimates:
    """The estimates of results that can be tested: defined, with an interval, and on enough images."""

    def __init__(self, results: Results):
        ids = [m.id for m in results.measurements if m.item is None and m.low is not None]
        replicates = results.replicates.filter(pl.col("id").is_in(ids) & pl.col("replicates").is_not_null())
        self._draws = {
            identifier: (sample, np.array(values, dtype=np.float64))  # a null is undefined: nan
            for identifier, sample, values in replicates.iter_rows()
        }

    def of(self, m: Measurement) -> _Estimate | None:
        if m.value is None or m.low is None or m.high is None or is_too_few(m):
            return None
        return _Estimate(Interval(m.value, m.low, m.high), *self._draws.get(m.id, ("", None)))


def compare_statement(
    statement: Statement, metric: str, rows: Sequence[Measurement], estimates: Estimates
) -> Iterator[ComparedStatement]:
    """The comparison of a statement for each system, attribute and case in the rows of a metric."""
    cases: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in rows:
        if (
            m.metric == metric
            and m.system not in (None, HUMAN)
            and m.group is None
            and _matches(statement, m)
        ):
            case = str([m.settings.get(name) for name in _CASE_SETTINGS])
            cases.setdefault((m.system, m.attribute, case), []).append(m)
    emitted: set[tuple[Any, ...]] = set()
    for row, *others in cases.values():
        comparison = _COMPARE[statement.against](statement, row, rows, estimates)
        if comparison is None:
            continue
        # Numbers that do not depend on the attribute are in the results once for each attribute.
        compared_rows = (m for m in (row, comparison.reference) if m is not None)
        key = (row.system, *((m.value, m.low, m.high, m.n, m.reason) for m in compared_rows))
        if statement.against == HUMAN_CAPTIONS and key in emitted:
            continue
        emitted.add(key)
        yield _with_context(comparison, others, rows)


def _with_context(
    comparison: ComparedStatement, others: list[Measurement], rows: Sequence[Measurement]
) -> ComparedStatement:
    row, statement = comparison.row, comparison.statement
    related = tuple(
        m
        for term in statement.supporting_terms
        for m in _matching_rows(row, rows, term=term)
        if m.group is None
    )
    remainder = next(
        (m for m in _matching_rows(row, rows, term=statement.remainder) if m.group is None), None
    )
    group, mostly = comparison.group, ""
    if statement.group_term:
        leading = [
            m for m in _matching_rows(row, rows, term=statement.group_term) if m.group and m.low and m.low > 0
        ]
        group = max(leading, key=lambda m: m.value or 0.0).group if leading else None
        mostly = f", mostly {group}" if group else ", no group more than the others"
    values = {
        **row.settings,
        "system": row.system,
        "n": "an unknown number of" if row.n is None else row.n,
        "attribute": row.attribute or "the group",
        "group": group or "one group",
        "mostly": mostly,
        "other": comparison.reference.group if comparison.reference is not None else "another",
    }
    return replace(
        comparison, other_rows=tuple(others), related=related, group=group, remainder=remainder, values=values
    )


def _matches(statement: Statement, m: Measurement) -> bool:
    item = None if m.item is None else m.item.partition(" (")[0]  # a setting in brackets
    return (m.term, item) == (statement.term, statement.item) and all(
        m.settings.get(name) == value for name, value in statement.settings.items()
    )


def _against_ideal(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], estimates: Estimates
) -> ComparedStatement:
    """The value less its ideal. It is significant if it differs from 0 and is larger than that of human captions."""
    estimate = estimates.of(row)
    ideal = 0.0 if statement.against == ZERO else row.ideal
    if estimate is None or ideal is None:  # an unknown ideal is not 0
        return ComparedStatement(statement, row)
    gap = _minus_ideal(ideal, estimate)
    p = _row_p(row, gap.interval.p())
    comparison = ComparedStatement(statement, row, difference=gap.interval, p=p, p_difference=p)
    human = _human_row(row, rows)
    human_estimate = None if human is None else estimates.of(human)
    if human is None or (human.ideal is None and statement.against == IDEAL):
        return comparison
    if human_estimate is None:
        return replace(comparison, excluded_human_rows=(human,))
    to_human = gap.minus(_minus_ideal(human.ideal or 0.0, human_estimate)).interval
    return replace(
        comparison,
        p=max(p, _p_beyond(gap.interval, to_human)),
        human_rows=(human,),
        difference_to_human=to_human,
    )


def _row_p(row: Measurement, interval_p: float) -> float:
    """The p of the row; that of its interval if permutations could not give a smaller one."""
    if row.p is None:
        return interval_p
    return min(row.p, interval_p) if _is_smallest_p(row.p) else row.p


def _is_smallest_p(p: float) -> bool:
    """Whether p is the smallest that N permutations can give: 1 / (1 + N).

    Rows do not hold N, which is a multiple of 100. For other N the result is False, which is conservative.
    """
    if not 0 < p < 1 / _MIN_PERMUTATIONS or abs(1 / p - round(1 / p)) > 1e-6:
        return False
    return (round(1 / p) - 1) % _PERMUTATION_STEP == 0


def _minus_ideal(ideal: float, estimate: _Estimate) -> _Estimate:
    interval = estimate.interval
    shifted = Interval(interval.value - ideal, interval.low - ideal, interval.high - ideal)
    return replace(estimate, interval=shifted)


def _p_beyond(gap: Interval, to_human: Interval) -> float:
    """p of a larger difference than that of human captions; 1 if theirs is larger."""
    return to_human.p() if to_human.value * gap.value > 0 else 1.0


def _against_human(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], estimates: Estimates
) -> ComparedStatement | None:
    human = _human_row(row, rows)
    if human is None or human.value is None:
        return None  # nothing to compare with
    own, human_estimate = estimates.of(row), estimates.of(human)
    if own is None or human_estimate is None:
        return ComparedStatement(statement, row, human)
    gap = own.minus(human_estimate).interval
    return ComparedStatement(statement, row, human, gap, gap.p(), gap.p())


def _between_groups(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], estimates: Estimates
) -> ComparedStatement | None:
    """The two groups that differ most. Significant if they differ, and by more than in human captions."""
    worse = statement.worse or {"lower": "higher", "higher": "lower"}.get(row.better or "")
    if worse not in ("lower", "higher"):
        return None  # the direction is not known
    group_rows = [m for m in _matching_rows(row, rows) if m.group is not None]
    by_id = {m.id: estimate for m in group_rows if (estimate := estimates.of(m)) is not None}
    groups = [m for m in group_rows if m.id in by_id]
    if len(groups) < 2:
        too_few_row = next((m for m in group_rows if is_too_few(m)), None)
        return ComparedStatement(statement, too_few_row) if too_few_row is not None else None
    ordered = sorted(groups, key=lambda m: m.value or 0.0, reverse=worse == "higher")
    first, last = ordered[0], ordered[-1]
    gap, n_pairs = by_id[first.id].minus(by_id[last.id]), math.comb(len(groups), 2)
    p = min(1.0, gap.interval.p() * n_pairs)
    gap_row = next((m for m in _matching_rows(row, rows, term=statement.gap_term) if m.group is None), None)
    if (
        gap_row is not None
        and gap_row.low is not None
        and gap_row.high is not None
        and gap_row.value is not None
    ):
        if n_pairs == 1:  # the difference of the table
            value = gap.interval.value
            low, high = (gap_row.low, gap_row.high) if value > 0 else (-gap_row.high, -gap_row.low)
            gap = replace(gap, interval=Interval(value, min(low, value), max(high, value)))
            p = gap.interval.p()
        p = _row_p(gap_row, p)
    gap = replace(gap, interval=gap.interval.simultaneous(n_pairs))
    left_out = tuple(m for m in group_rows if m.id not in by_id)
    comparison = ComparedStatement(
        statement, first, last, gap.interval, p, p, n_pairs, excluded_groups=left_out, group=first.group
    )
    human = [m for m in (_human_row(first, rows), _human_row(last, rows)) if m is not None]
    human_estimates = [estimates.of(m) for m in human]
    if len(human) < 2:
        return comparison
    if human_estimates[0] is None or human_estimates[1] is None:
        return replace(comparison, excluded_human_rows=tuple(m for m in human if estimates.of(m) is None))
    to_human = gap.minus(human_estimates[0].minus(human_estimates[1])).interval
    return replace(
        comparison,
        p=max(p, _p_beyond(gap.interval, to_human)),
        human_rows=tuple(human),
        difference_to_human=to_human,
    )


_COMPARE = {
    IDEAL: _against_ideal,
    ZERO: _against_ideal,
    HUMAN_CAPTIONS: _against_human,
    GROUPS: _between_groups,
}


def _matching_rows(
    row: Measurement, rows: Sequence[Measurement], term: str | None = None
) -> list[Measurement]:
    """The rows of all groups of the same number, or of another term of the metric."""
    key = (row.metric, row.term if term is None else term, row.system, row.attribute, row.item, row.unit)
    return [
        m
        for m in rows
        if (m.metric, m.term, m.system, m.attribute, m.item, m.unit if term is None else row.unit) == key
        and m.settings == row.settings
    ]


def _human_row(row: Measurement, rows: Sequence[Measurement]) -> Measurement | None:
    """The same number of human captions; if there are several, the one with the most similar settings."""
    key = (row.metric, row.term, row.attribute, row.group, row.item, row.unit)
    candidates = [
        m
        for m in rows
        if m.system == HUMAN and (m.metric, m.term, m.attribute, m.group, m.item, m.unit) == key
    ]
    n_shared = [
        sum(m.settings.get(name) == value for name, value in row.settings.items()) for m in candidates
    ]
    return candidates[n_shared.index(max(n_shared))] if candidates else None
