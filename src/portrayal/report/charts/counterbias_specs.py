"""The drawings of concepts in Vega-Lite's own words. Each is as wide as a phone; the page sets them side by side."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from portrayal.report.charts.label_placement import LETTER

Spec = dict[str, Any]

WIDTH = 340
_ROW = 16  # pixels between concepts
_LANE = 17  # between the lanes of a strip
_NEUTRAL = "#767676"
# After Okabe and Ito, told apart with every kind of colour vision, and dark enough for light paper.
_COLOURS = ("#0072B2", "#D55E00", "#008A64", "#AA4499", "#2E8BC0", "#9A7400", "#882255")
# What each colour of a drawing is on dark paper.
DARK = {
    **dict(zip(_COLOURS, ("#5AB0F0", "#F28A3C", "#2DBE94", "#DE8AD0", "#9AD8FF", "#E6B93C", "#E8809C"), strict=True)),
    _NEUTRAL: "#B4B0BE", "#444": "#D0CDD8", "#333": "#ECEAF0", "#9aa5b1": "#8B8896", "#ececec": "#3A3742",
    "#d6d6d6": "#3A3742",
}  # fmt: skip
_DIAMOND, _SMALL = "M0,-1.3L1.3,0L0,1.3L-1.3,0Z", "M-.65,-.65H.65V.65H-.65Z"  # what is not known stands back
_SHAPES = ("circle", _DIAMOND, "triangle-up", "square", "triangle-down", "cross")
_UNREADABLE = re.compile("[^\t -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # no drawing may hold these


def plain(text: str) -> str:
    """A name as a drawing can hold it."""
    return _UNREADABLE.sub("\ufffd", text)


def scale(names: Sequence[str], neutral: str | None = None) -> tuple[Spec, Spec]:
    """A colour and a shape for each name, however many there are: no two names have both in common for long."""
    colours = [_COLOURS[n % len(_COLOURS)] for n in range(len(names))]
    shapes = [_SHAPES[n % len(_SHAPES)] for n in range(len(names))]
    for n, name in enumerate(names):
        if name == neutral:
            colours[n], shapes[n] = _NEUTRAL, _SMALL
    domain = [plain(name) for name in names]
    return {"domain": domain, "range": colours}, {"domain": domain, "range": shapes}


def widest(values: Sequence[float]) -> float:
    """How far an axis reaches on both sides of 0."""
    return 1.08 * max(map(abs, values), default=0) or 1.0


def axis_title(what: str, toward: tuple[str, str]) -> list[str]:
    """Two lines: what it is, and toward whom each end leans."""
    return [what, f"← {plain(toward[1])}  ·  {plain(toward[0])} →"]


def dots(
    rows: Sequence[Mapping[str, Any]],
    title: Sequence[str],
    reach: float,
    colours: tuple[Spec, Spec],
    legend: str,
) -> Spec:
    """A line a concept, in the order of `rows`: its value, its interval, and a colour for `by`."""
    rows = [
        {**row, "concept": plain(row["concept"]), "by": plain(row["by"]), "interval": _interval(row)}
        for row in rows
    ]
    order = list(dict.fromkeys(row["concept"] for row in rows))
    y: Spec = {"field": "concept", "type": "nominal", "sort": order, "title": None}
    y["axis"] = {"grid": True, "ticks": False, "labelOverlap": False, **_room(order)}
    lines = [
        {**row, "low": max(row["low"], -reach), "high": min(row["high"], reach)}
        for row in rows
        if row.get("low") is not None and row.get("high") is not None
    ]
    x = quantity("value", title, reach)
    colour, shape = coloured(colours, legend)
    return {
        **base(WIDTH, _ROW * len(order)),
        "data": {"values": rows},
        "layer": [
            zero("x"),
            {
                "data": {"values": lines},
                "mark": {"type": "rule", "strokeWidth": 1.5, "opacity": 0.6},
                "encoding": {
                    "x": {**x, "field": "low"},
                    "x2": {"field": "high"},
                    "y": y,
                    "color": colour,
                },
            },
            {
                "mark": point(48),
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "shape": shape,
                    "tooltip": tooltip(("concept", ""), ("value", ".2f"), ("interval", ""), ("by", legend)),
                },
            },
        ],
    }


def strips(
    rows: Sequence[Mapping[str, Any]],
    title: Sequence[str],
    reach: float,
    colours: tuple[Spec, Spec],
    legend: str,
) -> Spec:
    """A strip a model; its dots in a lane for each colour, so that none hides another one's."""
    rows = [
        {**row, "system": plain(row["system"]), "by": plain(row["by"]), "concept": plain(row["concept"])}
        for row in rows
    ]
    systems = list(dict.fromkeys(row["system"] for row in rows))
    lanes = colours[0]["domain"]
    y = {"field": "system", "type": "nominal", "sort": systems, "title": None, "scale": {"padding": 0.25}}
    y["axis"] = {"ticks": False, "domain": False, "labelFontWeight": 600, **_room(systems)}
    colour, shape = coloured(colours, legend)
    mark = point(56) | {"opacity": 0.75}
    offset = {"field": "by", "sort": lanes, "scale": {"domain": lanes}}
    return {
        **base(WIDTH, len(systems) * (_LANE * len(lanes) + 14)),
        "data": {"values": rows},
        "layer": [
            zero("x"),
            {
                "mark": mark,
                "encoding": {
                    "x": quantity("value", title, reach),
                    "y": y,
                    "yOffset": offset,
                    "color": colour,
                    "shape": shape,
                    "tooltip": tooltip(("system", ""), ("concept", ""), ("value", ".2f"), ("by", legend)),
                },
            },
        ],
    }


