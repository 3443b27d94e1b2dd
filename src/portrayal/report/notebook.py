"""What `Results` shows in a notebook: an HTML view of the headlines, and forest plots as Altair charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from portrayal.errors import PortrayalError, counted, listed
from portrayal.files import write_text
from portrayal.notebook_html import MAX_ROWS, render_view
from portrayal.questions import QUESTIONS, question_of
from portrayal.report.cards import metric_cards
from portrayal.report.charts.forest import concatenate
from portrayal.report.charts.intervals import interval_chart, system_names
from portrayal.report.charts.panel import Panel
from portrayal.report.findings.changes import change_sentences, count_changes, row_labels
from portrayal.report.findings.findings import conclusions
from portrayal.report.page import comparison, page
from portrayal.report.page.embedded import read_template
from portrayal.report.tables.layout import format_number, format_value, is_too_few, study_cautions
from portrayal.report.tables.table import Table, TableRow
from portrayal.results import HUMAN, TOO_FEW, Measurement, Results, split_cautions

if TYPE_CHECKING:
    from altair.typing import ChartType

MAX_SYSTEMS = 8  # columns of a view
MAX_PANELS = 12  # of a chart
_MAX_CAUTIONS = 2  # about the study in a view
_MAX_LABELS = 3  # of the numbers that a note is about
_LINE_NAMES = ("metric", "attribute", "term", "group", "item", "unit")
_NO_SYSTEM = "value"  # the column of measurements without a system


@dataclass(frozen=True)
class ViewLine:
    """A line of a view: what it is about, and a measurement for each system."""

    about: Mapping[str, str]
    cells: dict[str, Measurement] = field(default_factory=dict)


def results_html(results: Results) -> str:
    """The HTML view of results: what they are, their findings, and the headlines, or all rows if these are few."""
    lines, are_headlines = _view_lines(results)
    shown = lines[:MAX_ROWS]
    systems = list(dict.fromkeys(system for line in shown for system in line.cells if system != HUMAN))
    columns = systems[:MAX_SYSTEMS] + [HUMAN] * any(HUMAN in line.cells for line in shown)
    cautions = study_cautions(results.provenance)
    place = ".headline().to_polars()" if are_headlines else ".to_polars()"
    values = {
        "kind": "Comparison" if _is_comparison(results) else "Results",
        "name": _study_name(results),
        "count": len(results.measurements),
        "n_metrics": len({m.metric for m in results.measurements}),
        "systems": listed(name for name in system_names(results) if name),
        "sentences": _sentences(results),
        "cautions": cautions[:_MAX_CAUTIONS],
        "names": [name for name in _LINE_NAMES if any(line.about[name] for line in shown)],
        "columns": columns,
        "lines": shown,
        "more": [
            *_not_shown(len(cautions) - _MAX_CAUTIONS, "more caution", ".provenance['cautions']"),
            *_not_shown(len(systems) - MAX_SYSTEMS, "more system", place),
            *_not_shown(len(lines) - len(shown), "more row", place),
        ],
        "are_headlines": are_headlines,
        "has_intervals": any(m.low is not None for line in shown for m in line.cells.values()),
        "notes": _notes(shown, columns),
    }
    return render_view(
        read_template("notebook.html"), values, {"value": format_value, "number": format_number}
    )


def forest_chart(results: Results) -> ChartType:
    """Forest plots of the results as one Altair chart: of all terms, or of the headlines if there are too many."""
    panels = _panels(results)
    if len(panels) > MAX_PANELS and not results.conditions:
        panels = _panels(results.headline())
    if not panels:
        raise PortrayalError(
            "There is nothing to draw: a forest plot needs two numbers of one term, one of them with an interval."
        )
    import altair

    spec = concatenate([(panel.name, panel.spec) for panel in panels[:MAX_PANELS]])
    if len(panels) > MAX_PANELS:
        text = f"{MAX_PANELS} of {len(panels)} panels; a metric, term, attribute or system selects others"
        spec = {"title": {"text": text, "anchor": "start", "fontSize": 12}, **spec}
    chart: ChartType = altair.Chart.from_dict(spec)
    return chart


def write_html(results: Results, path: Path) -> Path:
    """Write the page of results or of a comparison: a file that ends in `.html`, or index.html in a folder."""
    file = path if path.suffix == ".html" else path / page.PAGE_FILE
    write_text(file, comparison.render(results) if _is_comparison(results) else page.render(results))
    return file


def _view_lines(results: Results) -> tuple[list[ViewLine], bool]:
    """The lines of all measurements if they fit into a view, else of the headlines; and whether they are these."""
    rows = results.measurements
    # Lines also differ by settings, which take long to compare.
    may_fit = len({(m.metric, m.term, m.attribute, m.group, m.item, m.unit) for m in rows}) <= MAX_ROWS
    lines = _lines(rows) if may_fit else []
    if may_fit and len(lines) <= MAX_ROWS:
        return lines, False
    cards = metric_cards(results)
    headlines = sorted(
        results.headline().measurements, key=lambda m: QUESTIONS.index(question_of(cards.get(m.metric)))
    )
    return (_lines(headlines), True) if headlines else (lines or _lines(rows), False)


def _lines(rows: Sequence[Measurement]) -> list[ViewLine]:
    terms = row_labels(rows)
    lines: dict[tuple[str, ...], ViewLine] = {}
    for m in rows:
        names = (m.metric, m.attribute or "", terms[m.id], m.group or "", m.item or "", m.unit or "")
        line = lines.setdefault(names, ViewLine(dict(zip(_LINE_NAMES, names, strict=True))))
        line.cells[m.system or _NO_SYSTEM] = m
    return list(lines.values())


def _sentences(results: Results) -> list[str]:
    """What was found, in two sentences; a selection refers to the complete results."""
    sentences = []
    if results.conditions:
        sentences.append(f"A selection ({'; '.join(map(str, results.conditions))}).")
    if _is_comparison(results):
        return [*sentences, *_change_sentences(results)]
    if results.conditions:
        return sentences
    concluded = conclusions(results)
    corrected = f"(Holm, 5 %, {counted(concluded.n_comparisons, 'comparison')})"
    if concluded.findings:
        return [
            f"{counted(len(concluded.findings), 'finding')} {corrected}. First: {concluded.findings[0].text}"
        ]
    return [f"No finding {corrected}."] if concluded.sentences else []


def _change_sentences(results: Results) -> list[str]:
    names = results.provenance["compared"]
    changed, same, untested = count_changes(results)
    counts = (
        f"Values are {names[1]} − {names[0]}. {counted(changed, 'significant change')} (Holm, 5 %), {same:,} not "
        f"significant, {untested:,} not tested."
    )
    return [counts, *(f"First: {sentence}" for sentence in change_sentences(results)[:1])]


def _not_shown(number: int, thing: str, place: str) -> list[str]:
    """How many things a view leaves out, and where they are."""
    return [f"{counted(number, thing)}: {place}."] if number > 0 else []


def _notes(lines: Sequence[ViewLine], columns: Sequence[str]) -> list[str]:
    """Why numbers are undefined, remarks and cautions: each text once, after the numbers that it is about."""
    labels: dict[str, list[str]] = {}
    for line in lines:
        for system in columns:
            if system in line.cells:
                about = [line.about[name] for name in ("metric", "attribute", "term", "group", "item")]
                for text in _texts(line.cells[system]):
                    labels.setdefault(text, []).append(" ".join(filter(None, (*about, system))))
    return [f"{text} ({listed(about, _MAX_LABELS)})" for text, about in labels.items()]


def _texts(m: Measurement) -> list[str]:
    texts = [f"Caution: {caution}" for caution in split_cautions(m.caution)]
    if m.value is None:
        return [f"Undefined: {m.reason}", *texts]
    if is_too_few(m):
        return [f"† Fewer than {TOO_FEW} images", *texts]
    return [m.reason, *texts] if m.reason else texts


def _panels(results: Results) -> list[Panel]:
    """A forest plot for each term, metric and attribute under each setting, as the page draws them."""
    systems = system_names(results)
    panels: list[Panel] = []
    for table in _plain_tables(results):
        chart = interval_chart(table, systems)
        for panel in chart.panels if chart else ():
            name = " · ".join(filter(None, (table.metric, table.attribute, table.subtitle, panel.name)))
            panels.append(Panel(name, panel.summary, panel.spec))
    return panels


def _plain_tables(results: Results) -> list[Table]:
    """The measurements as tables with a column for each term, whatever the layout of their metric on the page."""
    tables: dict[tuple[str, ...], Table] = {}
    rows: dict[tuple[object, ...], TableRow] = {}
    for m in results.measurements:
        key = (m.metric, str(m.attribute), str(m.unit), str(sorted(m.settings.items(), key=str)))
        table = tables.setdefault(key, Table(m.metric, m.attribute, dict(m.settings)))
        row_key = (key, m.system, m.group, m.item)
        if row_key not in rows:
            rows[row_key] = TableRow(m.system, m.group, m.item, {})
            table.rows.append(rows[row_key])
        if m.term not in table.columns:
            table.columns.append(m.term)
        rows[row_key].cells[m.term] = m
    return list(tables.values())


def _is_comparison(results: Results) -> bool:
    compared = results.provenance.get("compared")
    return isinstance(compared, list | tuple) and len(compared) == 2


def _study_name(results: Results) -> str:
    study = results.provenance.get("study")
    name = study.get("name") if isinstance(study, Mapping) else None
    return (
        str(name)
        if name
        else " and ".join(map(str, results.provenance["compared"]))
        if _is_comparison(results)
        else "a study"
    )
