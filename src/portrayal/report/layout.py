"""Measurements laid out for reading: one table per metric and attribute, a column per term."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from portrayal.results import Measurement, Results


@dataclass(frozen=True)
class Row:
    """One line of a table: what its numbers are about, and the numbers by term."""

    system: str | None
    group: str | None
    item: str | None
    cells: dict[str, Measurement]


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
    folded: dict[str, Section] = {}
    rows: dict[tuple[str, str | None, str | None, str | None], Row] = {}
    for m in results.measurements:
        place = f"{m.metric}|{m.attribute}|{sorted(m.settings.items(), key=str)}"
        section = folded.setdefault(place, Section(m.metric, m.attribute, dict(m.settings)))
        if m.term not in section.terms:
            section.terms.append(m.term)
        key = (place, m.system, m.group, m.item)
        if key not in rows:
            rows[key] = Row(m.system, m.group, m.item, {})
            section.rows.append(rows[key])
        rows[key].cells[m.term] = m
    return list(folded.values())


def number(value: float | None, unit: str | None) -> str:
    """A value as people read it; what is undefined is a dash, never a zero."""
    if value is None:
        return "–"
    if unit == "count":
        return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"
    if unit == "percent":
        return f"{value:.1f}"
    return f"{value:.3f}"


def with_interval(m: Measurement) -> str:
    text = number(m.value, m.unit)
    if m.low is None or m.high is None:
        return text
    return f"{text} [{number(m.low, m.unit)}, {number(m.high, m.unit)}]"


def settings_text(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sorted(settings.items()))


def undefined_reasons(rows: Iterable[Row]) -> list[str]:
    """Why dashes stand where they stand: one sentence per reason."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        for term, m in row.cells.items():
            if m.value is None:
                about = " ".join(filter(None, (row.system, row.group, row.item, term)))
                reasons.setdefault(m.reason or "no reason was recorded", []).append(about)
    return [f"Undefined, {reason}: {', '.join(about)}." for reason, about in reasons.items()]
