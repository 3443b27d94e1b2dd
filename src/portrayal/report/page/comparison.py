"""The page of a comparison: what changed from one audit to another, in sentences, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from portrayal.files import write_text
from portrayal.report.charts.counterbias_specs import scale
from portrayal.report.charts.forest import Line, ends, forest, room_for
from portrayal.report.charts.interactive import Plots
from portrayal.report.charts.panel import Panel
from portrayal.report.findings.changes import (
    cautions,
    counts,
    difference,
    labels,
    moved,
    notes,
    sentences,
    verdict,
)
from portrayal.report.findings.questions import OTHER, QUESTIONS, Question, question_of
from portrayal.report.page.embedded import hash_of, packed, template_text
from portrayal.report.page.page import PAGE_FILE
from portrayal.report.tables.layout import DETECTABLE, is_too_few, number
from portrayal.report.tables.table import probability
from portrayal.results import Measurement, Results

_WIDTH = 310  # pixels of a chart, where a page does not say how wide it is

__all__ = ["moved", "render", "sentences", "write_comparison"]


@dataclass(frozen=True)
class Part:
    """The rows of one metric and attribute."""

    metric: str
    attribute: str | None
    title: str
    rows: tuple[Measurement, ...]

    @cached_property
    def panels(self) -> list[Panel]:
        """One for each unit that headlines have: how far each number moved, with its interval and a line at 0."""
        whole = [m for m in self.rows if m.group is None and m.value is not None and m.low is not None]
        units = {unit: [m for m in whole if m.unit == unit] for unit in dict.fromkeys(m.unit for m in whole)}
        return [_panel(some, str(unit or "")) for unit, some in units.items() if len(some) > 1]


def write_comparison(differences: Results, folder: Path) -> Path:
    path = folder / PAGE_FILE
    write_text(path, render(differences))
    return path


def render(differences: Results) -> str:
    """Names are strangers' text: they enter through autoescaping, and as data of charts."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.ChainableUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    environment.filters["probability"] = probability
    environment.tests["too_few"] = is_too_few
    style = template_text("page.css")
    names = differences.provenance.get("compared")
    first, second = names if isinstance(names, list | tuple) and len(names) == 2 else ("first", "second")
    first, second = (str(name).rstrip("/").rpartition("/")[2] for name in (first, second))
    questions = _by_question(differences)
    plots = Plots([panel for _, parts in questions for part in parts for panel in part.panels])
    return environment.from_string(template_text("comparison.html")).render(
        first=first,
        second=second,
        origin=differences.provenance,
        sentences=sentences(differences),
        counts=counts(differences),
        verdict=verdict,
        names=labels(differences.measurements),
        cautions=cautions,
        notes=notes,
        questions=questions,
        plots=plots,
        detectable=lambda m: number(DETECTABLE * m.se_data if m.se_data else None, m.unit),
        measurements=packed(differences.as_dict()),
        style=Markup(style),
        style_hash=hash_of(style),
    )


def _by_question(differences: Results) -> list[tuple[Question, list[Part]]]:
    cards = differences.provenance.get("cards")
    known: dict[str, Any] = cards if isinstance(cards, dict) else {}
    parts: dict[tuple[str, str | None], list[Measurement]] = {}
    for m in differences.measurements:
        parts.setdefault((m.metric, m.attribute), []).append(m)
    made = [
        Part(metric, attribute, _title(known.get(metric), metric), tuple(rows))
        for (metric, attribute), rows in parts.items()
    ]
    return [
        (question, some)
        for question in (*QUESTIONS, OTHER)
        if (some := [part for part in made if question_of(part.metric) == question])
    ]


def _title(card: Any, metric: str) -> str:
    return str(card.get("title", metric)) if isinstance(card, dict) else metric


def _panel(rows: Sequence[Measurement], unit: str) -> Panel:
    """A point and its interval for each headline, and a line where nothing changed."""
    everybody = list(dict.fromkeys(m.system or "" for m in rows))
    names = labels(rows)
    lines = [
        Line(
            names[m.id],
            m.value or 0.0,
            m.low,
            m.high,
            0.0,
            m.system or "",
            is_too_few(m),
            _tip(m, names[m.id]),
            m.system,
        )
        for name in everybody
        for m in rows
        if (m.system or "") == name
    ]
    about = "; ".join(f"{m.system} {names[m.id]} {difference(m)}" for m in rows)
    title = [f"second less first, {unit}"]
    spec = forest(lines, title, ends(lines), scale(everybody), room_for(lines), _WIDTH)
    return Panel(unit, about, spec, "The table of this section holds the same numbers.")


def _tip(m: Measurement, name: str) -> dict[str, str]:
    """What a point says when it is pointed at."""
    moved_from = {name: number(m.settings.get(name), m.unit) for name in ("first", "second")}
    return {"system": m.system or "", "term": name, **moved_from, "difference": difference(m)}
