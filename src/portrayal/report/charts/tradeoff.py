"""Charts of bias against quality, with a point for each system."""

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

_QUALITY_TERM = ("quality", "cider")  # metric and term
_BIAS_TERMS = (
    ("lic", "lic"),
    ("lic", "lic_m"),
)  # metric and term; the first that at least two systems have is used
_RECALL_TERMS = ("tr@1", "ir@1")  # the quality of mitigated models
_REMAINING_BIAS = ("counterbias", "excess", "b@v-l")  # metric, term, and the setting `of`
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
    quality_term: str = "cider"
    quality_direction: str = "more like human captions"
    bias_direction: str = "gives less away"

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
    """A chart for each attribute with at least two systems that have both numbers, under the first settings."""
    charts = []
    overall_rows = [
        m for m in results.measurements
        if m.group is None and m.item is None and m.value is not None and m.system not in (None, HUMAN)
    ]  # fmt: skip
    for attribute in dict.fromkeys(m.attribute for m in overall_rows):
        attribute_rows = [m for m in overall_rows if m.attribute == attribute]
        quality_by_system: dict[str | None, Measurement] = {}
        for m in attribute_rows:
            if (m.metric, m.term) == _QUALITY_TERM:
                quality_by_system.setdefault(m.system, m)
        for bias_metric_and_term in _BIAS_TERMS:
            bias_rows = [
                m
                for m in attribute_rows
                if (m.metric, m.term) == bias_metric_and_term and m.system in quality_by_system
            ]
            if not bias_rows:
                continue
            settings = bias_rows[0].settings
            bias_by_system: dict[str | None, Measurement] = {}
            for m in bias_rows:
                if all(
                    m.settings.get(setting) == settings.get(setting)
                    for setting in ("classifier", "split", "balance")
                ):
                    bias_by_system.setdefault(m.system, m)
            if len(bias_by_system) > 1:
                points = tuple(
                    (str(system), quality_by_system[system], bias) for system, bias in bias_by_system.items()
                )
                charts.append(
                    Tradeoff(attribute, bias_metric_and_term[1], str(settings.get("split") or ""), points)
                )
                break
    return charts


def mitigation_tradeoffs(results: Results) -> list[Tradeoff]:
    """Charts of the remaining bias of mitigated models against their retrieval recall, for each kind and attack."""
    overall_rows = [
        m for m in results.measurements if m.group is None and m.item is None and m.value is not None
    ]
    if not any(m.metric == "mitigation" for m in overall_rows):
        return []
    metric, term, bias_component = _REMAINING_BIAS
    bias_rows = [
        m for m in overall_rows if (m.metric, m.term, m.settings.get("of")) == (metric, term, bias_component)
    ]
    charts = []
    for attribute, kind, attack in dict.fromkeys(
        (m.attribute, m.settings.get("kind"), m.settings.get("attack")) for m in bias_rows
    ):
        bias_by_system = {
            m.system: m
            for m in bias_rows
            if (m.settings.get("kind"), m.settings.get("attack")) == (kind, attack)
        }
        for recall_term in _RECALL_TERMS:
            quality_by_system: dict[str | None, Measurement] = {}
            for m in overall_rows:
                if m.metric == "retrieval-recall" and m.term == recall_term and m.system in bias_by_system:
                    quality_by_system.setdefault(m.system, m)
            points = tuple(
                (str(system), quality_by_system[system], bias_by_system[system])
                for system in bias_by_system
                if system in quality_by_system
            )
            if len(points) > 1:
                fitted = str(points[0][1].settings.get("fitted") or "")
                charts.append(
                    Tradeoff(
                        attribute,
                        f"excess of {bias_component}",
                        f"{kind}, {attack}",
                        points,
                        f"{recall_term}, {fitted}".strip(", "),
                        "finds more",
                        "less bias",
                    )
                )
    return charts


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
