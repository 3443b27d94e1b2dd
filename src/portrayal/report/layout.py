"""Measurements laid out for reading: one table per metric and attribute, a column per term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from portrayal.results import TOO_FEW, Measurement, Results


@dataclass(frozen=True)
class Row:
    """One line of a table: what its numbers are about, and the numbers by term."""

    system: str | None
    group: str | None
    item: str | None
    cells: dict[str, Measurement]

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
    return m.value is not None and m.n is not None and m.n < TOO_FEW and m.unit != "count"


def number(value: float | None, unit: str | None) -> str:
    """A value as people read it; what is undefined is a dash, never a zero."""
    if value is None:
        return "–"
    if unit == "count":
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    if unit == "percent":
        return f"{value:.1f}"
    return f"{value:.3f}"


def bare(m: Measurement) -> str:
    """A value alone; a dagger marks what rests on too little."""
    return number(m.value, m.unit) + ("†" if is_too_few(m) else "")


def with_half_width(m: Measurement) -> str:
    """A value and half the width of its interval."""
    if m.low is None or m.high is None:
        return bare(m)
    return f"{bare(m)} ±{number((m.high - m.low) / 2, m.unit)}"


def with_interval(m: Measurement) -> str:
    """A value and its interval."""
    if m.low is None or m.high is None:
        return bare(m)
    return f"{bare(m)} [{number(m.low, m.unit)}, {number(m.high, m.unit)}]"


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
        notes.append(f"† Rests on fewer than {TOO_FEW}: too few to rank.")
    return notes
