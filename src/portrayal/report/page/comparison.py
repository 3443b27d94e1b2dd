"""The page of a comparison of two audits: the changes in sentences, charts and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from portrayal.files import write_text
from portrayal.questions import QUESTIONS, Question, question_of
from portrayal.report.charts.forest import ForestRow, axis_limits, forest_plot, label_width
from portrayal.report.charts.interactive import Plots
from portrayal.report.charts.panel import Panel
from portrayal.report.charts.vega import color_scale
from portrayal.report.findings.changes import (
    caution_notes,
    change_sentences,
    changed_rows,
    count_changes,
    format_difference,
    reason_notes,
    row_labels,
    verdict,
)
from portrayal.report.page.embedded import csp_hash, pack_json, read_template
from portrayal.report.page.page import PAGE_FILE
from portrayal.report.tables.layout import MDE_FACTOR, format_number, is_too_few
from portrayal.report.tables.table import format_p
from portrayal.results import Measurement, Results

_WIDTH = 310  # pixels of a chart, if the page does not set the width

__all__ = ["change_sentences", "changed_rows", "render", "write_comparison"]


@dataclass(frozen=True)
class ComparedMetric:
    """The differences of one metric and attribute."""

    metric: str
    attribute: str | None
    title: str
    rows: tuple[Measurement, ...]

    @cached_property
    def panels(self) -> list[Panel]:
        """A forest plot of the overall differences for each unit."""
        overall = [m for m in self.rows if m.group is None and m.value is not None and m.low is not None]
        units = {
            unit: [m for m in overall if m.unit == unit] for unit in dict.fromkeys(m.unit for m in overall)
        }
        return [_panel(unit_rows, str(unit or "")) for unit, unit_rows in units.items() if len(unit_rows) > 1]


def write_comparison(differences: Results, folder: Path) -> Path:
    """Write the page as index.html into a folder. Returns its path."""
    path = folder / PAGE_FILE
    write_text(path, render(differences))
    return path


def render(differences: Results) -> str:
    """The HTML of the page. Names are untrusted: they enter through autoescaping and as data of charts."""
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.ChainableUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = format_number
    environment.filters["format_p"] = format_p
    environment.tests["too_few"] = is_too_few
    style = read_template("page.css")
    compared = differences.provenance.get("compared")
    first, second = (
        compared if isinstance(compared, list | tuple) and len(compared) == 2 else ("first", "second")
    )
    first, second = (str(name).rstrip("/").rpartition("/")[2] for name in (first, second))
    questions = _by_question(differences)
    plots = Plots([panel for _, metrics in questions for metric in metrics for panel in metric.panels])
    return environment.from_string(read_template("comparison.html")).render(
        first=first,
        second=second,
        origin=differences.provenance,
        sentences=change_sentences(differences),
        counts=count_changes(differences),
        verdict=verdict,
        names=row_labels(differences.measurements),
        cautions=caution_notes,
        notes=reason_notes,
        questions=questions,
        plots=plots,
        mde=lambda m: format_number(MDE_FACTOR * m.se_data if m.se_data else None, m.unit),
        measurements=pack_json(differences.as_dict()),
        style=Markup(style),
        style_hash=csp_hash(style),
    )


def _by_question(differences: Results) -> list[tuple[Question, list[ComparedMetric]]]:
    cards = differences.provenance.get("cards")
    card_by_metric: dict[str, Any] = cards if isinstance(cards, dict) else {}
    rows_by_metric: dict[tuple[str, str | None], list[Measurement]] = {}
    for m in differences.measurements:
        rows_by_metric.setdefault((m.metric, m.attribute), []).append(m)
    sections = [
        ComparedMetric(metric, attribute, _title(card_by_metric.get(metric), metric), tuple(rows))
        for (metric, attribute), rows in rows_by_metric.items()
    ]
    return [
        (question, own)
        for question in QUESTIONS
        if (own := [part for part in sections if question_of(card_by_metric.get(part.metric)) == question])
    ]


def _title(card: Any, metric: str) -> str:
    return str(card.get("title", metric)) if isinstance(card, dict) else metric


def _panel(rows: Sequence[Measurement], unit: str) -> Panel:
    """A forest plot with a line at 0, where nothing changed."""
    systems = list(dict.fromkeys(m.system or "" for m in rows))
    names = row_labels(rows)
    forest_rows = [
        ForestRow(
            names[m.id],
            m.value or 0.0,
            m.low,
            m.high,
            0.0,
            m.system or "",
            is_too_few(m),
            _tooltip(m, names[m.id]),
            m.system,
        )
        for name in systems
        for m in rows
        if (m.system or "") == name
    ]
    summary = "; ".join(f"{m.system} {names[m.id]} {format_difference(m)}" for m in rows)
    title = [f"second less first, {unit}"]
    spec = forest_plot(
        forest_rows, title, axis_limits(forest_rows), color_scale(systems), label_width(forest_rows), _WIDTH
    )
    return Panel(unit, summary, spec, "The table of this section holds the same numbers.")


def _tooltip(m: Measurement, name: str) -> dict[str, str]:
    """The names and texts of a point's tooltip."""
    values = {name: format_number(m.settings.get(name), m.unit) for name in ("first", "second")}
    return {"system": m.system or "", "term": name, **values, "difference": format_difference(m)}
