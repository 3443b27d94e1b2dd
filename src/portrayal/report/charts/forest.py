"""Forest plots: a line for each number, with a point for its value and a bar for its interval.

Names are data in the specification, so that Vega does not evaluate them as expressions. Tooltips show names in full if
the plot truncates them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from portrayal.report.charts.label_placement import LETTER_WIDTH
from portrayal.report.charts.vega import Spec, base_spec, drawable_text, layer, point_mark

ROW_HEIGHT = 17  # pixels of a line
PANEL_WIDTH = 210  # pixels of a panel's x axis in an exported file with several panels
_LABEL_WIDTHS = (40, 118)  # minimum and maximum width of the labels in pixels
_AXIS_HEIGHT, _TITLE_LINE_HEIGHT, _LEGEND_HEIGHT = 41, 13, 56  # pixels below the plot
_FILE_LABEL_LIMIT = 320  # maximum pixels of a label in an exported file
Limits = tuple[float, float]


@dataclass(frozen=True)
class ForestRow:
    """One number of a forest plot.

    `label` is left of its line, and `heading` above the first of the rows that share it. `series` determines color and
    shape. A `hollow` point is a number from too few images.
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
    """The limits of an axis with all values, ideals and intervals. Very long intervals are clipped."""
    values = [row.value for row in rows] + [row.ideal for row in rows if row.ideal is not None]
    intervals = [(row.low, row.high) for row in rows if row.low is not None and row.high is not None]
    low, high = min(values), max(values)
    median_width = (
        median([interval_high - interval_low for interval_low, interval_high in intervals])
        if intervals
        else 0.0
    )
    # The clipping keeps a single long interval from compressing the rest.
    max_extent = 1.5 * max(high - low, median_width)
    low, high = (
        min([low, *(max(interval_low, low - max_extent) for interval_low, _ in intervals)]),
        max([high, *(min(interval_high, high + max_extent) for _, interval_high in intervals)]),
    )
    margin = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return low - margin, high + margin


def label_width(rows: Iterable[ForestRow]) -> int:
    """The width of the labels left of the axis in pixels.

    All panels of a chart have the same label width, so that their axes are aligned.
    """
    max_length = max(len(label) for row in rows for label in (row.label, row.heading or ""))
    return max(_LABEL_WIDTHS[0], min(_LABEL_WIDTHS[1], round(LETTER_WIDTH * max_length) + 12))


def forest_plot(
    rows: Sequence[ForestRow],
    title: Sequence[str],
    limits: Limits,
    colors: tuple[Spec, Spec],
    labels_width: int,
    width: int,
) -> Spec:
    """The specification of a forest plot.

    Rows keep their order. Each heading takes one line. `title` is the title of the x axis, as lines.
    """
    tooltip_names = list(dict.fromkeys(name for row in rows for name in row.tooltip))
    headings: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    n_lines, last_heading = 0, None
    for row in rows:
        if row.heading is not None and row.heading != last_heading:
            headings.append({"row": n_lines, "text": drawable_text(row.heading)})
            n_lines, last_heading = n_lines + 1, row.heading
        tooltip_values = {
            f"tip{index}": drawable_text(row.tooltip.get(name, ""))
            for index, name in enumerate(tooltip_names)
        }
        values.append(_row_values(row, n_lines, limits) | tooltip_values)
        n_lines += 1
    labels = [{"row": value["row"], "text": value["label"]} for value in values]
    y: Spec = {"field": "row", "type": "quantitative", "axis": None}
    y["scale"] = {"domain": [-0.6, n_lines - 0.4], "reverse": True, "nice": False, "zero": False}
    x: Spec = {
        "field": "at",
        "type": "quantitative",
        "title": [drawable_text(line) for line in title],
    }
    x["axis"] = {"tickCount": 4, "grid": True}
    x["scale"] = {"domain": list(limits), "nice": False, "zero": False}
    color, shape = ({"field": "by", "type": "nominal", "scale": scale, "legend": None} for scale in colors)
    tooltip = {
        "tooltip": [
            {"field": f"tip{index}", "type": "nominal", "title": name} for index, name in enumerate(tooltip_names)
        ]
    }  # fmt: skip
    rows_with_interval = [value for value in values if value["low"] is not None]
    interval_encoding = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": color}
    point_encoding = {"x": x, "y": y, "color": color, "shape": shape, **tooltip}
    hollow_mark = {"type": "point", "filled": False, "size": 46, "strokeWidth": 1.6, "opacity": 1}
    spacer_encoding = {"x": {"value": -labels_width}, "x2": {"value": 0}, "y": {"value": 0}}
    layers: list[Spec] = [
        # An invisible layer that reserves the space of the labels, whatever their length.
        layer([{}], {"type": "rule", "opacity": 0}, spacer_encoding),
        _ideal_layer(values, x, y, n_lines),
        layer(headings, _text_mark("left", 600, width - 40), _label_encoding(4 - labels_width, y)),
        layer(labels, _text_mark("right", 400, labels_width - 10), _label_encoding(-8, y)),
        layer(rows_with_interval, {"type": "rule", "strokeWidth": 2, "opacity": 0.75}, interval_encoding),
        _arrow_layer(values, "low", -90, {"y": y, "color": color, "x": x}),
        _arrow_layer(values, "high", 90, {"y": y, "color": color, "x": x}),
        layer([value for value in values if not value["hollow"]], point_mark(54), point_encoding),
        layer([value for value in values if value["hollow"]], hollow_mark, point_encoding),
        # An invisible wider bar, on which it is easier to hover.
        layer(
            rows_with_interval, {"type": "rule", "strokeWidth": 13, "opacity": 0}, interval_encoding | tooltip
        ),
    ]
    spec = base_spec(width, ROW_HEIGHT * n_lines)
    spec["padding"] = {"left": 2, "right": 10, "top": 4, "bottom": 4}
    spec["config"]["axis"]["gridOpacity"] = 0.7
    return {**spec, "layer": [layer_spec for layer_spec in layers if layer_spec["data"]["values"]]}


