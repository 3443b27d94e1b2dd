"""The numbers in a sentence: both sides of a comparison, the difference with its interval, and related numbers."""

from __future__ import annotations

from collections.abc import Sequence

from portrayal.report.findings.comparisons import ALPHA, ComparedStatement
from portrayal.report.findings.wording import format_ci, format_level, format_own_ci, format_signed
from portrayal.report.tables.layout import is_too_few, settings_text
from portrayal.report.tables.table import format_p
from portrayal.results import Measurement
from portrayal.statements import GROUPS, IDEAL, ZERO


def numbers_text(comparison: ComparedStatement) -> str:
    """The numbers of a sentence: both sides of the comparison, and the difference with its interval."""
    row, reference, difference = comparison.row, comparison.reference, comparison.difference
    if reference is None:  # compared with the ideal
        zero = not row.ideal
        text = format_signed(row, row.value or 0.0) if zero else format_level(row, row.value)
        text += (
            in_brackets(_interval_text(comparison) if zero else format_own_ci(row)) or ", without an interval"
        )
        if row.ideal not in (None, 0.0, 1.0):  # the chance level, which depends on the study
            text += f", where chance gives {format_level(row, row.ideal)}"
        for human in comparison.human_rows:
            human_value = (
                format_signed(human, human.value or 0.0) if zero else format_level(human, human.value)
            )
            text += f"; human captions {human_value}{_human_text(comparison)}"
    else:
        names = (
            (f" for {row.group}", f"{{}} for {reference.group}")
            if comparison.statement.against == GROUPS
            else ("", "human captions {}")
        )
        text = f"{format_level(row, row.value)}{names[0]}, {names[1].format(format_level(reference, reference.value))}"
        if difference is not None:
            of_all = (
                f", holding for all {comparison.n_pairs} pairs of groups at once"
                if comparison.n_pairs > 1
                else ""
            )
            text += (
                f"; difference {format_signed(row, difference.value)} ({format_ci(row, difference)}{of_all})"
            )
        text += _excluded_text(comparison.excluded_groups)
        if comparison.human_rows:
            first, second = (format_level(m, m.value) for m in comparison.human_rows)
            text += f"; human captions {first} and {second}{_human_text(comparison)}"
    if comparison.excluded_human_rows:
        too_few = any(map(is_too_few, comparison.excluded_human_rows))
        why = "too few to compare" if too_few else "undefined"
        text += f"; human captions {why}"
    return text + _p_text(comparison) + _related_terms_text(comparison) + _other_settings_text(comparison)


def _excluded_text(rows: Sequence[Measurement]) -> str:
    """The groups that are not compared, which may be worse off than the others."""
    too_few = [str(m.group) for m in rows if is_too_few(m)]
    no_interval = [str(m.group) for m in rows if not is_too_few(m)]
    text = f"; {_joined(too_few)} left out, with too few images" if too_few else ""
    return text + (f"; {_joined(no_interval)} left out, without an interval" if no_interval else "")


def _p_text(comparison: ComparedStatement) -> str:
    """p if it contradicts the interval: permutations may not be significant where the bootstrap is."""
    difference, p = comparison.difference, comparison.p_difference
    not_shown_by_ci = (
        difference is not None
        and (difference.low > 0 or difference.high < 0)
        and p is not None
        and p >= ALPHA
    )
    return f"; p {format_p(p)}" if not_shown_by_ci else ""


def _human_text(comparison: ComparedStatement) -> str:
    """The difference to human captions, if only one of it and the difference itself is clearly significant."""
    difference, to_human = comparison.difference, comparison.difference_to_human
    if difference is None or to_human is None:
        return ""
    if difference.low > 0 or difference.high < 0:
        informative = to_human.p() >= ALPHA / 100
    else:
        informative = to_human.p() < ALPHA
    if not informative:
        return ""
    return f", {format_signed(comparison.row, to_human.value)} beyond them ({format_ci(comparison.row, to_human)})"


def _interval_text(comparison: ComparedStatement) -> str:
    return "" if comparison.difference is None else format_ci(comparison.row, comparison.difference)


def in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def _related_terms_text(comparison: ComparedStatement) -> str:
    """The related terms: those that agree, those in the other direction, and those that are not significant."""
    difference = comparison.difference
    sign = 0 if difference is None else 1 if difference.low > 0 else -1 if difference.high < 0 else 0
    agreeing, parts, not_significant = [], [], []
    for m in comparison.related:
        term_sign = _sign(m)
        if term_sign is None or m.value is None:
            continue
        if term_sign == 0:
            not_significant.append(m.term)
        elif term_sign == sign:
            agreeing.append(m.term)
        else:
            what = f" ({comparison.meanings[m.term]})" if m.term in comparison.meanings else ""
            way = " is the other way," if sign else ""
            parts.append(f"{m.term}{what}{way} {format_signed(m, m.value)} ({format_points_ci(m)})")
    if agreeing:
        parts.insert(0, f"{_joined(agreeing)} {'agrees' if len(agreeing) == 1 else 'agree'}")
    if not_significant:
        parts.append(f"{_joined(not_significant)} not significant")
    return f"; {'; '.join(parts)}" if parts else ""


def format_points_ci(m: Measurement) -> str:
    """The confidence interval of a number that is a difference."""
    low, high = (
        format_signed(m, bound).removeprefix("+").removesuffix(" points")
        for bound in (m.low or 0.0, m.high or 0.0)
    )
    return f"95 % CI [{low}, {high}]"


def _joined(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _other_settings_text(comparison: ComparedStatement) -> str:
    """The same number under other settings, if these put it on another side of the ideal."""
    if comparison.statement.against not in (IDEAL, ZERO):
        return ""
    row, own_sign = comparison.row, _sign(comparison.row)
    parts = []
    for m in comparison.other_rows:
        sign = _sign(m)
        if m.value is None or sign is None or sign == own_sign:
            continue
        differing = {name: value for name, value in m.settings.items() if row.settings.get(name) != value}
        shown = {name: value for name, value in differing.items() if isinstance(value, str | int | float)}
        parts.append(
            f"{format_signed(m, m.value)} ({format_points_ci(m)}) with {settings_text(shown) or 'other settings'}"
        )
    return f"; {_joined(parts)}" if parts else ""


def _sign(m: Measurement) -> int | None:
    """1 if the interval is above the ideal, -1 if below, 0 if it contains it; None if there is no usable interval."""
    if m.value is None or m.low is None or m.high is None or is_too_few(m):
        return None
    ideal = m.ideal or 0.0
    return 1 if m.low > ideal else -1 if m.high < ideal else 0
