"""Forest plots of a table: a point and its interval for each number, with a panel for each term or ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from portrayal.report.charts.forest import ForestRow, axis_limits, forest_plot, label_width
from portrayal.report.charts.panel import Chart, Panel
from portrayal.report.charts.vega import color_scale
from portrayal.report.tables.layout import format_number, format_value, is_too_few
from portrayal.report.tables.table import SUMMARY, Table
from portrayal.results import HUMAN, TOO_FEW, Measurement, Results

MAX_RANKINGS = 12  # panels of items (words or objects) in one chart
IN_TABLE = "The table of this section holds the same numbers."
_WIDTH = 310  # pixels, if the page does not set the width
_MAX_TITLE_LENGTH = 32  # characters of a line below an axis
_DIRECTION_TEXTS = {
    "lower": "lower is better",
    "higher": "higher is better",
    "closer": "closer to the line is better",
}
MAX_TERMS = 6  # terms of one table that are drawn
MAX_ROWS = 48  # rows of one panel
ALL_GROUPS = "all"


@dataclass(frozen=True)
class PlotPoint:
    """A number of a table, with its term and the names of its row."""

    term: str
    system: str
    group: str | None
    item: str | None
    measurement: Measurement

    @property
    def series(self) -> str:
        """The system that determines color and shape."""
        return self.measurement.system or self.system


def system_names(results: Results) -> list[str]:
    """The systems in the order of measurement, so that each has the same color and shape in every chart."""
    return list(dict.fromkeys(m.system or "" for m in results.measurements))


def interval_chart(table: Table, systems: Sequence[str], title: str = "") -> Chart | None:
    """The chart of a table; None if there is nothing to draw, or if other charts of the page draw the numbers."""
    if not _is_drawn(table) or (table.items_drawn_elsewhere and table.has_items):
        return None
    points = _plot_points(table)
    second_column = table.second_column if table.has_second_column else ""
    points_by_term, points_by_group = _overall_points(points, table.headline), _item_points(points)
    panels = [
        _PointPanel(term, False, _limit_points(group_points)) for term, group_points in points_by_term.items()
    ]
    for (system, group), group_points in list(points_by_group.items())[:MAX_RANKINGS]:
        panel_name = " · ".join(filter(None, (system, group, group_points[0].term)))
        panels.append(_PointPanel(panel_name, True, _limit_points(group_points)))
    panels = [panel for panel in panels if len(panel.rows(second_column)) > 1]
    all_zero = [panel.name for panel in panels if not any(row.value for row in panel.rows(second_column))]
    panels = [panel for panel in panels if panel.name not in all_zero]
    if not panels:
        return None
    panels_with_rows = [(panel, panel.rows(second_column)) for panel in panels]
    labels_width = label_width(row for _, rows in panels_with_rows for row in rows)
    ranking_rows = [row for panel, rows in panels_with_rows if panel.is_ranking for row in rows]
    ranking_limits = axis_limits(ranking_rows or panels_with_rows[0][1])
    drawn_panels, colors = [], color_scale(systems, neutral=HUMAN)
    for panel, rows in panels_with_rows:
        limits = ranking_limits if panel.is_ranking else axis_limits(rows)
        if all(map(math.isfinite, limits)):
            spec = forest_plot(rows, _axis_title(panel.points[0]), limits, colors, labels_width, _WIDTH)
            drawn_panels.append(
                Panel(panel.name, _panel_summary(panel.name, rows, second_column), spec, IN_TABLE)
            )
    if not drawn_panels:
        return None
    drawn_points = [point for panel in panels for point in panel.points]
    n_defined = _count_defined(
        [
            point
            for group_points in (*points_by_term.values(), *points_by_group.values())
            for point in group_points
        ]
    )
    n_terms = len(
        {point.term for point in points if point.item is None and point.measurement.low is not None}
    )
    explanation = _explanation(drawn_points, n_defined, (len(points_by_term), n_terms), all_zero)
    return Chart(title, explanation, tuple(drawn_panels))


def _count_defined(points: Sequence[PlotPoint]) -> int:
    """The number of points with a value."""
    return sum(point.measurement.value is not None for point in points)


def _axis_title(point: PlotPoint) -> list[str]:
    """The lines of an axis title: the unit and which end is better, on one line if short enough."""
    title_lines = [
        line
        for line in (point.measurement.unit, _DIRECTION_TEXTS.get(point.measurement.better or ""))
        if line
    ]
    return title_lines if sum(map(len, title_lines)) > _MAX_TITLE_LENGTH else [", ".join(title_lines)]


def _panel_summary(name: str, rows: Sequence[ForestRow], second_column: str) -> str:
    """The main numbers of a panel as text, for screen readers."""
    extremes = []
    for row in (min(rows, key=lambda row: row.value), max(rows, key=lambda row: row.value)):
        row_name = " ".join(
            filter(None, (row.tooltip["system"], row.tooltip.get(second_column), row.tooltip.get("item")))
        )
        extremes.append(f"{row_name} {row.tooltip['value']}, 95 % CI {row.tooltip['95 % CI']}")
    ideals = {row.ideal for row in rows}
    ideal = next(iter(ideals)) if len(ideals) == 1 else None
    summary = (
        f"{name}: {len(rows)} numbers with their 95 % CIs. Lowest: {extremes[0]}. Highest: {extremes[1]}."
    )
    return summary if ideal is None else f"{summary} Ideal: {ideal:.3g}."


def _explanation(
    drawn: Sequence[PlotPoint], n_defined: int, n_terms: tuple[int, int], all_zero: Sequence[str]
) -> str:
    """How to read the chart, and which numbers are not drawn.

    `n_terms` are the number of terms that are drawn and the number of all terms with intervals.
    """
    ideal_text = (
        "; a dashed line is the ideal" if any(point.measurement.ideal is not None for point in drawn) else ""
    )
    sentences = [f"A point is a number, its line the 95 % CI{ideal_text}."]
    if any(is_too_few(point.measurement) for point in drawn):
        sentences.append(f"Hollow: rests on fewer than {TOO_FEW} images.")
    if n_undefined := sum(point.measurement.value is None for point in drawn):
        sentences.append(
            f"{n_undefined} undefined {'number is' if n_undefined == 1 else 'numbers are'} not drawn."
        )
    if all_zero:
        sentences.append(f"Not drawn, since all its numbers are 0: {', '.join(all_zero)}.")
    if n_terms[0] < n_terms[1]:
        sentences.append(f"{n_terms[0]} of {n_terms[1]} terms with 95 % CIs are drawn.")
    if _count_defined(drawn) < n_defined:
        sentences.append(f"{_count_defined(drawn)} of {n_defined} numbers are drawn.")
    return " ".join([*sentences, IN_TABLE])


@dataclass(frozen=True)
class _PointPanel:
    """The points of a panel.

    `is_ranking` is true for items (words or objects). All rankings of a chart have the same axis limits.
    """

    name: str
    is_ranking: bool
    points: list[PlotPoint]

    def rows(self, second_column: str) -> list[ForestRow]:
        return _forest_rows(self.points, second_column)


def _plot_points(table: Table) -> list[PlotPoint]:
    """The points of all numbers in a table, whether its columns are terms or systems."""
    points = []
    for row in table.rows:
        for column in (column_name for column_name in table.columns if column_name in row.cells):
            m = row.cells[column]
            term, system = (row.system or "", column) if table.by_term else (column, row.system or "")
            points.append(PlotPoint(term, system, row.group, row.item, m))
    return points


def _is_drawn(table: Table) -> bool:
    """Whether a table has a chart. Among the tables of a metric with a row per term, only the summary has one."""
    return not table.by_term or table.subtitle == SUMMARY


def _overall_points(points: Sequence[PlotPoint], headline: Sequence[str]) -> dict[str, list[PlotPoint]]:
    """The overall points (without an item) by term, for the `MAX_TERMS` main terms with intervals."""
    points_by_term: dict[str, list[PlotPoint]] = {}
    for point in points:
        if point.item is None:
            points_by_term.setdefault(point.term, []).append(point)
    drawable_terms = [term for term, term_points in points_by_term.items() if _can_be_drawn(term_points)]
    by_priority = sorted(drawable_terms, key=lambda term: _term_priority(points_by_term[term], headline))
    shown_terms = by_priority[:MAX_TERMS]
    return {term: points_by_term[term] for term in drawable_terms if term in shown_terms}


def _item_points(points: Sequence[PlotPoint]) -> dict[tuple[str, str | None], list[PlotPoint]]:
    """The points of items by system and group, for the term that ranks items, if it has intervals."""
    item_points = [point for point in points if point.item is not None]
    points_by_term: dict[str, list[PlotPoint]] = {}
    for point in item_points:
        points_by_term.setdefault(point.term, []).append(point)
    drawable_points = [term_points for term_points in points_by_term.values() if _can_be_drawn(term_points)]
    if not drawable_points:
        return {}
    tested = [
        term_points
        for term_points in drawable_points
        if any(point.measurement.p is not None for point in term_points)
    ]
    ranking_points = min(
        tested or drawable_points, key=lambda term_points: term_points[0].measurement.unit == "count"
    )
    points_by_group: dict[tuple[str, str | None], list[PlotPoint]] = {}
    for point in ranking_points:
        points_by_group.setdefault((point.system, point.group), []).append(point)
    return points_by_group


def _limit_points(points: Sequence[PlotPoint]) -> list[PlotPoint]:
    """The points of a panel: all if they are few, else those over all groups, else the first `MAX_ROWS`."""
    if len(points) <= MAX_ROWS:
        return list(points)
    overall = [point for point in points if point.group is None]
    return (overall if len(overall) > 1 else list(points))[:MAX_ROWS]


def _forest_rows(points: Sequence[PlotPoint], second_column: str) -> list[ForestRow]:
    """The rows of the defined points. If systems have a row for each group, the system is the heading of its rows."""
    defined = [point for point in points if point.measurement.value is not None]
    has_groups = len({point.group for point in defined}) > 1
    has_items = any(point.item is not None for point in defined)
    rows = []
    systems = list(dict.fromkeys(point.system for point in defined))
    for point in sorted(defined, key=lambda point: systems.index(point.system)):
        measurement, label = (
            point.measurement,
            (point.item or ALL_GROUPS)
            if has_items
            else (point.group or ALL_GROUPS)
            if has_groups
            else point.system,
        )
        heading = point.system if has_groups and not has_items else None
        tooltip = _tooltip_fields(point, second_column)
        rows.append(
            ForestRow(
                label,
                measurement.value or 0.0,
                measurement.low,
                measurement.high,
                measurement.ideal,
                point.series,
                is_too_few(measurement),
                tooltip,
                heading,
            )
        )
    return rows


def _tooltip_fields(point: PlotPoint, second_column: str) -> dict[str, str]:
    """The fields of a point's tooltip, by name."""
    measurement = point.measurement
    fields = {"system": point.system}
    fields |= {second_column: point.group or ALL_GROUPS} if second_column else {}
    fields |= {"item": point.item} if point.item is not None else {}
    fields |= {"term": point.term, "value": f"{format_value(measurement)} {measurement.unit or ''}".strip()}
    has_interval = measurement.low is not None and measurement.high is not None
    fields["95 % CI"] = (
        f"[{format_number(measurement.low, measurement.unit)}, {format_number(measurement.high, measurement.unit)}]"
        if has_interval
        else "not known"
    )
    fields |= (
        {"n": f"{measurement.n:,} {measurement.n_unit or ''}".strip()} if measurement.n is not None else {}
    )
    return fields


def _can_be_drawn(points: Sequence[PlotPoint]) -> bool:
    """Whether at least two points have a value and one has an interval: values without intervals would mislead."""
    defined = [point for point in points if point.measurement.value is not None]
    return len(defined) > 1 and any(point.measurement.low is not None for point in defined)


def _term_priority(points: Sequence[PlotPoint], headline: Sequence[str]) -> int:
    """The priority of a term: first those that stand for the metric, then those with an ideal or a direction."""
    measurement = points[0].measurement
    return (
        0 if measurement.term in headline else 1 if measurement.ideal is not None or measurement.better else 2
    )
