"""Every chart of the page as files: SVG and PNG to look at, and the drawing in Vega-Lite's own words."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap
from typing import Any

import vl_convert

from portrayal.files import replacing, write_text
from portrayal.report.charts.counterbias import charts
from portrayal.report.charts.counterbias_specs import Spec, plain
from portrayal.report.charts.forest import together
from portrayal.report.charts.intervals import chart, systems
from portrayal.report.charts.tradeoff import remedies, tradeoffs
from portrayal.report.export.citation import cards_of
from portrayal.report.export.slugs import slugs
from portrayal.report.export.table_files import caption
from portrayal.report.page.page import shown_sections
from portrayal.results import Results

SCALE = 2  # pixels of a PNG for each point of the drawing
_LINE = 50  # letters of a title
_NOWHERE = ["https://nowhere.invalid/"]  # a drawing holds its data; it may fetch nothing


@dataclass(frozen=True)
class Drawing:
    """A chart that stands alone: its title, what it shows in words, and how it is drawn."""

    title: str
    about: str
    spec: Spec

    def svg(self) -> str:
        made: str = vl_convert.vegalite_to_svg(self.spec, allowed_base_urls=_NOWHERE)
        return made

    def png(self) -> bytes:
        made: bytes = vl_convert.vegalite_to_png(self.spec, scale=SCALE, allowed_base_urls=_NOWHERE)
        return made

    def json(self) -> str:
        return json.dumps({**self.spec, "description": self.about}, indent=1, ensure_ascii=False) + "\n"


def drawings(results: Results) -> list[Drawing]:
    """All that the page has, in its order."""
    return [*_sections(results), *_concepts(results), *_tradeoffs(results)]


def write_charts(results: Results, folder: Path) -> list[Path]:
    """NAME.svg, NAME.png and NAME.json for each chart."""
    found = drawings(results)
    written = []
    for name, one in zip(slugs([one.title for one in found]), found, strict=True):
        svg, png, spec = (folder / f"{name}.{kind}" for kind in ("svg", "png", "json"))
        write_text(svg, one.svg())
        with replacing(png) as temporary:
            temporary.write_bytes(one.png())
        write_text(spec, one.json())
        written += [svg, png, spec]
    return written


def _sections(results: Results) -> Iterable[Drawing]:
    everybody, cards = systems(results), cards_of(results)
    for section in shown_sections(results):
        made = chart(section, everybody, caption(section, cards))
        if made is not None:
            spec = together([(panel.name, panel.spec) for panel in made.panels])
            told = " ".join(panel.about for panel in made.panels)
            about = f"{made.title}. {made.reading} {told}"
            yield Drawing(made.title, about, _titled(made.title, spec))


def _concepts(results: Results) -> Iterable[Drawing]:
    for part in charts(results):
        for one in part.charts:
            for panel in one.panels:
                title = " · ".join(filter(None, (part.heading, one.title, panel.name)))
                yield Drawing(title, f"{one.title} {one.reading} {panel.about}", _drawable(panel.spec))


def _tradeoffs(results: Results) -> Iterable[Drawing]:
    for one in (*tradeoffs(results), *remedies(results)):
        yield Drawing(one.title, one.about, _titled(one.title, one.spec))


def _titled(title: str, spec: Spec) -> Any:
    """In lines that are no wider than a chart."""
    return _drawable({"title": {"text": wrap(title, _LINE), "anchor": "start"}, **spec})


def _drawable(value: Any) -> Any:
    """The same with names that a drawing can hold."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {name: _drawable(inner) for name, inner in value.items()}
    return [_drawable(inner) for inner in value] if isinstance(value, list | tuple) else value
