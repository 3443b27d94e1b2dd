"""Every chart of the page as files: SVG, PNG, and the Vega-Lite specification as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import vl_convert

from portrayal.files import replacing, write_text
from portrayal.report.cards import metric_cards
from portrayal.report.charts.concepts import concept_charts
from portrayal.report.charts.forest import concatenate
from portrayal.report.charts.intervals import interval_chart, system_names
from portrayal.report.charts.tradeoff import tradeoffs
from portrayal.report.charts.vega import Spec, drawable_text
from portrayal.report.export.slugs import slugs
from portrayal.report.export.table_files import table_caption
from portrayal.report.page.page import page_tables
from portrayal.results import Results

SCALE = 2  # pixels of a PNG per pixel of the chart
_TITLE_WIDTH = 50  # letters
_NO_BASE_URL = ["https://nowhere.invalid/"]  # charts hold their data and must not fetch anything


@dataclass(frozen=True)
class StandaloneChart:
    """A chart with its title and a description in words."""

    title: str
    description: str
    spec: Spec

    def svg(self) -> str:
        svg: str = vl_convert.vegalite_to_svg(self.spec, allowed_base_urls=_NO_BASE_URL)
        return svg

    def png(self) -> bytes:
        png: bytes = vl_convert.vegalite_to_png(self.spec, scale=SCALE, allowed_base_urls=_NO_BASE_URL)
        return png

    def json(self) -> str:
        return json.dumps({**self.spec, "description": self.description}, indent=1, ensure_ascii=False) + "\n"


def standalone_charts(results: Results) -> list[StandaloneChart]:
    """The charts of the page, in its order."""
    return [*_table_charts(results), *_concept_charts(results), *_tradeoff_charts(results)]


def write_charts(results: Results, folder: Path) -> list[Path]:
    """Write NAME.svg, NAME.png and NAME.json for each chart. Returns the paths."""
    charts = standalone_charts(results)
    written = []
    for name, chart in zip(slugs([chart.title for chart in charts]), charts, strict=True):
        svg, png, spec = (folder / f"{name}.{kind}" for kind in ("svg", "png", "json"))
        write_text(svg, chart.svg())
        with replacing(png) as temporary:
            temporary.write_bytes(chart.png())
        write_text(spec, chart.json())
        written += [svg, png, spec]
    return written


def _table_charts(results: Results) -> Iterable[StandaloneChart]:
    systems, cards = system_names(results), metric_cards(results)
    for table in page_tables(results):
        chart = interval_chart(table, systems, table_caption(table, cards))
        if chart is not None:
            spec = concatenate([(panel.name, panel.spec) for panel in chart.panels])
            summaries = " ".join(panel.summary for panel in chart.panels)
            description = f"{chart.title}. {chart.explanation} {summaries}"
            yield StandaloneChart(chart.title, description, _with_title(chart.title, spec))


def _concept_charts(results: Results) -> Iterable[StandaloneChart]:
    for group in concept_charts(results):
        for chart in group.charts:
            for panel in chart.panels:
                title = " · ".join(filter(None, (group.heading, chart.title, panel.name)))
                yield StandaloneChart(
                    title, f"{chart.title} {chart.explanation} {panel.summary}", _drawable(panel.spec)
                )


def _tradeoff_charts(results: Results) -> Iterable[StandaloneChart]:
    for tradeoff in tradeoffs(results):
        yield StandaloneChart(tradeoff.title, tradeoff.summary, _with_title(tradeoff.title, tradeoff.spec))


def _with_title(title: str, spec: Spec) -> Any:
    """The specification with its title, wrapped to the width of a chart."""
    return _drawable({"title": {"text": wrap(title, _TITLE_WIDTH), "anchor": "start"}, **spec})


def _drawable(value: Any) -> Any:
    """The specification with texts that a chart can hold."""
    if isinstance(value, str):
        return drawable_text(value)
    if isinstance(value, dict):
        return {name: _drawable(inner) for name, inner in value.items()}
    return [_drawable(inner) for inner in value] if isinstance(value, list | tuple) else value
