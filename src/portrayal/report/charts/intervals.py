"""The forest plots of a table: a point and its interval for each number, in a panel for each term or ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from portrayal.report.charts.counterbias_data import METRIC as COUNTERBIAS
from portrayal.report.charts.forest import ForestRow, axis_limits, forest_plot, label_width
from portrayal.report.charts.panel import Chart, Panel
from portrayal.report.charts.vega import color_scale
from portrayal.report.tables.layout import format_number, format_value, is_too_few
from portrayal.report.tables.table import SUMMARY, Table
from portrayal.results import HUMAN, TOO_FEW, Measurement, Results

MAX_RANKINGS = 12  # panels of words or objects in a chart
IN_TABLE = "The table of this section holds the same numbers."
_WIDTH = 310  # pixels, if the page does not set the width
_MAX_TITLE_LETTERS = 32  # of a line below an axis
_BETTER = {
    "lower": "lower is better",
    "higher": "higher is better",
    "closer": "closer to the line is better",
}
MAX_TERMS = 6  # drawn of one table
MAX_ROWS = 48  # of a panel
ALL = "all"


@dataclass(frozen=True)
class PlotPoint:
    """A number of a table, with its term and the names in its row."""

    term: str
    system: str
    group: str | None
    item: str | None
    m: Measurement

    @property
    def series(self) -> str:
        return self.m.system or self.system


def system_names(results: Results) -> list[str]:
    """In the order of measurement, so that a system has the same color and shape in every chart."""
    return list(dict.fromkeys(m.system or "" for m in results.measurements))


def interval_chart(table: Table, systems: Sequence[str], title: str = "") -> Chart | None:
    """The forest plots of a table; None if there is nothing to draw or other charts of the page draw it."""
    if not _is_drawn(table) or (table.metric == COUNTERBIAS and table.has_items):
        return None
    points = _plot_points(table)
    second_column = table.second_column if table.has_second_column else ""
    by_term, by_group = _overall_points(points), _item_points(points)
    panels = [_PointPanel(term, False, _limit_points(own)) for term, own in by_term.items()]
    for (system, group), own in list(by_group.items())[:MAX_RANKINGS]:
        name = " · ".join(filter(None, (system, group, own[0].term)))
        panels.append(_PointPanel(name, True, _limit_points(own)))
    panels = [panel for panel in panels if len(panel.rows(second_column)) > 1]
    all_zero = [panel.name for panel in panels if not any(row.value for row in panel.rows(second_column))]
    panels = [panel for panel in panels if panel.name not in all_zero]
    if not panels:
        return None
    panel_rows = [(panel, panel.rows(second_column)) for panel in panels]
    labels_width = label_width(row for _, rows in panel_rows for row in rows)
    ranking_rows = [row for panel, rows in panel_rows if panel.is_ranking for row in rows]
    ranking_limits = axis_limits(ranking_rows or panel_rows[0][1])
    drawn, colors = [], color_scale(systems, neutral=HUMAN)
    for panel, rows in panel_rows:
        limits = ranking_limits if panel.is_ranking else axis_limits(rows)
        if all(map(math.isfinite, limits)):
            spec = forest_plot(rows, _axis_title(panel.points[0]), limits, colors, labels_width, _WIDTH)
            drawn.append(Panel(panel.name, _panel_summary(panel.name, rows, second_column), spec, IN_TABLE))
    if not drawn:
        return None
    drawn_points = [point for panel in panels for point in panel.points]
    n_defined = _count_defined([point for own in (*by_term.values(), *by_group.values()) for point in own])
    n_terms = len({point.term for point in points if point.item is None and point.m.low is not None})
    explanation = _explanation(drawn_points, n_defined, (len(by_term), n_terms), all_zero)
    return Chart(title, explanation, tuple(drawn))


def _count_defined(points: Sequence[PlotPoint]) -> int:
    return sum(point.m.value is not None for point in points)


def _axis_title(point: PlotPoint) -> list[str]:
    """The unit and which end is better, on one line if that is short."""
    parts = [part for part in (point.m.unit, _BETTER.get(point.m.better or "")) if part]
    return parts if sum(map(len, parts)) > _MAX_TITLE_LETTERS else [", ".join(parts)]


def _panel_summary(name: str, rows: Sequence[ForestRow], second_column: str) -> str:
    """The main numbers as text, for screen readers."""
    extremes = []
    for row in (min(rows, key=lambda row: row.value), max(rows, key=lambda row: row.value)):
        who = " ".join(
            filter(None, (row.tooltip["system"], row.tooltip.get(second_column), row.tooltip.get("item")))
        )
        extremes.append(f"{who} {row.tooltip['value']}, 95 % CI {row.tooltip['95 % CI']}")
    ideals = {row.ideal for row in rows}
    ideal = next(iter(ideals)) if len(ideals) == 1 else None
    text = f"{name}: {len(rows)} numbers with their 95 % CIs. Lowest: {extremes[0]}. Highest: {extremes[1]}."
    return text if ideal is None else f"{text} Ideal: {ideal:.3g}."


def _explanation(
    drawn: Sequence[PlotPoint], n_defined: int, n_terms: tuple[int, int], all_zero: Sequence[str]
) -> str:
    """How to read the chart, and what it leaves out. `n_terms` counts the terms that are drawn and all of them."""
    dashed = "; a dashed line is the ideal" if any(point.m.ideal is not None for point in drawn) else ""
    parts = [f"A point is a number, its line the 95 % CI{dashed}."]
    if any(is_too_few(point.m) for point in drawn):
        parts.append(f"Hollow: rests on fewer than {TOO_FEW} images.")
    if n_undefined := sum(point.m.value is None for point in drawn):
        parts.append(
            f"{n_undefined} undefined {'number is' if n_undefined == 1 else 'numbers are'} not drawn."
        )
    if all_zero:
        parts.append(f"Not drawn, since all its numbers are 0: {', '.join(all_zero)}.")
    if n_terms[0] < n_terms[1]:
        parts.append(f"{n_terms[0]} of {n_terms[1]} terms with 95 % CIs are drawn.")
    if _count_defined(drawn) < n_defined:
        parts.append(f"{_count_defined(drawn)} of {n_defined} numbers are drawn.")
    return " ".join([*parts, IN_TABLE])


@dataclass(frozen=True)
class _PointPanel:
    """The points of a panel; `is_ranking` if they are words or objects, which share one axis with other rankings."""

    name: str
    is_ranking: bool
    points: list[PlotPoint]

    def rows(self, second_column: str) -> list[ForestRow]:
        return _forest_rows(self.points, second_column)


def _plot_points(table: Table) -> list[PlotPoint]:
    """Every number of a table, whether its columns are terms or systems."""
    points = []
    for row in table.rows:
        for column in (column_name for column_name in table.columns if column_name in row.cells):
            m = row.cells[column]
            term, system = (row.system or "", column) if table.by_term else (column, row.system or "")
            points.append(PlotPoint(term, system, row.group, row.item, m))
    return points


def _is_drawn(table: Table) -> bool:
    """Whether a table has a chart. Of a metric with many tables only the summary has one."""
    return not table.by_term or table.subtitle == SUMMARY


def _overall_points(points: Sequence[PlotPoint]) -> dict[str, list[PlotPoint]]:
    """The numbers about all words or objects by term, for the main terms that have intervals."""
    by_term: dict[str, list[PlotPoint]] = {}
    for point in points:
        if point.item is None:
            by_term.setdefault(point.term, []).append(point)
    drawable = [term for term, term_points in by_term.items() if _drawable(term_points)]
    chosen = sorted(drawable, key=lambda term: _rank(by_term[term]))[:MAX_TERMS]
    return {term: by_term[term] for term in drawable if term in chosen}


def _item_points(points: Sequence[PlotPoint]) -> dict[tuple[str, str | None], list[PlotPoint]]:
    """The words or objects of each system and group, with the number that ranks them if it has an interval."""
    items = [point for point in points if point.item is not None]
    by_term: dict[str, list[PlotPoint]] = {}
    for point in items:
        by_term.setdefault(point.term, []).append(point)
    drawable = [term_points for term_points in by_term.values() if _drawable(term_points)]
    if not drawable:
        return {}
    tested = [term_points for term_points in drawable if any(point.m.p is not None for point in term_points)]
    chosen = min(tested or drawable, key=lambda term_points: term_points[0].m.unit == "count")
    by_group: dict[tuple[str, str | None], list[PlotPoint]] = {}
    for point in chosen:
        by_group.setdefault((point.system, point.group), []).append(point)
    return by_group


def _limit_points(points: Sequence[PlotPoint]) -> list[PlotPoint]:
    """As many points as a panel holds: all, else those about all people, else the first ones."""
    if len(points) <= MAX_ROWS:
        return list(points)
    overall = [point for point in points if point.group is None]
    return (overall if len(overall) > 1 else list(points))[:MAX_ROWS]


def _forest_rows(points: Sequence[PlotPoint], second_column: str) -> list[ForestRow]:
    """The defined points as rows. If systems have several rows each, a system's name is the heading of its rows."""
    defined = [point for point in points if point.m.value is not None]
    has_groups = len({point.group for point in defined}) > 1
    items = any(point.item is not None for point in defined)
    rows = []
    order = list(dict.fromkeys(point.system for point in defined))
    for point in sorted(defined, key=lambda point: order.index(point.system)):
        m, label = (
            point.m,
            (point.item or ALL) if items else (point.group or ALL) if has_groups else point.system,
        )
        heading = point.system if has_groups and not items else None
        tooltip = _tooltip_fields(point, second_column)
        rows.append(
            ForestRow(
                label, m.value or 0.0, m.low, m.high, m.ideal, point.series, is_too_few(m), tooltip, heading
            )
        )
    return rows


def _tooltip_fields(point: PlotPoint, second_column: str) -> dict[str, str]:
    """The names and texts of a point's tooltip."""
    m = point.m
    fields = {"system": point.system}
    fields |= {second_column: point.group or ALL} if second_column else {}
    fields |= {"item": point.item} if point.item is not None else {}
    fields |= {"term": point.term, "value": f"{format_value(m)} {m.unit or ''}".strip()}
    has_interval = m.low is not None and m.high is not None
    fields["95 % CI"] = (
        f"[{format_number(m.low, m.unit)}, {format_number(m.high, m.unit)}]" if has_interval else "not known"
    )
    fields |= {"n": f"{m.n:,} {m.n_unit or ''}".strip()} if m.n is not None else {}
    return fields


def _drawable(points: Sequence[PlotPoint]) -> bool:
    """Whether there are at least two points and an interval: values without intervals would mislead."""
    defined = [point for point in points if point.m.value is not None]
    return len(defined) > 1 and any(point.m.low is not None for point in defined)


def _rank(points: Sequence[PlotPoint]) -> int:
    """The order of terms: the one that a metric is named after, then those with an ideal or direction, then others."""
    first = points[0].m
    return 0 if first.term == first.metric else 1 if first.ideal is not None or first.better else 2
