"""A scatter of concepts in Vega-Lite's own words, with names where there is room and a text in each corner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from portrayal.report.charts.counterbias_specs import (
    Spec,
    base,
    coloured,
    plain,
    point,
    quantity,
    tooltip,
    zero,
)
from portrayal.report.charts.label_placement import Box, placed

_SQUARE = 256  # pixels inside
_NAMED = 9  # points that have their name beside them


def scatter(
    rows: Sequence[Mapping[str, Any]],
    titles: tuple[Sequence[str], Sequence[str]],
    colours: tuple[Spec, Spec],
    corners: Mapping[tuple[int, int], str],
    reach: tuple[float, float],
    legend: str,
    diagonal: bool = False,
) -> Spec:
    """A dot a concept (`concept`, `x`, `y`, `by`), with a text in each corner and names where there is room."""
    by_distance = sorted(rows, key=lambda row: -abs(row["x"]) / reach[0] - abs(row["y"]) / reach[1])
    pixels = {
        plain(row["concept"]): (_pixel(row["x"], reach[0]), _pixel(-row["y"], reach[1]))
        for row in by_distance
    }
    names = placed(pixels, _SQUARE, _SQUARE, _corner_boxes(corners), _NAMED)
    values = [{**row, "concept": plain(row["concept"]), "by": plain(row["by"])} for row in rows]
    x, y = quantity("x", titles[0], reach[0]), quantity("y", titles[1], reach[1])
    colour, shape = coloured(colours, legend)
    least = min(reach)
    line = {"x": -least, "y": -least, "x2": least, "y2": least}
    same = {
        "data": {"values": [line]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": "#9aa5b1"},
        "encoding": {"x": x, "y": y, "x2": {"field": "x2"}, "y2": {"field": "y2"}},
    }
    return {
        **base(_SQUARE, _SQUARE),
        "autosize": "pad",
        "layer": [
            zero("x"),
            zero("y"),
            *([same] if diagonal else []),
            {
                "data": {"values": values},
                "mark": point(44) | {"opacity": 0.85},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "shape": shape,
                    "tooltip": tooltip(("concept", ""), ("x", ".2f"), ("y", ".2f"), ("by", legend)),
                },
            },
            *(_text(one["name"], one["x"], one["y"], one["align"]) for one in names),
            *(_corner(text, *place) for place, text in corners.items()),
        ],
    }


def _pixel(value: float, reach: float) -> float:
    return _SQUARE * (value + reach) / (2 * reach)


def _corner_boxes(corners: Mapping[tuple[int, int], str]) -> list[Box]:
    made: list[Box] = []
    for (right, up), text in corners.items():
        long = 7.5 * len(text) + 8
        left, top = _SQUARE - long if right > 0 else 0, 0 if up > 0 else _SQUARE - 20
        made.append((left, top, left + long, top + 20))
    return made


def _corner(text: str, right: int, up: int) -> Spec:
    x, y = (_SQUARE - 5 if right > 0 else 5), (11 if up > 0 else _SQUARE - 10)
    made = _text(text, x, y, "right" if right > 0 else "left")
    made["mark"] |= {"fontSize": 13, "fontWeight": 700, "color": "#333"}
    return made


def _text(text: str, x: float, y: float, align: str) -> Spec:
    """A text at a place in pixels. It is data, so that nothing in it is read as an instruction."""
    mark = {"type": "text", "align": align, "baseline": "middle", "fontSize": 11, "color": "#333"}
    return {
        "data": {"values": [{"text": text}]},
        "mark": mark,
        "encoding": {"x": {"value": x}, "y": {"value": y}, "text": {"field": "text", "type": "nominal"}},
    }
