"""Building blocks of the charts' Vega-Lite specifications: colors, axes, marks and layers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from portrayal.report.charts.label_placement import LETTER_WIDTH

Spec = dict[str, Any]

_NEUTRAL_COLOR = "#767676"
# The palette of Okabe and Ito, darkened for a white background. It is distinguishable with color blindness.
_COLORS = ("#0072B2", "#D55E00", "#008A64", "#AA4499", "#2E8BC0", "#9A7400", "#882255")
# The color in the dark theme for each color of a chart.
DARK_COLORS = {
    **dict(zip(_COLORS, ("#5AB0F0", "#F28A3C", "#2DBE94", "#DE8AD0", "#9AD8FF", "#E6B93C", "#E8809C"), strict=True)),
    _NEUTRAL_COLOR: "#B4B0BE", "#444": "#D0CDD8", "#333": "#ECEAF0", "#9aa5b1": "#8B8896", "#ececec": "#3A3742",
    "#d6d6d6": "#3A3742",
}  # fmt: skip
_DIAMOND = "M0,-1.3L1.3,0L0,1.3L-1.3,0Z"
_SMALL_SQUARE = "M-.65,-.65H.65V.65H-.65Z"  # for the neutral name, which should be inconspicuous
_SHAPES = ("circle", _DIAMOND, "triangle-up", "square", "triangle-down", "cross")
# Characters that SVG, which is XML, cannot hold.
_UNDRAWABLE = re.compile("[^\t -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def drawable_text(text: str) -> str:
    """The text with a replacement character for each character that SVG cannot hold."""
    return _UNDRAWABLE.sub("\ufffd", text)


def color_scale(names: Sequence[str], neutral: str | None = None) -> tuple[Spec, Spec]:
    """A color scale and a shape scale. They repeat with different periods, so that pairs rarely repeat."""
    colors = [_COLORS[index % len(_COLORS)] for index in range(len(names))]
    shapes = [_SHAPES[index % len(_SHAPES)] for index in range(len(names))]
    for index, name in enumerate(names):
        if name == neutral:
            colors[index], shapes[index] = _NEUTRAL_COLOR, _SMALL_SQUARE
    domain = [drawable_text(name) for name in names]
    return {"domain": domain, "range": colors}, {"domain": domain, "range": shapes}


def color_encoding(scales: tuple[Spec, Spec], title: str) -> tuple[Spec, Spec]:
    """The encodings of the field `by` as color and shape, with one legend for both."""
    legend = {"title": title, "columns": 3, "symbolOpacity": 1, "labelLimit": 90, "offset": 8}
    color, shape = ({"field": "by", "type": "nominal", "scale": scale, "legend": legend} for scale in scales)
    return color, shape


def base_spec(width: int, height: int) -> Spec:
    """A specification with the size, fonts and colors that all charts share."""
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": width,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": "white",
        "padding": 6,
        "config": {
            # The page describes each chart in words.
            "aria": False,
            "font": "system-ui, sans-serif",
            "axis": {
                "labelFontSize": 11,
                "titleFontSize": 11,
                "titleFontWeight": 500,
                "gridColor": "#ececec",
            },
            "axisX": {"tickCount": 5, "labelFlush": False},
            "legend": {"orient": "bottom", "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": 500},
            "view": {"stroke": "#d6d6d6"},
        },
    }


def layer(values: Sequence[Mapping[str, Any]], mark: Spec, encoding: Spec) -> Spec:
    """A layer with its own data."""
    return {"data": {"values": list(values)}, "mark": mark, "encoding": encoding}


def symmetric_limit(values: Sequence[float]) -> float:
    """The limit of an axis from -limit to limit that holds all values with a margin."""
    return 1.08 * max(map(abs, values), default=0) or 1.0


def symmetric_axis(field: str, title: Sequence[str], limit: float) -> Spec:
    """The encoding of a number on an axis from -limit to limit."""
    scale = {"domain": [-limit, limit], "nice": False, "zero": False}
    return {
        "field": field,
        "type": "quantitative",
        "title": list(title),
        "scale": scale,
        "axis": {"tickCount": 5},
    }


def label_axis(labels: Sequence[str]) -> Spec:
    """Axis options with enough space for the labels in a browser, where text may be wider than in an exported file."""
    return {"labelLimit": 120, "minExtent": min(126, LETTER_WIDTH * max(map(len, labels)) + 8)}


def zero_line(axis: str) -> Spec:
    """A layer with a line at 0 of the axis "x" or "y"."""
    encoding = {axis: {"datum": 0, "type": "quantitative"}}
    return layer([{}], {"type": "rule", "color": "#444", "strokeWidth": 1}, encoding)


def point_mark(size: int) -> Spec:
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


def tooltip(*fields: tuple[str, str]) -> list[Spec]:
    """The tooltip encoding: for each field its number format, or its title where that differs from its name."""
    return [
        {"field": field, "type": "quantitative", "format": format_or_title, "title": field}
        if format_or_title.startswith(".")
        else {"field": field, "type": "nominal", "title": format_or_title or field}
        for field, format_or_title in fields
    ]
