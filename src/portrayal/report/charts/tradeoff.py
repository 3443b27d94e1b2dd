"""Bias against quality: whether systems that describe better give more away, one point a system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portrayal.report.charts.counterbias_specs import Spec, base, plain
from portrayal.report.charts.panel import Panel
from portrayal.report.charts.point_names import SIZE, WIDEST, Box, spots
from portrayal.report.tables.layout import number, with_interval
from portrayal.results import HUMAN, Measurement, Results, split_cautions

_QUALITY = ("quality", "cider")
_BIAS = (("lic", "lic"), ("lic", "lic_m"))  # the first of these that two systems have
_FOUND = ("tr@1", "ir@1")  # of models that were remedied: what they find in a search
_LEFT = ("counterbias", "excess", "b@v-l")  # and the bias that they are left with
_WIDTH, _HEIGHT, _PADDING = 420, 280, 12
_INNER = _WIDTH - 55  # beside the numbers of the axis


@dataclass(frozen=True)
class Tradeoff:
    """Systems measured in both ways under one attribute and one setting of the bias."""

    attribute: str | None
    bias: str  # the term
    setting: str  # which of several settings, "" where there is one
    systems: tuple[tuple[str, Measurement, Measurement], ...]  # name, quality, bias
    good: str = "cider"
    better: str = "more like people's captions"
    worse: str = "gives less away"

    @property
    def title(self) -> str:
        about = " · ".join(part for part in (self.attribute, self.setting) if part)
        return f"{self.bias} against {self.good}" + (f", by {about}" if about else "")

    @property
    def about(self) -> str:
        """The main numbers, as a sentence."""
        told = [
            f"{system} {self.good} {number(good.value, good.unit)}, {self.bias} {number(bias.value, bias.unit)}"
            for system, good, bias in self.systems
        ]
        return f"{self.title}: {'; '.join(told)}."

    @property
    def spec(self) -> Spec:
        return _chart(self)

    @property
    def panel(self) -> Panel:
        return Panel(self.title, self.about, self.spec, "A table beneath it holds the same numbers.")

    def svg(self) -> str:
        return self.panel.svg()

    @property
    def lines(self) -> list[tuple[str, str, str]]:
        """A line for each system: its name, and both numbers with their intervals."""
        return [(system, with_interval(good), with_interval(bias)) for system, good, bias in self.systems]

    @property
    def cautions(self) -> list[str]:
        """What must be read beside either number, each sentence once."""
        rows = [m for _, *both in self.systems for m in both]
        return list(dict.fromkeys(caution for m in rows for caution in split_cautions(m.caution)))


def tradeoffs(results: Results) -> list[Tradeoff]:
    """One for each attribute for which at least two systems have both numbers, under the first setting there is."""
    found = []
    headlines = [
        m for m in results.measurements
        if m.group is None and m.item is None and m.value is not None and m.system not in (None, HUMAN)
    ]  # fmt: skip
    for attribute in dict.fromkeys(m.attribute for m in headlines):
        here = [m for m in headlines if m.attribute == attribute]
        good: dict[str | None, Measurement] = {}
        for m in here:
            if (m.metric, m.term) == _QUALITY:
                good.setdefault(m.system, m)
        for name in _BIAS:
            rows = [m for m in here if (m.metric, m.term) == name and m.system in good]
            if not rows:
                continue
            settings = rows[0].settings
            chosen: dict[str | None, Measurement] = {}
            for m in rows:
                if all(
                    m.settings.get(name) == settings.get(name) for name in ("classifier", "split", "balance")
                ):
                    chosen.setdefault(m.system, m)
            if len(chosen) > 1:
                points = tuple((str(system), good[system], bias) for system, bias in chosen.items())
                found.append(Tradeoff(attribute, name[1], str(settings.get("split") or ""), points))
                break
    return found


def remedies(results: Results) -> list[Tradeoff]:
    """What methods leave of a bias against what their models still find, for each way to change pictures."""
    whole = [m for m in results.measurements if m.group is None and m.item is None and m.value is not None]
    if not any(m.metric == "mitigation" for m in whole):
        return []
    metric, term, of = _LEFT
    left = [m for m in whole if (m.metric, m.term, m.settings.get("of")) == (metric, term, of)]
    found = []
    for attribute, kind, way in dict.fromkeys(
        (m.attribute, m.settings.get("kind"), m.settings.get("attack")) for m in left
    ):
        bias = {
            m.system: m for m in left if (m.settings.get("kind"), m.settings.get("attack")) == (kind, way)
        }
        for search in _FOUND:
            good: dict[str | None, Measurement] = {}
            for m in whole:
                if m.metric == "retrieval-recall" and m.term == search and m.system in bias:
                    good.setdefault(m.system, m)
            points = tuple((str(system), good[system], bias[system]) for system in bias if system in good)
            if len(points) > 1:
                fitted = str(points[0][1].settings.get("fitted") or "")
                found.append(
                    Tradeoff(
                        attribute, f"excess of {of}", f"{kind}, {way}", points, f"{search}, {fitted}".strip(", "),
                        "finds more", "less bias",
                    )
                )  # fmt: skip
    return found


def _chart(tradeoff: Tradeoff) -> Spec:
    """In Vega-Lite's own words: a dot a system, and a line for each interval."""
    rows: list[dict[str, Any]] = [
        {
            "system": plain(system),
            **{f"x{end}": number for end, number in _ends(good).items()},
            **{f"y{end}": number for end, number in _ends(bias).items()},
            "xtold": with_interval(good),
            "ytold": with_interval(bias),
        }
        for system, good, bias in tradeoff.systems
    ]
    unit = tradeoff.systems[0][2].unit
    x = _axis("x", f"{tradeoff.good} (higher: {tradeoff.better})")
    y = _axis("y", f"{tradeoff.bias} in {unit} (lower: {tradeoff.worse})")
    line = {"type": "rule", "color": "#9aa5b1", "strokeWidth": 1.5}
    told = [("system", "system"), ("xtold", tradeoff.good), ("ytold", tradeoff.bias)]
    tooltip = [{"field": field, "type": "nominal", "title": plain(title)} for field, title in told]
    return {
        **base(_WIDTH, _HEIGHT),
        "layer": [
            {
                "data": {"values": rows},
                "mark": line,
                "encoding": {"x": _axis("xlow", x["title"]), "x2": {"field": "xhigh"}, "y": y},
            },
            {
                "data": {"values": rows},
                "mark": line,
                "encoding": {"y": _axis("ylow", y["title"]), "y2": {"field": "yhigh"}, "x": x},
            },
            {
                "data": {"values": rows},
                "mark": {"type": "circle", "size": 70, "color": "#0072B2", "opacity": 1},
                "encoding": {"x": x, "y": y, "tooltip": tooltip},
            },
            *_names(rows, {"x": x, "y": y, "tooltip": tooltip}),
        ],
    }