def bars(rows: Sequence[Mapping[str, Any]], title: str, colours: tuple[Spec, Spec]) -> Spec:
    """A bar a model, with its number at the end."""
    rows = [{**row, "system": plain(row["system"])} for row in rows]
    y: Spec = {"field": "system", "type": "nominal", "sort": [row["system"] for row in rows], "title": None}
    y["axis"] = {"ticks": False, **_room([row["system"] for row in rows])}
    most = 1.22 * max(row["value"] for row in rows) or 1.0
    x = {
        "field": "value",
        "type": "quantitative",
        "title": title,
        "scale": {"domain": [0, most], "nice": False},
    }
    x["axis"] = {"tickCount": 5}
    colour = {"field": "system", "type": "nominal", "scale": colours[0], "legend": None}
    text = {"type": "text", "align": "left", "dx": 4, "fontSize": 12}
    return {
        **base(WIDTH, 30 * len(rows)),
        "data": {"values": rows},
        "layer": [
            {
                "mark": {"type": "bar", "size": 16},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "tooltip": tooltip(("system", ""), ("told", "value")),
                },
            },
            {"mark": text, "encoding": {"x": x, "y": y, "text": {"field": "told", "type": "nominal"}}},
        ],
    }


def base(width: int, height: int) -> Spec:
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "width": width,
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "background": "white",
        "padding": 6,
        "config": {
            "aria": False,  # the page says in words what a drawing shows
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


def quantity(field: str, title: Sequence[str], reach: float) -> Spec:
    scale = {"domain": [-reach, reach], "nice": False, "zero": False}
    return {
        "field": field,
        "type": "quantitative",
        "title": list(title),
        "scale": scale,
        "axis": {"tickCount": 5},
    }


def _room(labels: Sequence[str]) -> Spec:
    """Room for labels as a browser writes them, which may be wider than where the drawing is made."""
    return {"labelLimit": 120, "minExtent": min(126, LETTER * max(map(len, labels)) + 8)}


def coloured(colours: tuple[Spec, Spec], title: str) -> tuple[Spec, Spec]:
    legend = {"title": title, "columns": 3, "symbolOpacity": 1, "labelLimit": 90, "offset": 8}
    made = [{"field": "by", "type": "nominal", "scale": one, "legend": legend} for one in colours]
    return made[0], made[1]


def tooltip(*fields: tuple[str, str]) -> list[Spec]:
    """What a mark says when it is pointed at: fields, each with the format of a number or a name other than its own."""
    return [
        {"field": field, "type": "quantitative", "format": more, "title": field}
        if more.startswith(".")
        else {"field": field, "type": "nominal", "title": more or field}
        for field, more in fields
    ]


def _interval(row: Mapping[str, Any]) -> str:
    if row.get("low") is None or row.get("high") is None:
        return "not known"
    return f"{row['low']:.2f} to {row['high']:.2f}"


def point(size: int) -> Spec:
    return {"type": "point", "filled": True, "size": size, "opacity": 1}


def zero(axis: str) -> Spec:
    """The line that leans to nobody."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "color": "#444", "strokeWidth": 1},
        "encoding": {axis: {"datum": 0, "type": "quantitative"}},
    }
