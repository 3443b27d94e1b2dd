"""Points with their intervals in Vega-Lite's own words: a line a number, as wide as a phone.

Names are data in these drawings and nothing else, so that no name is read as an instruction. Those that are too long
for their place are shown whole by the tooltip.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from portrayal.report.charts.counterbias_specs import Spec, base, plain, point
from portrayal.report.charts.label_placement import LETTER

LINE = 17  # pixels between numbers
WITHIN = 210  # pixels of an axis, where panels stand side by side in one drawing
_ROOM = (40, 118)  # pixels for names, at least and at most
_AXIS, _LEGEND = 40, 56  # pixels below
_WHOLE = 320  # pixels of a name in a file
Ends = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """One number: the name beside it, the name above those that belong together, and what its tooltip says."""

    label: str
    value: float
    low: float | None
    high: float | None
    ideal: float | None
    by: str  # whom its colour and shape stand for
    hollow: bool
    tip: Mapping[str, str]
    block: str | None = None


def ends(lines: Sequence[Line]) -> Ends:
    """How far an axis reaches: over all values and ideals, and over intervals unless one would squeeze the rest."""
    values = [one.value for one in lines] + [one.ideal for one in lines if one.ideal is not None]
    pairs = [(one.low, one.high) for one in lines if one.low is not None and one.high is not None]
    low, high = min(values), max(values)
    usual = median([b - a for a, b in pairs]) if pairs else 0.0
    far = 1.5 * max(high - low, usual)
    low, high = (
        min([low, *(max(a, low - far) for a, _ in pairs)]),
        max([high, *(min(b, high + far) for _, b in pairs)]),
    )
    edge = 0.06 * (high - low) or 0.5 * abs(high) or 0.5
    return low - edge, high + edge


def room_for(lines: Iterable[Line]) -> int:
    """Pixels for names left of an axis: the same for all panels of a chart, so that their axes line up."""
    longest = max(len(name) for one in lines for name in (one.label, one.block or ""))
    return max(_ROOM[0], min(_ROOM[1], round(LETTER * longest) + 12))


def forest(
    lines: Sequence[Line], title: Sequence[str], reach: Ends, colours: tuple[Spec, Spec], room: int, wide: int
) -> Spec:
    """The numbers in their order. Where names stand above them, each has a line of its own."""
    tips = list(dict.fromkeys(name for one in lines for name in one.tip))
    names: list[dict[str, Any]] = []
    values: list[dict[str, Any]] = []
    at, block = 0, None
    for one in lines:
        if one.block is not None and one.block != block:
            names.append({"row": at, "text": plain(one.block)})
            at, block = at + 1, one.block
        told = {f"tip{n}": plain(one.tip.get(name, "")) for n, name in enumerate(tips)}
        values.append(_value(one, at, reach) | told)
        at += 1
    labels = [{"row": row["row"], "text": row["label"]} for row in values]
    y: Spec = {"field": "row", "type": "quantitative", "axis": None}
    y["scale"] = {"domain": [-0.6, at - 0.4], "reverse": True, "nice": False, "zero": False}
    x: Spec = {"field": "at", "type": "quantitative", "title": [plain(line) for line in title]}
    x["axis"] = {"tickCount": 4, "grid": True}
    x["scale"] = {"domain": list(reach), "nice": False, "zero": False}
    colour, shape = ({"field": "by", "type": "nominal", "scale": one, "legend": None} for one in colours)
    tip = {"tooltip": [{"field": f"tip{n}", "type": "nominal", "title": name} for n, name in enumerate(tips)]}
    spoken = [row for row in values if row["low"] is not None]
    across = {"x": {**x, "field": "low"}, "x2": {"field": "high"}, "y": y, "color": colour}
    dots = {"x": x, "y": y, "color": colour, "shape": shape, **tip}
    hollow = {"type": "point", "filled": False, "size": 46, "strokeWidth": 1.6, "opacity": 1}
    edge = {"x": {"value": -room}, "x2": {"value": 0}, "y": {"value": 0}}
    layers: list[Spec] = [
        _layer([{}], {"type": "rule", "opacity": 0}, edge),  # it takes the room, whatever the names are
        _ideals(values, x, y, at),
        _layer(names, _text("left", 600, wide - 40), _named(4 - room, y)),
        _layer(labels, _text("right", 400, room - 10), _named(-8, y)),
        _layer(spoken, {"type": "rule", "strokeWidth": 2, "opacity": 0.75}, across),
        _arrow(values, "low", -90, {"y": y, "color": colour, "x": x}),
        _arrow(values, "high", 90, {"y": y, "color": colour, "x": x}),
        _layer([row for row in values if not row["hollow"]], point(54), dots),
        _layer([row for row in values if row["hollow"]], hollow, dots),
        # A line that is easier to point at than the thin one.
        _layer(spoken, {"type": "rule", "strokeWidth": 13, "opacity": 0}, across | tip),
    ]
    made = base(wide, LINE * at)
    made["padding"] = {"left": 2, "right": 10, "top": 4, "bottom": 4}
    made["config"]["axis"]["gridOpacity"] = 0.7
    return {**made, "layer": [one for one in layers if one["data"]["values"]]}


def height(spec: Spec) -> int:
    """About how high it will be, with its axis and the names of its colours."""
    colours = [layer["encoding"].get("color", {}).get("legend") for layer in spec["layer"]]
    return int(spec["height"]) + _AXIS + (_LEGEND if any(colours) else 0)


def together(specs: Sequence[tuple[str, Spec]]) -> Spec:
    """Several in one drawing, each with its title above it. There nobody can point at a name: it has more room."""
    title = {"anchor": "start", "fontSize": 12, "frame": "bounds"}
    inner = [
        {
            "title": {**title, "text": plain(name)},
            "width": WITHIN,
            "height": spec["height"],
            "layer": [
                {**one, "mark": {**one["mark"], "limit": _WHOLE}} if one["mark"]["type"] == "text" else one
                for one in spec["layer"]
            ],
        }
        for name, spec in specs
    ]
    shared = {key: value for key, value in specs[0][1].items() if key in ("$schema", "background", "config")}
    return {**shared, "padding": 10, "concat": inner, "columns": 3, "spacing": 20}


def _value(one: Line, at: int, reach: Ends) -> dict[str, Any]:
    known = one.low is not None and one.high is not None
    return {
        "row": at, "label": plain(one.label), "by": plain(one.by), "hollow": one.hollow, "ideal": one.ideal,
        "at": one.value, "low": _within(one.low, reach) if known else None,
        "high": _within(one.high, reach) if known else None,
        "past low": known and (one.low or 0.0) < reach[0], "past high": known and (one.high or 0.0) > reach[1],
    }  # fmt: skip


def _within(value: float | None, reach: Ends) -> float:
    return min(max(value or 0.0, reach[0]), reach[1])


def _layer(values: Sequence[Mapping[str, Any]], mark: Spec, encoding: Spec) -> Spec:
    return {"data": {"values": list(values)}, "mark": mark, "encoding": encoding}


def _ideals(values: Sequence[Mapping[str, Any]], x: Spec, y: Spec, lines: int) -> Spec:
    """Where numbers ought to be: one line for all, or a piece for each where they differ."""
    some = [row for row in values if row["ideal"] is not None]
    mark = {"type": "rule", "color": "#444", "strokeWidth": 1, "strokeDash": [4, 3]}
    if len(some) == len(values) and len({row["ideal"] for row in some}) == 1:
        places = [{"ideal": some[0]["ideal"], "from": -0.6, "to": lines - 0.4}]
    else:
        places = [{"ideal": row["ideal"], "from": row["row"] - 0.45, "to": row["row"] + 0.45} for row in some]
    spread = {"x": {**x, "field": "ideal"}, "y": {**y, "field": "from"}, "y2": {"field": "to"}}
    return _layer(places, mark, spread)


def _named(x: int, y: Spec) -> Spec:
    """A name that is shown whole when it is pointed at."""
    text = {"field": "text", "type": "nominal"}
    return {"x": {"value": x}, "y": y, "text": text, "tooltip": text}


def _arrow(values: Sequence[Mapping[str, Any]], end: str, angle: int, encoding: Spec) -> Spec:
    """Where an interval goes on beyond the axis."""
    mark = {"type": "point", "shape": "triangle-up", "angle": angle, "filled": True, "size": 40, "opacity": 1}
    past = [row for row in values if row[f"past {end}"]]
    return _layer(past, mark, {**encoding, "x": {**encoding["x"], "field": end}})


def _text(align: str, weight: int, limit: int) -> Spec:
    return {
        "type": "text", "align": align, "baseline": "middle", "fontSize": 11, "fontWeight": weight, "limit": limit,
    }  # fmt: skip
