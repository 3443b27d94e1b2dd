"""Bias against quality: a scatter with a point for each system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portrayal.report.charts.label_placement import Box, LabelStyle, Offset, place_labels
from portrayal.report.charts.panel import Panel
from portrayal.report.charts.scatter import scatter
from portrayal.report.charts.vega import Spec, drawable_text, layer, tooltip
from portrayal.report.tables.layout import format_number, format_with_ci
from portrayal.results import HUMAN, Measurement, Results, split_cautions

_QUALITY = ("quality", "cider")
_BIAS = (("lic", "lic"), ("lic", "lic_m"))  # the first one that two systems have
_RECALL_TERMS = ("tr@1", "ir@1")  # the quality of mitigated models
_REMAINING_BIAS = ("counterbias", "excess", "b@v-l")  # metric, term, and the setting `of`
_WIDTH, _HEIGHT, _PADDING = 420, 280, 12
_INNER_WIDTH = _WIDTH - 55  # without the labels of the y axis
_FONT_SIZE = 12
LABELS = LabelStyle(
    letter_width=0.58 * _FONT_SIZE,
    ascent=0.8 * _FONT_SIZE,
    descent=0.25 * _FONT_SIZE,
    # First above the point, then below, then farther away.
    offsets=tuple(
        Offset(align, dx, dy)
        for dy in (-8.0, 14.0, -20.0, 26.0, 4.0)
        for align, dx in (("left", 8.0), ("right", -8.0))
    ),
    max_width=150.0,
    mirrored=True,
)


@dataclass(frozen=True)
class Tradeoff:
    """Systems with both numbers, for one attribute and one setting of the bias."""

    attribute: str | None
    bias_term: str
    setting: str  # empty if there is only one
    points: tuple[tuple[str, Measurement, Measurement], ...]  # name, quality, bias
    quality_term: str = "cider"
    quality_direction: str = "more like human captions"
    bias_direction: str = "gives less away"

    @property
    def title(self) -> str:
        about = " · ".join(part for part in (self.attribute, self.setting) if part)
        return f"{self.bias_term} against {self.quality_term}" + (f", by {about}" if about else "")

    @property
    def summary(self) -> str:
        """The main numbers, as a sentence."""
        parts = [
            f"{system} {self.quality_term} {format_number(quality.value, quality.unit)}, "
            f"{self.bias_term} {format_number(bias.value, bias.unit)}"
            for system, quality, bias in self.points
        ]
        return f"{self.title}: {'; '.join(parts)}."

    @property
    def spec(self) -> Spec:
        return _chart(self)

    @property
    def panel(self) -> Panel:
        return Panel(self.title, self.summary, self.spec, "A table beneath it holds the same numbers.")

    def svg(self) -> str:
        return self.panel.svg()

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The name and both numbers of each system, as text."""
        return [
            (system, format_with_ci(quality), format_with_ci(bias)) for system, quality, bias in self.points
        ]

    @property
    def cautions(self) -> list[str]:
        """The cautions about the numbers, each once."""
        rows = [m for _, *both in self.points for m in both]
        return list(dict.fromkeys(caution for m in rows for caution in split_cautions(m.caution)))


def tradeoffs(results: Results) -> list[Tradeoff]:
    """A chart for each attribute with at least two systems that have both numbers, under their first setting."""
    charts = []
    headlines = [
        m for m in results.measurements
        if m.group is None and m.item is None and m.value is not None and m.system not in (None, HUMAN)
    ]  # fmt: skip
    for attribute in dict.fromkeys(m.attribute for m in headlines):
        own = [m for m in headlines if m.attribute == attribute]
        quality: dict[str | None, Measurement] = {}
        for m in own:
            if (m.metric, m.term) == _QUALITY:
                quality.setdefault(m.system, m)
        for name in _BIAS:
            rows = [m for m in own if (m.metric, m.term) == name and m.system in quality]
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
                points = tuple((str(system), quality[system], bias) for system, bias in chosen.items())
                charts.append(Tradeoff(attribute, name[1], str(settings.get("split") or ""), points))
                break
    return charts


