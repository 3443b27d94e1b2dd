"""The forest plot: a line for each number, with a point for its value and a bar for its interval.

Names are data in the specification, so that Vega does not evaluate them as expressions. Names that are cut for lack of
space are shown in full by their tooltips.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from portrayal.report.charts.label_placement import LETTER_WIDTH
from portrayal.report.charts.vega import Spec, base_spec, drawable_text, layer, point_mark

ROW_HEIGHT = 17  # pixels of a line
PANEL_WIDTH = 210  # pixels of a panel's x axis in a file with several panels
_LABEL_WIDTHS = (40, 118)  # pixels of the labels, at least and at most
_AXIS_HEIGHT, _LEGEND_HEIGHT = 40, 56  # pixels below the plot
_FILE_LABEL_LIMIT = 320  # pixels of a label in a file
Limits = tuple[float, float]


@dataclass(frozen=True)
class ForestRow:
    """One number of a forest plot.

    `label` stands left of its line, and `heading` above the first of the rows that share it. `series` decides its color
    and shape. A `hollow` point is a number on too few images.
    """

    label: str
    value: float
    low: float | None
    high: float | None
    ideal: float | None
    series: str
    hollow: bool
    tooltip: Mapping[str, str]
    heading: str | None = None


def axis_limits(rows: Sequence[ForestRow]) -> Limits:
    """The limits of an axis that holds all values and ideals, and intervals but for the ends of very long ones."""
    values = [row.value for row in rows] + [row.ideal for row in rows if row.ideal is not None]
    intervals = [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
    low, high = min(values), max(values)
    median_width = median([b - a for a, b in intervals]) if intervals else 0.0
    # A single long interval must not squeeze the rest.
    max_extent = 1.5 * max(high - low, median_width)
    low, high = (
        min([low, *(max(a, low - max_extent) for a, _ in intervals)]),
        max([high, *(min(b, high + max_extent) for _, b in intervals)]),
    )
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return low - margin, high + margin


def label_width(rows: Iterable[ForestRow]) -> int:
    """Pixels of the labels left of an axis. All panels of a chart use the same, so that their axes are aligned."""
    longest = max(len(name) for row in rows for name in (row.label, row.heading or ""))
    return max(_LABEL_WIDTHS[0], min(_LABEL_WIDTHS[1], round(LETTER_WIDTH * longest) + 12))


def forest_plot(
    rows: Sequence[ForestRow],
    title: Sequence[str],
    limits: Limits,
    colors: tuple[Spec, Spec],
    labels_width: int,
    width: int,
) -> Spec:
    """The rows in their order, each heading on a line of its own; `title` is that of the x axis."""
    tooltip_names = list(dict.fromkeys(name for row in rows for name in row.tooltip))
    headings: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    line, heading = 0, None
    for row in rows:
        if row.heading is not None and row.heading != heading:
            headings.append({"row": line, "text": drawable_text(row.heading)})
            line, heading = line + 1, row.heading
        tips = {f"tip{n}": drawable_text(row.tooltip.get(name, "")) for n, name in enumerate(tooltip_names)}
        values.append(_row_values(row, line, limits) | tips)
        line += 1
    labels = [{"row": value["row"], "text": value["label"]} for value in values]
    y: Spec = {"field": "row", "type": "quantitative", "axis": None}
    y["scale"] = {"domain": [-0.6, line - 0.4], "reverse": True, "nice": False, "zero": False}
    x: Spec = {"field": "at", "type": "quantitative", "title": [drawable_text(part) for part in title]}
    x["axis"] = {"tickCount": 4, "grid": True}
    x["scale"] = {"domain": list(limits), "nice": False, "zero": False}
    color, shape = ({"field": "by", "type": "nominal", "scale": scale, "legend": None} for scale in colors)
    tooltip = {
        "tooltip": [{"field": f"tip{n}", "type": "nominal", "title": name} for n, name in enumerate(tooltip_names)]
    }  # fmt: skip
    with_interval = [value for value in values if value["low"] is not None]
    interval = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": color}
    point = {"x": x, "y": y, "color": color, "shape": shape, **tooltip}
    hollow = {"type": "point", "filled": False, "size": 46, "strokeWidth": 1.6, "opacity": 1}
    spacer = {"x": {"value": -labels_width}, "x2": {"value": 0}, "y": {"value": 0}}
    layers: list[Spec] = [
        # It reserves the space of the labels, whatever their length.
        layer([{}], {"type": "rule", "opacity": 0}, spacer),
        _ideal_layer(values, x, y, line),
        layer(headings, _text_mark("left", 600, width - 40), _label_encoding(4 - labels_width, y)),
        layer(labels, _text_mark("right", 400, labels_width - 10), _label_encoding(-8, y)),
        layer(with_interval, {"type": "rule", "strokeWidth": 2, "opacity": 0.75}, interval),
        _arrow_layer(values, "low", -90, {"y": y, "color": color, "x": x}),
        _arrow_layer(values, "high", 90, {"y": y, "color": color, "x": x}),
        layer([value for value in values if not value["hollow"]], point_mark(54), point),
        layer([value for value in values if value["hollow"]], hollow, point),
        # An invisible, wider bar, which is easier to point at.
        layer(with_interval, {"type": "rule", "strokeWidth": 13, "opacity": 0}, interval | tooltip),
    ]
    spec = base_spec(width, ROW_HEIGHT * line)
    spec["padding"] = {"left": 2, "right": 10, "top": 4, "bottom": 4}
    spec["config"]["axis"]["gridOpacity"] = 0.7
    return {**spec, "layer": [part for part in layers if part["data"]["values"]]}


def chart_height(spec: Spec) -> int:
    """The approximate height in pixels of a chart with its axis and legend."""
    legends = [part["encoding"].get("color", {}).get("legend") for part in spec["layer"]]
    return int(spec["height"]) + _AXIS_HEIGHT + (_LEGEND_HEIGHT if any(legends) else 0)


def concatenate(specs: Sequence[tuple[str, Spec]]) -> Spec:
    """Several forest plots in one chart, each with its title. Labels are longer, since a file has no tooltips."""
    title = {"anchor": "start", "fontSize": 12, "frame": "bounds"}
    panels = [
        {
            "title": {**title, "text": drawable_text(name)},
            "width": PANEL_WIDTH,
            "height": spec["height"],
            "layer": [_with_label_limit(part) for part in spec["layer"]],
        }
        for name, spec in specs
    ]
    shared = {key: value for key, value in specs[0][1].items() if key in ("$schema", "background", "config")}
    return {**shared, "padding": 10, "concat": panels, "columns": 3, "spacing": 20}


def _with_label_limit(part: Spec) -> Spec:
    if part["mark"]["type"] != "text":
        return part
    return {**part, "mark": {**part["mark"], "limit": _FILE_LABEL_LIMIT}}


def _row_values(row: ForestRow, line: int, limits: Limits) -> dict[str, Any]:
    has_interval = row.low is not None and row.high is not None
    return {
        "row": line,
        "label": drawable_text(row.label),
        "by": drawable_text(row.series),
        "hollow": row.hollow,
        "ideal": row.ideal,
        "at": row.value,
        "low": _clip(row.low, limits) if has_interval else None,
        "high": _clip(row.high, limits) if has_interval else None,
        "past low": has_interval and (row.low or 0.0) < limits[0],
        "past high": has_interval and (row.high or 0.0) > limits[1],
    }


def _clip(value: float | None, limits: Limits) -> float:
    return min(max(value or 0.0, limits[0]), limits[1])


def _ideal_layer(values: Sequence[Mapping[str, Any]], x: Spec, y: Spec, n_lines: int) -> Spec:
    """The ideal values: one line through the whole plot if all are equal, else a piece at each number."""
    with_ideal = [row for row in values if row["ideal"] is not None]
    mark = {"type": "rule", "color": "#444", "strokeWidth": 1, "strokeDash": [4, 3]}
    if len(with_ideal) == len(values) and len({row["ideal"] for row in with_ideal}) == 1:
        pieces = [{"ideal": with_ideal[0]["ideal"], "from": -0.6, "to": n_lines - 0.4}]
    else:
        pieces = [
            {"ideal": row["ideal"], "from": row["row"] - 0.45, "to": row["row"] + 0.45} for row in with_ideal
        ]
    encoding = {"x": {**x, "field": "ideal"}, "y": {**y, "field": "from"}, "y2": {"field": "to"}}
    return layer(pieces, mark, encoding)


def _label_encoding(x: int, y: Spec) -> Spec:
    """A label with itself as tooltip, where it is not cut."""
    text = {"field": "text", "type": "nominal"}
    return {"x": {"value": x}, "y": y, "text": text, "tooltip": text}


def _arrow_layer(values: Sequence[Mapping[str, Any]], end: str, angle: int, encoding: Spec) -> Spec:
    """An arrow at each interval that goes on beyond the axis."""
    mark = {"type": "point", "shape": "triangle-up", "angle": angle, "filled": True, "size": 40, "opacity": 1}
    beyond = [row for row in values if row[f"past {end}"]]
    return layer(beyond, mark, {**encoding, "x": {**encoding["x"], "field": end}})


def _text_mark(align: str, weight: int, limit: int) -> Spec:
    return {
        "type": "text", "align": align, "baseline": "middle", "fontSize": 11, "fontWeight": weight, "limit": limit,
    }  # fmt: skip