def chart_height(spec: Spec) -> int:
    """The height in pixels of a chart with its axis and legend, up to a few pixels.

    The page reserves it, so that what is below hardly moves when the chart is drawn.
    """
    encodings = [layer_spec["encoding"] for layer_spec in spec["layer"]]
    legend_height = (
        _LEGEND_HEIGHT if any(encoding.get("color", {}).get("legend") for encoding in encodings) else 0
    )
    titles = [encoding.get("x", {}).get("title") for encoding in encodings]
    n_title_lines = max((len(title) for title in titles if isinstance(title, list)), default=1)
    return int(spec["height"]) + _AXIS_HEIGHT + _TITLE_LINE_HEIGHT * (n_title_lines - 1) + legend_height


def concatenate(specs: Sequence[tuple[str, Spec]]) -> Spec:
    """Several forest plots in one chart, each with its title.

    The limit on label width is higher than on the page, since an exported file has no tooltips.
    """
    title = {"anchor": "start", "fontSize": 12, "frame": "bounds"}
    panels = [
        {
            "title": {**title, "text": drawable_text(panel_title)},
            "width": PANEL_WIDTH,
            "height": spec["height"],
            "layer": [_with_label_limit(layer_spec) for layer_spec in spec["layer"]],
        }
        for panel_title, spec in specs
    ]
    shared = {key: value for key, value in specs[0][1].items() if key in ("$schema", "background", "config")}
    return {**shared, "padding": 10, "concat": panels, "columns": 3, "spacing": 20}


def _with_label_limit(layer_spec: Spec) -> Spec:
    """The layer with the label width limit of exported files, if it is a layer of labels."""
    if layer_spec["mark"]["type"] != "text":
        return layer_spec
    return {**layer_spec, "mark": {**layer_spec["mark"], "limit": _FILE_LABEL_LIMIT}}


def _row_values(row: ForestRow, line_index: int, limits: Limits) -> dict[str, Any]:
    """The data of a row on the given line. Its interval is clipped to the limits."""
    has_interval = row.low is not None and row.high is not None
    return {
        "row": line_index,
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
    """The value, or the limit that it exceeds."""
    return min(max(value or 0.0, limits[0]), limits[1])


def _ideal_layer(values: Sequence[Mapping[str, Any]], x: Spec, y: Spec, n_lines: int) -> Spec:
    """A layer with the ideal values: one line through the plot if all are equal, else a segment at each number."""
    rows_with_ideal = [row for row in values if row["ideal"] is not None]
    mark = {"type": "rule", "color": "#444", "strokeWidth": 1, "strokeDash": [4, 3]}
    if len(rows_with_ideal) == len(values) and len({row["ideal"] for row in rows_with_ideal}) == 1:
        segments = [{"ideal": rows_with_ideal[0]["ideal"], "from": -0.6, "to": n_lines - 0.4}]
    else:
        segments = [
            {"ideal": row["ideal"], "from": row["row"] - 0.45, "to": row["row"] + 0.45}
            for row in rows_with_ideal
        ]
    encoding = {"x": {**x, "field": "ideal"}, "y": {**y, "field": "from"}, "y2": {"field": "to"}}
    return layer(segments, mark, encoding)


def _label_encoding(x: int, y: Spec) -> Spec:
    """The encoding of a label, whose tooltip is the whole text."""
    text = {"field": "text", "type": "nominal"}
    return {"x": {"value": x}, "y": y, "text": text, "tooltip": text}


def _arrow_layer(values: Sequence[Mapping[str, Any]], bound: str, angle: int, encoding: Spec) -> Spec:
    """A layer with an arrow at each interval that is clipped at the end `bound`."""
    mark = {"type": "point", "shape": "triangle-up", "angle": angle, "filled": True, "size": 40, "opacity": 1}
    clipped_rows = [row for row in values if row[f"past {bound}"]]
    return layer(clipped_rows, mark, {**encoding, "x": {**encoding["x"], "field": bound}})


def _text_mark(align: str, weight: int, limit: int) -> Spec:
    return {
        "type": "text", "align": align, "baseline": "middle", "fontSize": 11, "fontWeight": weight, "limit": limit,
    }  # fmt: skip
