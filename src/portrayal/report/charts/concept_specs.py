"""Vega-Lite specifications of the charts of concepts. They are as wide as a phone, side by side on wider screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from portrayal.report.charts.label_placement import LETTER_WIDTH, Box, LabelStyle, Offset, place_labels
from portrayal.report.charts.scatter import scatter
from portrayal.report.charts.vega import (
    Spec,
    base_spec,
    color_encoding,
    drawable_text,
    label_axis,
    layer,
    point_mark,
    symmetric_axis,
    tooltip,
    zero_line,
)

_WIDTH = 340
_ROW_HEIGHT = 16  # pixels of a concept's row
_LANE_HEIGHT = 17  # pixels of a lane of a strip
_SCATTER_SIZE = 256  # width and height of a scatter in pixels
_MAX_LABELS = 9  # labelled points of a scatter
_MAX_LABEL_LENGTH = 22  # characters; longer labels are truncated
_LABEL_STYLE = LabelStyle(
    letter_width=LETTER_WIDTH,
    ascent=6,
    descent=6,
    # Labels to the right, left, above and below of the point.
    offsets=(Offset("left", 7, 0), Offset("right", -7, 0), Offset("center", 0, -12), Offset("center", 0, 12)),
)


def axis_title(measure: str, groups: tuple[str, str]) -> list[str]:
    """The two lines of a title: what is measured, and the group at each end of the axis."""
    return [measure, f"← {drawable_text(groups[1])}  ·  {drawable_text(groups[0])} →"]


def dot_plot(
    rows: Sequence[Mapping[str, Any]],
    title: Sequence[str],
    limit: float,
    colors: tuple[Spec, Spec],
    legend: str,
) -> Spec:
    """A dot plot with a line for each concept in the order of `rows`: value, interval, and the color of `by`."""
    rows = [
        {**row, "concept": drawable_text(row["concept"]), "by": drawable_text(row["by"]), "interval": _ci_text(row)}
        for row in rows
    ]  # fmt: skip
    concepts = list(dict.fromkeys(row["concept"] for row in rows))
    y: Spec = {"field": "concept", "type": "nominal", "sort": concepts, "title": None}
    y["axis"] = {"grid": True, "ticks": False, "labelOverlap": False, **label_axis(concepts)}
    rows_with_interval = [
        {**row, "low": max(row["low"], -limit), "high": min(row["high"], limit)}
        for row in rows
        if row.get("low") is not None and row.get("high") is not None
    ]
    x = symmetric_axis("value", title, limit)
    color, shape = color_encoding(colors, legend)
    interval_mark = {"type": "rule", "strokeWidth": 1.5, "opacity": 0.6}
    interval_encoding = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": color}
    point_encoding = {
        "x": x,
        "y": y,
        "color": color,
        "shape": shape,
        "tooltip": tooltip(("concept", ""), ("value", ".2f"), ("interval", ""), ("by", legend)),
    }
    return {
        **base_spec(_WIDTH, _ROW_HEIGHT * len(concepts)),
        "data": {"values": rows},
        "layer": [
            zero_line("x"),
            layer(rows_with_interval, interval_mark, interval_encoding),
            {"mark": point_mark(48), "encoding": point_encoding},
        ],
    }


def strip_plot(
    rows: Sequence[Mapping[str, Any]],
    title: Sequence[str],
    limit: float,
    colors: tuple[Spec, Spec],
    legend: str,
) -> Spec:
    """A strip plot with a strip for each model, and in it a lane for each color, so that no color hides another."""
    rows = [
        {**row, **{name: drawable_text(row[name]) for name in ("system", "by", "concept")}} for row in rows
    ]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    lanes = colors[0]["domain"]
    y = {"field": "system", "type": "nominal", "sort": systems, "title": None, "scale": {"padding": 0.25}}
    y["axis"] = {"ticks": False, "domain": False, "labelFontWeight": 600, **label_axis(systems)}
    color, shape = color_encoding(colors, legend)
    encoding = {
        "x": symmetric_axis("value", title, limit),
        "y": y,
        "yOffset": {"field": "by", "sort": lanes, "scale": {"domain": lanes}},
        "color": color,
        "shape": shape,
        "tooltip": tooltip(("system", ""), ("concept", ""), ("value", ".2f"), ("by", legend)),
    }
    return {
        **base_spec(_WIDTH, len(systems) * (_LANE_HEIGHT * len(lanes) + 14)),
        "data": {"values": rows},
        "layer": [zero_line("x"), {"mark": point_mark(56) | {"opacity": 0.75}, "encoding": encoding}],
    }


def bar_chart(rows: Sequence[Mapping[str, Any]], title: str, colors: tuple[Spec, Spec]) -> Spec:
    """A bar chart with a bar for each model (`system`, `value`) and its `label` at the end."""
    rows = [{**row, "system": drawable_text(row["system"])} for row in rows]
    systems = [row["system"] for row in rows]
    y: Spec = {"field": "system", "type": "nominal", "sort": systems, "title": None}
    y["axis"] = {"ticks": False, **label_axis(systems)}
    x = {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [0, 1.22 * max(row["value"] for row in rows) or 1.0], "nice": False},
        "axis": {"tickCount": 5},
    }
    color = {"field": "system", "type": "nominal", "scale": colors[0], "legend": None}
    bar_encoding = {"x": x, "y": y, "color": color, "tooltip": tooltip(("system", ""), ("label", "value"))}
    label_encoding = {"x": x, "y": y, "text": {"field": "label", "type": "nominal"}}
    return {
        **base_spec(_WIDTH, 30 * len(rows)),
        "data": {"values": rows},
        "layer": [
            {"mark": {"type": "bar", "size": 16}, "encoding": bar_encoding},
            {"mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 12}, "encoding": label_encoding},
        ],
    }


def concept_scatter(
    rows: Sequence[Mapping[str, Any]],
    titles: tuple[Sequence[str], Sequence[str]],
    colors: tuple[Spec, Spec],
    corners: Mapping[tuple[int, int], str],
    limits: tuple[float, float],
    legend: str,
    diagonal: bool = False,
) -> Spec:
    """A scatter with a point for each concept (`concept`, `x`, `y`, `by`) and a text in each corner.

    Points have labels where there is space.
    """
    x, y = symmetric_axis("x", titles[0], limits[0]), symmetric_axis("y", titles[1], limits[1])
    color, shape = color_encoding(colors, legend)
    background = [zero_line("x"), zero_line("y")]
    if diagonal:
        diagonal_end = min(limits)
        background.append(
            layer(
                [{"x": -diagonal_end, "y": -diagonal_end, "x2": diagonal_end, "y2": diagonal_end}],
                {"type": "rule", "strokeDash": [4, 3], "color": "#9aa5b1"},
                {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
            )
        )
    encoding = {
        "x": x,
        "y": y,
        "color": color,
        "shape": shape,
        "tooltip": tooltip(("concept", ""), ("x", ".2f"), ("y", ".2f"), ("by", legend)),
    }
    return scatter(
        [{**row, "concept": drawable_text(row["concept"]), "by": drawable_text(row["by"])} for row in rows],
        (_SCATTER_SIZE, _SCATTER_SIZE),
        point_mark(44) | {"opacity": 0.85},
        encoding,
        background=background,
        labels=[
            *_concept_labels(rows, corners, limits),
            *(_corner_text(text, *corner) for corner, text in corners.items()),
        ],
        fit_width=False,
    )


def _concept_labels(
    rows: Sequence[Mapping[str, Any]], corners: Mapping[tuple[int, int], str], limits: tuple[float, float]
) -> list[Spec]:
    """Layers with the labels of the points that are farthest from the origin, unless a label would cover something."""
    farthest_rows = sorted(rows, key=lambda row: -abs(row["x"]) / limits[0] - abs(row["y"]) / limits[1])
    point_by_label = {
        drawable_text(row["concept"]): (_to_pixels(row["x"], limits[0]), _to_pixels(-row["y"], limits[1]))
        for row in farthest_rows
    }  # fmt: skip
    labels, pixel_points = [_truncate(label) for label in point_by_label], list(point_by_label.values())
    offsets = place_labels(
        labels,
        pixel_points,
        (_SCATTER_SIZE, _SCATTER_SIZE),
        _LABEL_STYLE,
        obstacles=_corner_boxes(corners),
        max_labels=_MAX_LABELS,
    )
    return [
        _text_layer(text, x + offset.dx, y + offset.dy, offset.align)
        for text, (x, y), offset in zip(labels, pixel_points, offsets, strict=True)
        if offset is not None
    ]


def _truncate(name: str) -> str:
    return name if len(name) <= _MAX_LABEL_LENGTH else name[: _MAX_LABEL_LENGTH - 1] + "…"


def _to_pixels(value: float, limit: float) -> float:
    """The position of a value on an axis from -limit to limit."""
    return _SCATTER_SIZE * (value + limit) / (2 * limit)


def _corner_boxes(corners: Mapping[tuple[int, int], str]) -> list[Box]:
    """The areas that the texts in corners cover."""
    boxes = []
    for (right, up), text in corners.items():
        text_width = 7.5 * len(text) + 8
        left, top = _SCATTER_SIZE - text_width if right > 0 else 0, 0 if up > 0 else _SCATTER_SIZE - 20
        boxes.append(Box(left, top, left + text_width, top + 20))
    return boxes


def _corner_text(text: str, right: int, up: int) -> Spec:
    x, y = (_SCATTER_SIZE - 5 if right > 0 else 5), (11 if up > 0 else _SCATTER_SIZE - 10)
    spec = _text_layer(text, x, y, "right" if right > 0 else "left")
    spec["mark"] |= {"fontSize": 13, "fontWeight": 700, "color": "#333"}
    return spec


def _text_layer(text: str, x: float, y: float, align: str) -> Spec:
    """A layer with a text at a position in pixels.

    The text is data, so that Vega does not evaluate it as an expression.
    """
    mark = {"type": "text", "align": align, "baseline": "middle", "fontSize": 11, "color": "#333"}
    encoding = {"x": {"value": x}, "y": {"value": y}, "text": {"field": "text", "type": "nominal"}}
    return layer([{"text": text}], mark, encoding)


def _ci_text(row: Mapping[str, Any]) -> str:
    if row.get("low") is None or row.get("high") is None:
        return "not known"
    return f"[{row['low']:.2f}, {row['high']:.2f}]"