def _names(rows: Sequence[Mapping[str, Any]], encoding: Spec) -> Iterable[Spec]:
    """Names keep off points, each other and the lines of intervals."""
    across, down = (_pixels(rows, axis, size) for axis, size in (("x", _INNER), ("y", _HEIGHT)))
    places = [(left[1], _HEIGHT - up[1]) for left, up in zip(across, down, strict=True)]
    lines = []
    for (left, x, right), (low, y, high) in zip(across, down, strict=True):
        lines.append(Box(left, _HEIGHT - y - 1, right, _HEIGHT - y + 1))
        lines.append(Box(x - 1, _HEIGHT - high, x + 1, _HEIGHT - low))
    chosen = spots([row["system"] for row in rows], places, lines, _INNER, _HEIGHT)
    for row, spot in zip(rows, chosen, strict=True):
        yield {
            "data": {"values": [row]},
            "mark": {
                "type": "text",
                "fontSize": SIZE,
                "limit": WIDEST,
                "baseline": "alphabetic",
                **vars(spot),
            },
            "encoding": {**encoding, "text": {"field": "system", "type": "nominal"}},
        }


def _pixels(rows: Sequence[Mapping[str, Any]], axis: str, size: float) -> list[tuple[float, ...]]:
    """Where each row's low end, number and high end are on an axis; in its middle where all are the same."""
    ends = [row[f"{axis}{end}"] for row in rows for end in ("low", "high")]
    lowest, reach = min(ends), max(ends) - min(ends)
    return [
        tuple(
            size / 2
            if not reach
            else _PADDING + (row[f"{axis}{end}"] - lowest) / reach * (size - 2 * _PADDING)
            for end in ("low", "", "high")
        )
        for row in rows
    ]


def _axis(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": plain(title),
        "scale": {"zero": False, "nice": False, "padding": _PADDING},
    }


def _ends(m: Measurement) -> dict[str, float | None]:
    low = m.value if m.low is None else m.low
    high = m.value if m.high is None else m.high
    return {"": m.value, "low": low, "high": high}
