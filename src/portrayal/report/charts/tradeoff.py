"""Charts of bias against quality, with a point for each system."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from portrayal.report.cards import METHODS, metrics_of_layout
from portrayal.report.charts.label_placement import Box, LabelStyle, Offset, place_labels
from portrayal.report.charts.panel import Panel
from portrayal.report.charts.scatter import scatter
from portrayal.report.charts.tradeoff_axes import CAPTIONERS, MODELS, TradeoffAxis, tradeoff_axes
from portrayal.report.charts.vega import Spec, drawable_text, layer, tooltip
from portrayal.report.tables.layout import format_number, format_with_ci
from portrayal.results import HUMAN, Measurement, Results, split_cautions

_WIDTH, _HEIGHT, _PADDING = 420, 280, 12
_INNER_WIDTH = _WIDTH - 55  # the width without the labels of the y axis
_FONT_SIZE = 12
LABEL_STYLE = LabelStyle(
    letter_width=0.58 * _FONT_SIZE,
    ascent=0.8 * _FONT_SIZE,
    descent=0.25 * _FONT_SIZE,
    # Labels above the point come first, then below, then farther away.
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
    """The systems with a bias and a quality, for one attribute and one setting of the bias."""

    attribute: str | None
    bias_term: str
    setting: str  # empty if there is only one
    points: tuple[tuple[str, Measurement, Measurement], ...]  # system, quality, bias
    quality_term: str
    quality_direction: str
    bias_direction: str

    @property
    def title(self) -> str:
        scope = " · ".join(name for name in (self.attribute, self.setting) if name)
        return f"{self.bias_term} against {self.quality_term}" + (f", by {scope}" if scope else "")

    @property
    def summary(self) -> str:
        """The main numbers, as a sentence."""
        system_texts = [
            f"{system} {self.quality_term} {format_number(quality.value, quality.unit)}, "
            f"{self.bias_term} {format_number(bias.value, bias.unit)}"
            for system, quality, bias in self.points
        ]
        return f"{self.title}: {'; '.join(system_texts)}."

    @property
    def spec(self) -> Spec:
        return _tradeoff_spec(self)

    @property
    def panel(self) -> Panel:
        return Panel(self.title, self.summary, self.spec, "A table beneath it holds the same numbers.")

    def svg(self) -> str:
        return self.panel.svg()

    @property
    def rows(self) -> list[tuple[str, str, str]]:
        """The name, quality and bias of each system, as text."""
        return [
            (system, format_with_ci(quality), format_with_ci(bias)) for system, quality, bias in self.points
        ]

    @property
    def cautions(self) -> list[str]:
        """The cautions about both numbers of all systems, each once."""
        measurements = [m for _, *quality_and_bias in self.points for m in quality_and_bias]
        return list(dict.fromkeys(caution for m in measurements for caution in split_cautions(m.caution)))


def tradeoffs(results: Results) -> list[Tradeoff]:
    """Charts of the bias of systems against their quality, for each attribute, by the cards of the metrics.

    Charts of captioners show bias under its first settings. Charts of models that were trained with methods show it
    under all settings, where results have a metric about methods.
    """
    overall_rows = [
        m for m in results.measurements
        if m.group is None and m.item is None and m.value is not None and m.system not in (None, HUMAN)
    ]  # fmt: skip
    axes = tradeoff_axes(results)
    about_methods = metrics_of_layout(results, METHODS)
    compares_methods = any(m.metric in about_methods for m in overall_rows)
    charts = []
    for points in (CAPTIONERS, MODELS) if compares_methods else (CAPTIONERS,):
        biases, qualities = (
            [axis for axis in axes if (axis.points, axis.is_bias) == (points, is_bias)]
            for is_bias in (True, False)
        )
        for attribute in dict.fromkeys(m.attribute for m in overall_rows):
            attribute_rows = [m for m in overall_rows if m.attribute == attribute]
            for bias in biases:
                charts += _bias_charts(bias, qualities, attribute_rows)
    return charts


def _bias_charts(
    bias: TradeoffAxis, qualities: Sequence[TradeoffAxis], rows: Sequence[Measurement]
) -> list[Tradeoff]:
    """The charts of a bias against each quality, for its first term that at least two systems have."""
    quality_rows = [
        (quality, found)
        for quality in qualities
        for term in quality.terms
        if (found := quality.rows(rows, term))
    ]
    systems = {m.system for _, found in quality_rows for m in found}
    for term in bias.terms:
        bias_rows = [m for m in bias.rows(rows, term) if m.system in systems]
        settings = list(dict.fromkeys(map(bias.shared, bias_rows)))
        charts = [
            _tradeoff((bias, [m for m in bias_rows if bias.shared(m) == shared]), (quality, found))
            for shared in (settings[:1] if bias.points == CAPTIONERS else settings)
            for quality, found in quality_rows
        ]
        if any(charts):
            return [chart for chart in charts if chart is not None]
    return []


def _tradeoff(
    bias: tuple[TradeoffAxis, Sequence[Measurement]], quality: tuple[TradeoffAxis, Sequence[Measurement]]
) -> Tradeoff | None:
    """The chart of a bias against a quality; None if fewer than two systems have both."""
    (bias_axis, bias_rows), (quality_axis, quality_rows) = bias, quality
    bias_by_system, quality_by_system = _first_by_system(bias_rows), _first_by_system(quality_rows)
    points = tuple(
        (system, quality_by_system[system], m)
        for system, m in bias_by_system.items()
        if system in quality_by_system
    )
    if len(points) < 2:
        return None
    _, first_quality, first_bias = points[0]
    return Tradeoff(
        first_bias.attribute,
        " of ".join([first_bias.term, *bias_axis.settings.values()]),
        bias_axis.title(first_bias),
        points,
        ", ".join(filter(None, (first_quality.term, quality_axis.title(first_quality)))),
        quality_axis.direction,
        bias_axis.direction,
    )


def _first_by_system(measurements: Iterable[Measurement]) -> dict[str, Measurement]:
    first: dict[str, Measurement] = {}
    for m in measurements:
        first.setdefault(str(m.system), m)
    return first


def _tradeoff_spec(tradeoff: Tradeoff) -> Spec:
    """The specification of the chart: a point and a label for each system, and a line for each interval."""
    rows: list[dict[str, Any]] = [
        {
            "system": drawable_text(system),
            **{f"x{bound}": value for bound, value in _interval_fields(quality).items()},
            **{f"y{bound}": value for bound, value in _interval_fields(bias).items()},
            "xtext": format_with_ci(quality),
            "ytext": format_with_ci(bias),
        }
        for system, quality, bias in tradeoff.points
    ]
    unit = tradeoff.points[0][2].unit
    x = _axis("x", f"{tradeoff.quality_term} (higher: {tradeoff.quality_direction})")
    y = _axis("y", f"{tradeoff.bias_term} in {unit} (lower: {tradeoff.bias_direction})")
    interval_mark = {"type": "rule", "color": "#9aa5b1", "strokeWidth": 1.5}
    tooltip_fields = [("system", "system"), ("xtext", tradeoff.quality_term), ("ytext", tradeoff.bias_term)]
    encoding = {
        "x": x,
        "y": y,
        "tooltip": tooltip(*((name, drawable_text(title)) for name, title in tooltip_fields)),
    }
    return scatter(
        rows,
        (_WIDTH, _HEIGHT),
        {"type": "circle", "size": 70, "color": "#0072B2", "opacity": 1},
        encoding,
        background=[
            layer(rows, interval_mark, {"x": _axis("xlow", x["title"]), "x2": {"field": "xhigh"}, "y": y}),
            layer(rows, interval_mark, {"y": _axis("ylow", y["title"]), "y2": {"field": "yhigh"}, "x": x}),
        ],
        labels=_system_labels(rows, encoding),
    )


def _system_labels(rows: Sequence[Mapping[str, Any]], encoding: Spec) -> list[Spec]:
    """Layers with a label for every system, which covers no point, label or interval if possible."""
    x_pixels, y_pixels = (_pixels(rows, axis, size) for axis, size in (("x", _INNER_WIDTH), ("y", _HEIGHT)))
    points = [(x[1], _HEIGHT - y[1]) for x, y in zip(x_pixels, y_pixels, strict=True)]
    intervals = []
    for (left, x, right), (low, y, high) in zip(x_pixels, y_pixels, strict=True):
        intervals.append(Box(left, _HEIGHT - y - 1, right, _HEIGHT - y + 1))
        intervals.append(Box(x - 1, _HEIGHT - high, x + 1, _HEIGHT - low))
    offsets = place_labels(
        [row["system"] for row in rows],
        points,
        (_INNER_WIDTH, _HEIGHT),
        LABEL_STYLE,
        obstacles=intervals,
        order=sorted(range(len(rows)), key=lambda index: (points[index][1], points[index][0])),
        allow_overlap=True,
    )
    mark = {"type": "text", "fontSize": _FONT_SIZE, "limit": LABEL_STYLE.max_width, "baseline": "alphabetic"}
    text_encoding = {"text": {"field": "system", "type": "nominal"}}
    return [
        layer([row], {**mark, **vars(offset)}, {**encoding, **text_encoding})
        for row, offset in zip(rows, offsets, strict=True)
        if offset is not None
    ]


def _pixels(rows: Sequence[Mapping[str, Any]], axis: str, size: float) -> list[tuple[float, ...]]:
    """The low bound, value and high bound of each row in pixels; the middle of the axis if all bounds are equal."""
    bounds = [row[f"{axis}{bound}"] for row in rows for bound in ("low", "high")]
    lowest, value_range = min(bounds), max(bounds) - min(bounds)
    return [
        tuple(
            size / 2
            if not value_range
            else _PADDING + (row[f"{axis}{bound}"] - lowest) / value_range * (size - 2 * _PADDING)
            for bound in ("low", "", "high")
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
    """The value and its interval by suffix of the field name; without an interval, both bounds are the value."""
    low = m.value if m.low is None else m.low
    high = m.value if m.high is None else m.high
    return {"": m.value, "low": low, "high": high}
