"""Comparisons of numbers with their references: both values, their difference, and its test."""

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
_PERMUTATION_STEP = 100  # numbers of permutations are multiples of this
_MIN_PERMUTATIONS = 200
# Rows that differ in these settings are separate cases of a statement. Other settings are ways to compute one case.
_CASE_SETTINGS = ("kind", "attack", "groups")


@dataclass(frozen=True)
class ComparedStatement:
    """One statement about one system: a number, its reference, and the test of their difference.

    Attributes
    ----------
    row, reference_row
        The number, and the number that it is compared with. `reference_row` is None if that is a constant.
    difference
        The number minus its reference. None if the difference cannot be tested.
    p, p_difference
        `p_difference` tests the difference. `p` also tests whether it is larger than that of human captions.
    n_pairs
        The number of pairs of groups. The pair with the largest difference is reported, with a simultaneous interval.
    excluded_group_rows
        Rows of groups that cannot be compared.
    human_rows, excluded_human_rows
        The same numbers of human captions, and those that cannot be compared.
    difference_to_human
        The difference minus that of human captions.
    other_settings_rows
        The same number under other settings.
    related_rows
        Rows of the statement's supporting terms.
    meanings
        The meaning of each term.
    group
        The group that the sentence is about, if any.
    remainder_row
        The number that remains after a control.
    placeholder_values
        The values of the placeholders in the statement's sentences.
    """

    statement: Statement
    row: Measurement
    reference_row: Measurement | None = None
    difference: Interval | None = None
    p: float | None = None
    p_difference: float | None = None
    n_pairs: int = 1
    excluded_group_rows: tuple[Measurement, ...] = ()
    excluded_human_rows: tuple[Measurement, ...] = ()
    human_rows: tuple[Measurement, ...] = ()
    difference_to_human: Interval | None = None
    other_settings_rows: tuple[Measurement, ...] = ()
    related_rows: tuple[Measurement, ...] = ()
    meanings: Mapping[str, str] = field(default_factory=dict)
    group: str | None = None
    remainder_row: Measurement | None = None
    placeholder_values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class _Estimate:
    """The interval of a number, and its bootstrap resamples if known.

    `sample` identifies the resampled images. Only estimates with the same `sample` are paired.
    """

    interval: Interval
    sample: str = ""
    resamples: NDArray[np.float64] | None = None

    def minus(self, other: _Estimate) -> _Estimate:
        """The difference self - other, paired if both have the same resamples."""
        if self.resamples is None or other.resamples is None or len(self.resamples) != len(other.resamples):
            return _Estimate(difference(self.interval, other.interval))
        if self.sample != other.sample:
            return _Estimate(difference(self.interval, other.interval))
        correlation = correlation_of(self.interval, other.interval, self.resamples, other.resamples)
        interval = difference(self.interval, other.interval, correlation)
        return _Estimate(interval, self.sample, self.resamples - other.resamples)


class Estimates:
    """Estimates of the rows that can be tested: with a value and an interval, from enough images."""

    def __init__(self, results: Results):
        ids = [m.id for m in results.measurements if m.item is None and m.low is not None]
        replicates = results.replicates.filter(pl.col("id").is_in(ids) & pl.col("replicates").is_not_null())
        self._resamples_by_id = {
            identifier: (sample, np.array(values, dtype=np.float64))  # null becomes nan
            for identifier, sample, values in replicates.iter_rows()
        }

    def get(self, m: Measurement) -> _Estimate | None:
        """The estimate of a row, or None if it cannot be tested."""
        if m.value is None or m.low is None or m.high is None or is_too_few(m):
            return None
        return _Estimate(Interval(m.value, m.low, m.high), *self._resamples_by_id.get(m.id, ("", None)))


def compare_statement(
    statement: Statement, metric: str, rows: Sequence[Measurement], estimates: Estimates
) -> Iterator[ComparedStatement]:
    """Yield the comparison of a statement for each system, attribute and case in the rows of a metric."""
    cases: dict[tuple[Any, ...], list[Measurement]] = {}
    for m in rows:
        if (
            m.metric == metric
            and m.system not in (None, HUMAN)
            and m.group is None
            and _matches_statement(statement, m)
        ):
            case = str([m.settings.get(name) for name in _CASE_SETTINGS])
            cases.setdefault((m.system, m.attribute, case), []).append(m)
    yielded_keys: set[tuple[Any, ...]] = set()
    for row, *other_settings_rows in cases.values():
        comparison = _COMPARATORS[statement.against](statement, row, rows, estimates)
        if comparison is None:
            continue
        # A number that does not depend on the attribute is in the results once per attribute. It is compared once.
        compared_rows = (m for m in (row, comparison.reference_row) if m is not None)
        key = (row.system, *((m.value, m.low, m.high, m.n, m.reason) for m in compared_rows))
        if statement.against == HUMAN_CAPTIONS and key in yielded_keys:
            continue
        yielded_keys.add(key)
        yield _with_context(comparison, other_settings_rows, rows)


