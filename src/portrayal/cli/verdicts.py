"""The verdicts of a gate on a terminal: each rule, and a table of the rows it is about."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby

from portrayal.cli.console import COLUMN_GAP, console, say, show_table
from portrayal.gating import Rule, Verdict, as_text

SHOWN = 20  # rows of one rule; a scan has thousands
_NAMED = 2  # rows that a note names
_INDENT = " " * 6


def show_verdicts(verdicts: Sequence[Verdict]) -> None:
    """Print every rule with its rows, then how many rules are kept."""
    kept: list[bool] = []
    for rule, group in groupby(verdicts, key=lambda v: v.rule):
        own = list(group)
        kept.append(all(v.passed for v in own))
        say(f"{_word(kept[-1])}  {rule.text}", "bold")
        _paragraph(rule.origin or "", "dim")
        _paragraph(rule.reason or "", "dim")
        if own[0].row is None:
            _paragraph(own[0].sentence)
        else:
            _show_rows(rule, own)
        say()
    rows = [v.passed for v in verdicts if v.row is not None]
    passing = f" Rows that pass: {sum(rows):,} of {len(rows):,}." if rows else ""
    say(f"Rules kept: {sum(kept)} of {len(kept)}.{passing}")


def _show_rows(rule: Rule, verdicts: list[Verdict]) -> None:
    """A table of the rows of one rule: a column for each name that differs, a line for what they share.

    Of more rows than are shown, those that are farthest beyond the limit come first.
    """
    names = list(dict.fromkeys(name for v in verdicts for name in v.label))
    apart = [name for name in names if len({v.label.get(name) for v in verdicts}) > 1]
    _paragraph(as_text(verdicts[0].label, lambda name: name not in apart))
    ordered = verdicts if len(verdicts) <= SHOWN else sorted(verdicts, key=_severity)
    shown, hidden = ordered[:SHOWN], [v.passed for v in ordered[SHOWN:]]
    numbers = list(dict.fromkeys((verdicts[0].on, "value")))
    head = ["", *apart, *numbers, "95 % CI", "n"]
    rows = [
        [
            _word(v.passed),
            *(v.label.get(name, "") for name in apart),
            *(_number(rule, getattr(v.row, name)) for name in numbers),
            _interval(v),
            "" if v.row is None or v.row.n is None else f"{v.row.n:,}",
        ]
        for v in shown
    ]
    while _width([head, *rows]) > console().width and len(head) > 1 + len(apart) + 1:
        head, rows = head[:-1], [row[:-1] for row in rows]  # what says least stands last
    show_table(head, rows, set(range(1 + len(apart), len(head))))
    if hidden:
        failing = f"{hidden.count(False):,} fail, " if not all(hidden) else ""
        _paragraph(f"Rows not shown: {failing}{hidden.count(True):,} pass. --format json lists all of them.")
    _show_notes(shown, apart)


def _severity(v: Verdict) -> tuple[bool, bool, float]:
    number = v.number
    return v.passed, number is not None, 0.0 if number is None else -v.rule.excess(number)


def _show_notes(verdicts: Sequence[Verdict], apart: Sequence[str]) -> None:
    """Why numbers are undefined, and what must be read beside those that are not."""
    notes: dict[tuple[str, str], list[str]] = {}
    for v in verdicts:
        if v.row is None:
            continue
        about = as_text(v.label, apart.__contains__)
        if v.number is None:
            notes.setdefault(("Undefined", v.sentence.removeprefix("undefined: ")), []).append(about)
        elif v.row.reason:
            notes.setdefault(("Note", v.row.reason), []).append(about)
        if v.row.caution:
            notes.setdefault(("Caution", v.row.caution), []).append(about)
    for (kind, sentence), rows in notes.items():
        named = [about for about in rows if about]
        more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
        where = f" ({'; '.join(named[:_NAMED])}{more})" if named else ""
        _paragraph(f"{kind}{where}: {sentence}")
    units = sorted({v.row.unit for v in verdicts if v.row is not None and v.row.unit})
    if len(units) > 1:
        _paragraph(
            f"Note: these rows have several units ({', '.join(units)}). Add @unit={units[-1]} to check one of them."
        )


def _paragraph(text: str, style: str = "") -> None:
    """Text in lines as wide as the terminal, under its rule."""
    width = max(console().width, 40)
    for line in textwrap.wrap(
        text, width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    ):
        say(line, style)


def _word(passed: bool) -> str:
    return "pass" if passed else "FAIL"


def _number(rule: Rule, number: float | None) -> str:
    """Four digits, or all of them where four would be on the other side of the limit."""
    if number is None:
        return "undefined"
    brief = f"{number:.4g}"
    return brief if rule.keeps(float(brief)) == rule.keeps(number) else repr(number)


def _interval(v: Verdict) -> str:
    if v.row is None or v.row.low is None or v.row.high is None:
        return ""
    return f"[{v.row.low:.3g}, {v.row.high:.3g}]"


def _width(lines: Sequence[Sequence[str]]) -> int:
    return sum(max(map(len, column)) + COLUMN_GAP for column in zip(*lines, strict=True)) - COLUMN_GAP
