"""Measurements laid out for reading: one table per metric and attribute, a column per term."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from portrayal.results import TOO_FEW, TOO_FEW_REASON, Measurement, Results

DETECTABLE = 2.8016  # standard errors: what a two-sided test at 5 % finds with 80 % probability


@dataclass(frozen=True)
class Row:
    """One line of a table: what its numbers are about, and the numbers by term."""

    system: str | None
    group: str | None
    item: str | None
    cells: dict[str, Measurement]

    @property
    def chance(self) -> tuple[str, str]:
        """p and q of the first number that has them, for scans over words or objects."""
        first = next((m for m in self.cells.values() if m.p is not None), None)
        p, q = (first.p, first.q) if first is not None else (None, None)
        return probability(p), probability(q)

    @property
    def n(self) -> str:
        """How much the row rests on: the n of its first number."""
        first = next(iter(self.cells.values()))
        return "" if first.n is None else f"{first.n:,}"


@dataclass
class Section:
    """One metric, one attribute, one set of settings."""

    metric: str
    attribute: str | None
    settings: dict[str, Any]
    terms: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    hidden: int = 0  # rows that are not shown

    @property
    def has_items(self) -> bool:
        return any(row.item is not None for row in self.rows)


def sections(results: Results) -> list[Section]:
    """The long table folded: rows and columns stand in the order in which they were measured."""
    units: dict[tuple[str, str], set[str | None]] = {}
    for m in results.measurements:
        units.setdefault((m.metric, m.term), set()).add(m.unit)
    folded: dict[str, Section] = {}
    rows: dict[tuple[str, str | None, str | None, str | None], Row] = {}
    for m in results.measurements:
        # A term may come as a count and as a share; then its columns say which is which.
        column = m.term if len(units[m.metric, m.term]) == 1 else f"{m.term} ({m.unit})"
        place = f"{m.metric}|{m.attribute}|{sorted(m.settings.items(), key=str)}"
        section = folded.setdefault(place, Section(m.metric, m.attribute, dict(m.settings)))
        if column not in section.terms:
            section.terms.append(column)
        key = (place, m.system, m.group, m.item)
        if key not in rows:
            rows[key] = Row(m.system, m.group, m.item, {})
            section.rows.append(rows[key])
        rows[key].cells[column] = m
    return list(folded.values())


def is_too_few(m: Measurement) -> bool:
    return m.value is not None and (m.reason or "").startswith(TOO_FEW_REASON)


def strongest(section: Section, most: int) -> Section:
    """The section with what goes most with each system's groups; the other items are counted, not shown.

    An item goes with a group when its number is above the group's own, and rests on enough. By p; among equals the
    farthest above first.
    """
    ranked: dict[tuple[str | None, str | None], list[tuple[float, float, int]]] = {}
    for index, row in enumerate(section.rows):
        m = next(iter(row.cells.values()))
        above = None if row.item is None or m.value is None else m.value - _middle(section, row)
        if above is not None and above > 0 and not is_too_few(m):
            ranked.setdefault((row.system, row.group), []).append(
                (2.0 if m.p is None else m.p, -above, index)
            )
    kept = {index: above for entries in ranked.values() for _, above, index in sorted(entries)[:most]}
    shown: dict[str | None, list[tuple[int, float, Row]]] = {}
    groups = list(dict.fromkeys(row.group for row in section.rows))
    for index, row in enumerate(section.rows):
        if row.item is None:
            shown.setdefault(row.system, []).append((-1, float(index), row))
        elif index in kept:
            shown.setdefault(row.system, []).append((groups.index(row.group), kept[index], row))
    rows = [row for entries in shown.values() for _, _, row in sorted(entries, key=lambda entry: entry[:2])]
    return replace(section, rows=rows, hidden=len(section.rows) - len(rows))


def _middle(section: Section, row: Row) -> float:
    """What an item is held against: the ideal of its term, else the same group's number for all items."""
    first = next(iter(row.cells.values()))
    if first.ideal is not None:
        return first.ideal
    whole = [r for r in section.rows if r.item is None and (r.system, r.group) == (row.system, row.group)]
    shares = [
        m.value for r in whole for m in r.cells.values() if m.unit == first.unit and m.value is not None
    ]
    return shares[0] if shares else 0.0


def number(value: float | None, unit: str | None) -> str:
    """A value as people read it; what is undefined is a dash, never a zero."""
    if value is None:
        return "–"
    if unit == "count":
        return f"{value:,.0f}" if abs(value) >= 10 or float(value).is_integer() else f"{value:,.1f}"
    if unit in ("percent", "z"):
        return f"{value:.1f}"
    if 0 < abs(value) < 0.00995:  # two digits that mean something, where three places would show one or none
        return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}" if abs(value) >= 1e-6 else f"{value:.1e}"
    return f"{value + 0.0:.3f}"


def probability(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.0005 else "<0.001"


def bare(m: Measurement) -> str:
    """A value alone; a dagger marks what rests on too little."""
    return number(m.value, m.unit) + ("†" if is_too_few(m) else "")


def with_interval(m: Measurement) -> str:
    """A value and its interval."""
    if m.low is None or m.high is None:
        return bare(m)
    return f"{bare(m)} [{number(m.low, m.unit)}, {number(m.high, m.unit)}]"


def facts(m: Measurement) -> str:
    """What stands beside a number for those who ask: n, p, and the smallest effect this much data would find."""
    parts = [f"n = {m.n:,} {m.n_unit or ''}".strip()] if m.n is not None else []
    parts += [f"p {probability(m.p)}"] if m.p is not None else []
    parts += [f"q {probability(m.q)}"] if m.q is not None else []
    if m.se_data:
        parts.append(f"detectable: {number(DETECTABLE * m.se_data, m.unit)}")
    return ", ".join(parts)


def settings_text(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def footnotes(rows: Sequence[Row]) -> list[str]:
    """Why dashes stand where they stand, one sentence per reason, and what a dagger means."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for term, m in row.cells.items():
            if m.value is None:
                about = " ".join(filter(None, (row.system, row.group, row.item, term)))
                reasons.setdefault(m.reason or "no reason was recorded", []).append(about)
    notes = [f"Undefined, {reason}: {', '.join(about)}." for reason, about in reasons.items()]
    if any(is_too_few(m) for row in rows for m in row.cells.values()):
        notes.append(f"† Rests on fewer than {TOO_FEW} images: too few to rank.")
    return notes
