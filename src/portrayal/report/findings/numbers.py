"""Text of the numbers in a sentence: both values, their difference with its interval, and related numbers."""

from __future__ import annotations

from collections.abc import Sequence

from portrayal.report.findings.comparisons import ALPHA, ComparedStatement
from portrayal.report.findings.wording import (
    format_difference_ci,
    format_level,
    format_level_ci,
    format_signed,
)
from portrayal.report.tables.layout import is_too_few, settings_text
from portrayal.report.tables.table import format_p
from portrayal.results import Measurement
from portrayal.statements import GROUPS, IDEAL, ZERO


def numbers_text(comparison: ComparedStatement) -> str:
    """The numbers of a comparison as text: both values, and their difference with its interval."""
    row, reference_row, difference = comparison.row, comparison.reference_row, comparison.difference
    if reference_row is None:  # the value is compared with its ideal
        ideal_is_zero = not row.ideal
        text = format_signed(row, row.value or 0.0) if ideal_is_zero else format_level(row, row.value)
        text += (
            add_brackets(_interval_text(comparison) if ideal_is_zero else format_level_ci(row))
            or ", without an interval"
        )
        if row.ideal not in (None, 0.0, 1.0):  # a chance level that depends on the study
            text += f", where chance gives {format_level(row, row.ideal)}"
        for human_row in comparison.human_rows:
            human_value = (
                format_signed(human_row, human_row.value or 0.0)
                if ideal_is_zero
                else format_level(human_row, human_row.value)
            )
            text += f"; human captions {human_value}{_human_text(comparison)}"
    else:
        side_templates = (
            (f" for {row.group}", f"{{}} for {reference_row.group}")
            if comparison.statement.against == GROUPS
            else ("", "human captions {}")
        )
        text = (
            f"{format_level(row, row.value)}{side_templates[0]}, "
            f"{side_templates[1].format(format_level(reference_row, reference_row.value))}"
        )
        if difference is not None:
            simultaneous_note = (
                f", holding for all {comparison.n_pairs} pairs of groups at once"
                if comparison.n_pairs > 1
                else ""
            )
            text += (
                f"; difference {format_signed(row, difference.value)} "
                f"({format_difference_ci(row, difference)}{simultaneous_note})"
            )
        text += _excluded_text(comparison.excluded_group_rows)
        if comparison.human_rows:
            first_value, second_value = (format_level(m, m.value) for m in comparison.human_rows)
            text += f"; human captions {first_value} and {second_value}{_human_text(comparison)}"
    if comparison.excluded_human_rows:
        too_few = any(map(is_too_few, comparison.excluded_human_rows))
        reason = "too few to compare" if too_few else "undefined"
        text += f"; human captions {reason}"
    return text + _p_text(comparison) + _related_terms_text(comparison) + _other_settings_text(comparison)


def _excluded_text(rows: Sequence[Measurement]) -> str:
    """Text about the groups that cannot be compared, which may be worse off than the others."""
    too_few = [str(m.group) for m in rows if is_too_few(m)]
    no_interval = [str(m.group) for m in rows if not is_too_few(m)]
    text = f"; {_join_names(too_few)} left out, with too few images" if too_few else ""
    return text + (f"; {_join_names(no_interval)} left out, without an interval" if no_interval else "")


def _p_text(comparison: ComparedStatement) -> str:
    """p as text if it contradicts the interval: the interval excludes 0, but the permutation p is not significant."""
    difference, p = comparison.difference, comparison.p_difference
    contradicts_ci = (
        difference is not None
        and (difference.low > 0 or difference.high < 0)
        and p is not None
        and p >= ALPHA
    )
    return f"; p {format_p(p)}" if contradicts_ci else ""


def _human_text(comparison: ComparedStatement) -> str:
    """The difference to human captions as text, if its significance is not clear from the difference itself."""
    difference, difference_to_human = comparison.difference, comparison.difference_to_human
    if difference is None or difference_to_human is None:
        return ""
    if difference.low > 0 or difference.high < 0:
        is_informative = difference_to_human.p() >= ALPHA / 100
    else:
        is_informative = difference_to_human.p() < ALPHA
    if not is_informative:
        return ""
    return (
        f", {format_signed(comparison.row, difference_to_human.value)} beyond them "
        f"({format_difference_ci(comparison.row, difference_to_human)})"
    )


def _interval_text(comparison: ComparedStatement) -> str:
    """The confidence interval of the difference; empty if there is none."""
    return (
        "" if comparison.difference is None else format_difference_ci(comparison.row, comparison.difference)
    )


def add_brackets(text: str) -> str:
    """The text in brackets after a space; empty if the text is empty."""
    return f" ({text})" if text else ""


def _related_terms_text(comparison: ComparedStatement) -> str:
    """Text about the related terms: those that agree, those in the other direction, and those not significant."""
    difference = comparison.difference
    difference_sign = (
        0 if difference is None else 1 if difference.low > 0 else -1 if difference.high < 0 else 0
    )
    agreeing, phrases, not_significant = [], [], []
    for m in comparison.related_rows:
        term_sign = _sign(m)
        if term_sign is None or m.value is None:
            continue
        if term_sign == 0:
            not_significant.append(m.term)
        elif term_sign == difference_sign:
            agreeing.append(m.term)
        else:
            meaning_text = f" ({comparison.meanings[m.term]})" if m.term in comparison.meanings else ""
            direction_text = " is the other way," if difference_sign else ""
            phrases.append(
                f"{m.term}{meaning_text}{direction_text} {format_signed(m, m.value)} ({_format_row_ci(m)})"
            )
    if agreeing:
        phrases.insert(0, f"{_join_names(agreeing)} {'agrees' if len(agreeing) == 1 else 'agree'}")
    if not_significant:
        phrases.append(f"{_join_names(not_significant)} not significant")
    return f"; {'; '.join(phrases)}" if phrases else ""


def _format_row_ci(m: Measurement) -> str:
    """The confidence interval of a row whose value is a difference."""
    low, high = (
        format_signed(m, bound).removeprefix("+").removesuffix(" points")
        for bound in (m.low or 0.0, m.high or 0.0)
    )
    return f"95 % CI [{low}, {high}]"


def _join_names(names: Sequence[str]) -> str:
    """The names as a list in words: "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _other_settings_text(comparison: ComparedStatement) -> str:
    """The number under those other settings where it is on another side of the ideal, as text."""
    if comparison.statement.against not in (IDEAL, ZERO):
        return ""
    row, row_sign = comparison.row, _sign(comparison.row)
    phrases = []
    for m in comparison.other_settings_rows:
        sign = _sign(m)
        if m.value is None or sign is None or sign == row_sign:
            continue
        differing_settings = {
            name: value for name, value in m.settings.items() if row.settings.get(name) != value
        }
        shown_settings = {
            name: value for name, value in differing_settings.items() if isinstance(value, str | int | float)
        }
        phrases.append(
            f"{format_signed(m, m.value)} ({_format_row_ci(m)}) "
            f"with {settings_text(shown_settings) or 'other settings'}"
        )
    return f"; {_join_names(phrases)}" if phrases else ""


def _sign(m: Measurement) -> int | None:
    """1 if the interval is above the ideal, -1 if below, 0 if it contains the ideal; None without a usable interval."""
    if m.value is None or m.low is None or m.high is None or is_too_few(m):
        return None
    ideal = m.ideal or 0.0
    return 1 if m.low > ideal else -1 if m.high < ideal else 0