def _with_context(
    comparison: ComparedStatement, other_settings_rows: list[Measurement], rows: Sequence[Measurement]
) -> ComparedStatement:
    """The comparison with its related rows, its group, its remainder, and the values of placeholders."""
    row, statement = comparison.row, comparison.statement
    related_rows = tuple(
        m
        for term in statement.supporting_terms
        for m in _matching_rows(row, rows, term=term)
        if m.group is None
    )
    remainder_row = next(
        (m for m in _matching_rows(row, rows, term=statement.remainder) if m.group is None), None
    )
    group, mostly_text = comparison.group, ""
    if statement.group_term:
        rows_above_zero = [
            m for m in _matching_rows(row, rows, term=statement.group_term) if m.group and m.low and m.low > 0
        ]
        group = max(rows_above_zero, key=lambda m: m.value or 0.0).group if rows_above_zero else None
        mostly_text = f", mostly {group}" if group else ", no group more than the others"
    placeholder_values = {
        **row.settings,
        "system": row.system,
        "n": "an unknown number of" if row.n is None else row.n,
        "attribute": row.attribute or "the group",
        "group": group or "one group",
        "mostly": mostly_text,
        "other": comparison.reference_row.group if comparison.reference_row is not None else "another",
    }
    return replace(
        comparison,
        other_settings_rows=tuple(other_settings_rows),
        related_rows=related_rows,
        group=group,
        remainder_row=remainder_row,
        placeholder_values=placeholder_values,
    )


def _matches_statement(statement: Statement, m: Measurement) -> bool:
    """Whether a row has the term, item and settings of a statement."""
    item = None if m.item is None else m.item.partition(" (")[0]  # items may end with a setting in brackets
    return (m.term, item) == (statement.term, statement.item) and all(
        m.settings.get(name) == value for name, value in statement.settings.items()
    )


def _against_ideal(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], estimates: Estimates
) -> ComparedStatement:
    """The comparison of a value with its ideal.

    It is significant if the difference is not 0 and larger than that of human captions.
    """
    estimate = estimates.get(row)
    ideal = 0.0 if statement.against == ZERO else row.ideal
    if estimate is None or ideal is None:  # an unknown ideal is not 0
        return ComparedStatement(statement, row)
    deviation = _subtract_ideal(ideal, estimate)
    p = _row_p(row, deviation.interval.p())
    comparison = ComparedStatement(statement, row, difference=deviation.interval, p=p, p_difference=p)
    human_row = _human_row(row, rows)
    human_estimate = None if human_row is None else estimates.get(human_row)
    if human_row is None or (human_row.ideal is None and statement.against == IDEAL):
        return comparison
    if human_estimate is None:
        return replace(comparison, excluded_human_rows=(human_row,))
    difference_to_human = deviation.minus(_subtract_ideal(human_row.ideal or 0.0, human_estimate)).interval
    return replace(
        comparison,
        p=max(p, _p_beyond_human(deviation.interval, difference_to_human)),
        human_rows=(human_row,),
        difference_to_human=difference_to_human,
    )


def _row_p(row: Measurement, interval_p: float) -> float:
    """The p of a row, or that of its interval if that is smaller and permutations could not give a smaller one."""
    if row.p is None:
        return interval_p
    return min(row.p, interval_p) if _is_smallest_permutation_p(row.p) else row.p


def _is_smallest_permutation_p(p: float) -> bool:
    """Whether p is the smallest value that N permutations can give, which is 1 / (1 + N).

    Rows do not store N. By default N is a multiple of 100. For any other N the result is False, which is conservative.
    """
    if not 0 < p < 1 / _MIN_PERMUTATIONS or abs(1 / p - round(1 / p)) > 1e-6:
        return False
    return (round(1 / p) - 1) % _PERMUTATION_STEP == 0


def _subtract_ideal(ideal: float, estimate: _Estimate) -> _Estimate:
    """The estimate of the value minus its ideal."""
    interval = estimate.interval
    shifted_interval = Interval(interval.value - ideal, interval.low - ideal, interval.high - ideal)
    return replace(estimate, interval=shifted_interval)


def _p_beyond_human(difference: Interval, difference_to_human: Interval) -> float:
    """p of the hypothesis that the difference is not larger than that of human captions; 1 if theirs is larger."""
    return difference_to_human.p() if difference_to_human.value * difference.value > 0 else 1.0