def mitigation_tradeoffs(results: Results) -> list[Tradeoff]:
    """The remaining bias of mitigated models against their retrieval recall, for each attack."""
    overall = [m for m in results.measurements if m.group is None and m.item is None and m.value is not None]
    if not any(m.metric == "mitigation" for m in overall):
        return []
    metric, term, of = _REMAINING_BIAS
    remaining = [m for m in overall if (m.metric, m.term, m.settings.get("of")) == (metric, term, of)]
    charts = []
    for attribute, kind, attack in dict.fromkeys(
        (m.attribute, m.settings.get("kind"), m.settings.get("attack")) for m in remaining
    ):
        bias = {
            m.system: m
            for m in remaining
            if (m.settings.get("kind"), m.settings.get("attack")) == (kind, attack)
        }
        for recall_term in _RECALL_TERMS:
            quality: dict[str | None, Measurement] = {}
            for m in overall:
                if m.metric == "retrieval-recall" and m.term == recall_term and m.system in bias:
                    quality.setdefault(m.system, m)
            points = tuple(
                (str(system), quality[system], bias[system]) for system in bias if system in quality
            )
            if len(points) > 1:
                fitted = str(points[0][1].settings.get("fitted") or "")
                charts.append(
                    Tradeoff(
                        attribute,
                        f"excess of {of}",
                        f"{kind}, {attack}",
                        points,
                        f"{recall_term}, {fitted}".strip(", "),
                        "finds more",
                        "less bias",
                    )
                )
    return charts


def _chart(tradeoff: Tradeoff) -> Spec:
    """A point for each system, a line for each interval, and every system's name."""
    rows: list[dict[str, Any]] = [
        {
            "system": drawable_text(system),
            **{f"x{end}": value for end, value in _interval_fields(quality).items()},
            **{f"y{end}": value for end, value in _interval_fields(bias).items()},
            "xtext": format_with_ci(quality),
            "ytext": format_with_ci(bias),
        }
        for system, quality, bias in tradeoff.points
    ]
    unit = tradeoff.points[0][2].unit
    x = _axis("x", f"{tradeoff.quality_term} (higher: {tradeoff.quality_direction})")
    y = _axis("y", f"{tradeoff.bias_term} in {unit} (lower: {tradeoff.bias_direction})")
    line = {"type": "rule", "color": "#9aa5b1", "strokeWidth": 1.5}
    texts = [("system", "system"), ("xtext", tradeoff.quality_term), ("ytext", tradeoff.bias_term)]
    encoding = {"x": x, "y": y, "tooltip": tooltip(*((name, drawable_text(title)) for name, title in texts))}
    return scatter(
        rows,
        (_WIDTH, _HEIGHT),
        {"type": "circle", "size": 70, "color": "#0072B2", "opacity": 1},
        encoding,
        background=[
            layer(rows, line, {"x": _axis("xlow", x["title"]), "x2": {"field": "xhigh"}, "y": y}),
            layer(rows, line, {"y": _axis("ylow", y["title"]), "y2": {"field": "yhigh"}, "x": x}),
        ],
        labels=_system_labels(rows, encoding),
    )


def _system_labels(rows: Sequence[Mapping[str, Any]], encoding: Spec) -> list[Spec]:
    """A label for every system. It should cover no point, no other label and no interval."""
    across, up = (_pixels(rows, axis, size) for axis, size in (("x", _INNER_WIDTH), ("y", _HEIGHT)))
    points = [(x[1], _HEIGHT - y[1]) for x, y in zip(across, up, strict=True)]
    intervals = []
    for (left, x, right), (low, y, high) in zip(across, up, strict=True):
        intervals.append(Box(left, _HEIGHT - y - 1, right, _HEIGHT - y + 1))
        intervals.append(Box(x - 1, _HEIGHT - high, x + 1, _HEIGHT - low))
    placed = place_labels(
        [row["system"] for row in rows],
        points,
        (_INNER_WIDTH, _HEIGHT),
        LABELS,
        obstacles=intervals,
        order=sorted(range(len(rows)), key=lambda index: (points[index][1], points[index][0])),
        allow_overlap=True,
    )
    mark = {"type": "text", "fontSize": _FONT_SIZE, "limit": LABELS.max_width, "baseline": "alphabetic"}
    text = {"text": {"field": "system", "type": "nominal"}}
    return [
        layer([row], {**mark, **vars(offset)}, {**encoding, **text})
        for row, offset in zip(rows, placed, strict=True)
        if offset is not None
    ]


def _pixels(rows: Sequence[Mapping[str, Any]], axis: str, size: float) -> list[tuple[float, ...]]:
    """The low end, value and high end of each row in pixels; the middle of the axis where all ends are equal."""
    ends = [row[f"{axis}{end}"] for row in rows for end in ("low", "high")]
    lowest, extent = min(ends), max(ends) - min(ends)
    return [
        tuple(
            size / 2
            if not extent
            else _PADDING + (row[f"{axis}{end}"] - lowest) / extent * (size - 2 * _PADDING)
            for end in ("low", "", "high")
        )
        for row in rows
    ]


def _axis(field: str, title: str) -> Spec:
    return {
        "field": field,
        "type": "quantitative",
        "title": drawable_text(title),
        "scale": {"zero": False, "nice": False, "padding": _PADDING},
    }


def _interval_fields(m: Measurement) -> dict[str, float | None]:
    low = m.value if m.low is None else m.low
    high = m.value if m.high is None else m.high
    return {"": m.value, "low": low, "high": high}
