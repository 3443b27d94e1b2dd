"""Printing the verdicts of a gate: each rule, and a table of the rows that it matches."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from portrayal.cli.console import COLUMN_GAP, console, echo, print_table
from portrayal.gating import Rule, Verdict, label_text

MAX_ROWS = 20  # rows printed per rule; a scan has thousands
_MAX_NAMED_ROWS = 2  # rows named in a note
_INDENT = " " * 6


def print_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print every rule with its rows, then how many rules pass."""
    passed: list[bool] = []
    for rule, group in groupby(verdicts, key=lambda v: v.rule):
        rule_verdicts = list(group)
        passed.append(all(v.passed for v in rule_verdicts))
        echo(f"{_status(passed[-1])}  {rule.text}", "bold")
        _print_paragraph(rule.origin or "", "dim")
        _print_paragraph(rule.reason or "", "dim")
        if rule_verdicts[0].row is None:
            _print_paragraph(rule_verdicts[0].sentence)
        else:
            _print_rows(rule, rule_verdicts)
        echo()
    rows = [v.passed for v in verdicts if v.row is not None]
    passing = f" Rows that pass: {sum(rows):,} of {len(rows):,}." if rows else ""
    echo(f"Rules kept: {sum(passed)} of {len(passed)}.{passing}")


def _print_rows(rule: Rule, verdicts: list[Verdict]) -> None:
    """Print a table of the rows of one rule: a column per name that differs, a line for names that all rows share.

    If there are more rows than are shown, those farthest beyond the limit come first.
    """
    names = list(dict.fromkeys(name for v in verdicts for name in v.label))
    differing = [name for name in names if len({v.label.get(name) for v in verdicts}) > 1]
    _print_paragraph(label_text(verdicts[0].label, lambda name: name not in differing))
    ordered = verdicts if len(verdicts) <= MAX_ROWS else sorted(verdicts, key=_severity)
    shown, hidden_passed = ordered[:MAX_ROWS], [v.passed for v in ordered[MAX_ROWS:]]
    numbers = list(dict.fromkeys((verdicts[0].on, "value")))
    head = ["", *differing, *numbers, "95 % CI", "n"]
    rows = [
        [
            _status(v.passed),
            *(v.label.get(name, "") for name in differing),
            *(_number(rule, getattr(v.row, name)) for name in numbers),
            _interval(v),
            "" if v.row is None or v.row.n is None else f"{v.row.n:,}",
        ]
        for v in shown
    ]
    while _width([head, *rows]) > console().width and len(head) > 1 + len(differing) + 1:
        head, rows = head[:-1], [row[:-1] for row in rows]  # the last columns are the least important
    print_table(head, rows, set(range(1 + len(differing), len(head))))
    if hidden_passed:
        failing = f"{hidden_passed.count(False):,} fail, " if not all(hidden_passed) else ""
        _print_paragraph(
            f"Rows not shown: {failing}{hidden_passed.count(True):,} pass. --format json lists all of them."
        )
    _print_notes(shown, differing)


def _severity(v: Verdict) -> tuple[bool, bool, float]:
    number = v.number
    return v.passed, number is not None, 0.0 if number is None else -v.rule.excess(number)


def _print_notes(verdicts: Sequence[Verdict], differing: Sequence[str]) -> None:
    """Print why numbers are undefined, and the notes and cautions of the others."""
    notes: dict[tuple[str, str], list[str]] = {}
    for v in verdicts:
        if v.row is None:
            continue
        label = label_text(v.label, differing.__contains__)
        if v.number is None:
            notes.setdefault(("Undefined", v.sentence.removeprefix("undefined: ")), []).append(label)
        elif v.row.reason:
            notes.setdefault(("Note", v.row.reason), []).append(label)
        if v.row.caution:
            notes.setdefault(("Caution", v.row.caution), []).append(label)
    for (kind, sentence), rows in notes.items():
        named = [label for label in rows if label]
        more = f"; and {len(named) - _MAX_NAMED_ROWS} more" if len(named) > _MAX_NAMED_ROWS else ""
        where = f" ({'; '.join(named[:_MAX_NAMED_ROWS])}{more})" if named else ""
        _print_paragraph(f"{kind}{where}: {sentence}")
    units = sorted({v.row.unit for v in verdicts if v.row is not None and v.row.unit})
    if len(units) > 1:
        _print_paragraph(
            f"Note: these rows have several units ({', '.join(units)}). Add @unit={units[-1]} to check one of them."
        )


def _print_paragraph(text: str, style: str = "") -> None:
    """Print text wrapped to the width of the terminal, indented below its rule."""
    width = max(console().width, 40)
    for line in textwrap.wrap(
        text, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    ):
        echo(line, style)


def _status(passed: bool) -> str:
    return "pass" if passed else "FAIL"


def _number(rule: Rule, number: float | None) -> str:
    """Format with four digits, or with all of them if rounding would cross the limit."""
    if number is None:
        return "undefined"
    brief = f"{number:.4g}"
    return brief if rule.is_satisfied_by(float(brief)) == rule.is_satisfied_by(number) else repr(number)


def _interval(v: Verdict) -> str:
    if v.row is None or v.row.low is None or v.row.high is None:
        return ""
    return f"[{v.row.low:.3g}, {v.row.high:.3g}]"


def _width(lines: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + COLUMN_GAP for column in zip(*lines, strict=True)) - COLUMN_GAP