def _against_human(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], estimates: Estimates
) -> ComparedStatement | None:
    """The comparison of a value with that of human captions; None if human captions have no value."""
    human_row = _human_row(row, rows)
    if human_row is None or human_row.value is None:
        return None
    row_estimate, human_estimate = estimates.get(row), estimates.get(human_row)
    if row_estimate is None or human_estimate is None:
        return ComparedStatement(statement, row, human_row)
    difference_interval = row_estimate.minus(human_estimate).interval
    return ComparedStatement(
        statement, row, human_row, difference_interval, difference_interval.p(), difference_interval.p()
    )


def _between_groups(
    statement: Statement, row: Measurement, rows: Sequence[Measurement], estimates: Estimates
) -> ComparedStatement | None:
    """The comparison of the two groups that differ most; None if the direction is unknown or there are too few groups.

    It is significant if the groups differ, and by more than in human captions.
    """
    worse = statement.worse or {"lower": "higher", "higher": "lower"}.get(row.better or "")
    if worse not in ("lower", "higher"):
        return None
    group_rows = [m for m in _matching_rows(row, rows) if m.group is not None]
    estimate_by_id = {m.id: estimate for m in group_rows if (estimate := estimates.get(m)) is not None}
    comparable_rows = [m for m in group_rows if m.id in estimate_by_id]
    if len(comparable_rows) < 2:
        too_few_row = next((m for m in group_rows if is_too_few(m)), None)
        return ComparedStatement(statement, too_few_row) if too_few_row is not None else None
    worst_to_best = sorted(comparable_rows, key=lambda m: m.value or 0.0, reverse=worse == "higher")
    worst_row, best_row = worst_to_best[0], worst_to_best[-1]
    gap, n_pairs = (
        estimate_by_id[worst_row.id].minus(estimate_by_id[best_row.id]),
        math.comb(len(comparable_rows), 2),
    )
    p = min(1.0, gap.interval.p() * n_pairs)
    gap_row = next((m for m in _matching_rows(row, rows, term=statement.gap_term) if m.group is None), None)
    if (
        gap_row is not None
        and gap_row.low is not None
        and gap_row.high is not None
        and gap_row.value is not None
    ):
        if n_pairs == 1:  # use the interval of the metric's own gap
            value = gap.interval.value
            low, high = (gap_row.low, gap_row.high) if value > 0 else (-gap_row.high, -gap_row.low)
            gap = replace(gap, interval=Interval(value, min(low, value), max(high, value)))
            p = gap.interval.p()
        p = _row_p(gap_row, p)
    gap = replace(gap, interval=gap.interval.simultaneous(n_pairs))
    excluded_group_rows = tuple(m for m in group_rows if m.id not in estimate_by_id)
    comparison = ComparedStatement(
        statement,
        worst_row,
        best_row,
        gap.interval,
        p,
        p,
        n_pairs,
        excluded_group_rows=excluded_group_rows,
        group=worst_row.group,
    )
    human_rows = [m for m in (_human_row(worst_row, rows), _human_row(best_row, rows)) if m is not None]
    human_estimates = [estimates.get(m) for m in human_rows]
    if len(human_rows) < 2:
        return comparison
    if human_estimates[0] is None or human_estimates[1] is None:
        return replace(
            comparison, excluded_human_rows=tuple(m for m in human_rows if estimates.get(m) is None)
        )
    difference_to_human = gap.minus(human_estimates[0].minus(human_estimates[1])).interval
    return replace(
        comparison,
        p=max(p, _p_beyond_human(gap.interval, difference_to_human)),
        human_rows=tuple(human_rows),
        difference_to_human=difference_to_human,
    )


_COMPARATORS = {
    IDEAL: _against_ideal,
    ZERO: _against_ideal,
    HUMAN_CAPTIONS: _against_human,
    GROUPS: _between_groups,
}


def _matching_rows(
    row: Measurement, rows: Sequence[Measurement], term: str | None = None
) -> list[Measurement]:
    """The rows of all groups with the same settings as `row`, for its term or another term of the metric."""
    key = (row.metric, row.term if term is None else term, row.system, row.attribute, row.item, row.unit)
    return [
        m
        for m in rows
        if (m.metric, m.term, m.system, m.attribute, m.item, m.unit if term is None else row.unit) == key
        and m.settings == row.settings
    ]


def _human_row(row: Measurement, rows: Sequence[Measurement]) -> Measurement | None:
    """The row of human captions for the same number; of several, the one with the most similar settings."""
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
