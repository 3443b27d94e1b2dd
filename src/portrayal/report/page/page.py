"""The page: one self-contained HTML file in which every number opens its evidence."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from portrayal.files import write_text
from portrayal.report.charts.counterbias import charts
from portrayal.report.charts.counterbias_data import METRIC as COUNTERBIAS
from portrayal.report.charts.interactive import Plots
from portrayal.report.charts.intervals import chart, systems
from portrayal.report.charts.tradeoff import remedies, tradeoffs
from portrayal.report.export.citation import bibtex
from portrayal.report.findings.findings import Conclusion, conclusions
from portrayal.report.findings.questions import OTHER, QUESTIONS, question_of
from portrayal.report.page.embedded import hash_of, json_for_html, packed, template_text
from portrayal.report.page.evidence import MOST, PAGE, packed_evidence, spread
from portrayal.report.page.glossary import GLOSSARY
from portrayal.report.page.instances import instances, is_made
from portrayal.report.page.side_by_side import beside
from portrayal.report.tables.layout import (
    caution_sentences,
    facts,
    footnotes,
    is_too_few,
    number,
    sections,
    settings_text,
    strongest,
)
from portrayal.report.tables.table import Section
from portrayal.results import EVIDENCE_FILE, Results

PAGE_FILE = "index.html"
SHOWN_ITEMS = 12  # words or objects the page shows for each system and group; the results have them all
SHOWN_PICTURES = 600  # small pictures the page carries at most
EXAMPLES = 6  # images shown with what every source says of them
_DATA = (
    '<script type="text/plain" id="data">'  # where the captions behind the numbers go, once all else is there
)
_ASKED = [*QUESTIONS, OTHER]
_LARGEST = 2**53  # whole numbers beyond it are rounded in scripts


def write_page(results: Results, folder: Path) -> Path:
    path = folder / PAGE_FILE
    write_text(path, render(results))
    return path


def render(results: Results) -> str:
    """The page as text. Captions are untrusted: they enter through autoescaping and escaped JSON only."""
    shown, concluded = shown_sections(results), conclusions(results)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.ChainableUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    environment.filters["thousands"] = lambda value: f"{value:,}" if isinstance(value, int) else value
    environment.tests["too_few"] = is_too_few
    changed = instances(results)
    pictures = _pictures(results, {one.image for one in changed})
    compared = beside(results)
    everybody = systems(results)
    section_charts = [chart(section, everybody) for section in shown]
    concept_charts = charts(results)
    against = [(one, one.panel) for one in (*tradeoffs(results), *remedies(results))]
    plots = Plots(
        [
            *(panel for one in section_charts if one for panel in one.panels),
            *(panel for part in concept_charts for one in part.charts for panel in one.panels),
            *(panel for _, panel in against),
        ]
    )
    script = "".join(template_text(name) for name in ("page.js", "evidence_data.js", "evidence.js"))
    style = template_text("page.css")
    template = environment.from_string(template_text("page.html"))
    html = template.render(
        origin=results.provenance,
        study=_object(results.provenance.get("study")),
        cards=_without_null(_object(results.provenance.get("cards"))),
        sections=shown,
        concluded=concluded,
        cautions=caution_sentences(results.provenance),
        question_of=question_of,
        questions=[one for one in _ASKED if any(question_of(part.metric) == one for part in shown)],
        settings_text=settings_text,
        footnotes=footnotes,
        facts=facts,
        evidence_file=EVIDENCE_FILE,
        glossary=GLOSSARY,
        citation=bibtex(results),
        totals=_totals(results),
        examples=_examples(results, pictures),
        beside=compared,
        tradeoffs=against,
        charts=concept_charts,
        section_charts=section_charts,
        plots=plots,
        instances=changed,
        shown_pictures=pictures,
        compared=packed(compared),
        pictures=json_for_html(pictures),
        measurements=packed(_by_column(results.as_dict())),
        script=Markup(script),
        style=Markup(style),
        script_hash=hash_of(script),
        style_hash=hash_of(style),
    )
    evidence = packed_evidence(results, _ids(shown, concluded.sentences), PAGE - len(html.encode()))
    return html.replace(_DATA, _DATA + evidence, 1)


def shown_sections(results: Results) -> list[Section]:
    """The tables as the page has them, by question."""
    shown = [strongest(section, SHOWN_ITEMS) for section in sections(results)]
    return sorted(shown, key=lambda section: _ASKED.index(question_of(section.metric)))


def pictured_images(results: Results) -> list[str]:
    """The images whose pictures the page would show: the examples, then those behind numbers with little evidence.

    A few wrong captions are looked at one by one; of a thousand right ones some pictures are enough.
    """
    behind = results.evidence.filter(
        pl.col("id").is_in(_ids(shown_sections(results), conclusions(results).sentences))
    )
    behind = behind.select("id", "image_id", total=pl.len().over("id"))
    rarest = spread(behind, MOST[-1]).group_by("image_id").agg(pl.col("total").min())
    telling = rarest.sort("total", "image_id")["image_id"].to_list()
    compared = [one["image"] for part in beside(results) for one in part["images"]]
    return list(dict.fromkeys([*_example_images(results), *compared, *telling]))[:SHOWN_PICTURES]


def _example_images(results: Results) -> list[str]:
    """Some images that every source describes, spread evenly over all of them."""
    told = _captions(results).group_by("image_id").agg(pl.col("system").n_unique())
    images = told.filter(pl.col("system") == pl.col("system").max())["image_id"].sort().to_list()
    step = max(1, len(images) // EXAMPLES)
    return images[step // 2 :: step][:EXAMPLES]


def _examples(results: Results, pictures: Mapping[str, str]) -> list[dict[str, Any]]:
    """Pictures with a caption of every source; none where the results have no pictures."""
    found, captions = [], _captions(results)
    for image in _example_images(results) if pictures else ():
        said = captions.filter(pl.col("image_id") == image).unique(
            ["system", "caption"], keep="first", maintain_order=True
        )
        first: dict[str, str] = {}
        for system, caption in said.select("system", "caption").iter_rows():
            first.setdefault(system, caption)
        if image in pictures:
            found.append({"image": image, "picture": pictures[image], "said": first})
    return found


def _captions(results: Results) -> pl.DataFrame:
    """The evidence that somebody said; the texts of counterbias are what a model was asked."""
    asked = [m.id for m in results.measurements if m.metric == COUNTERBIAS]
    return results.evidence.filter(~pl.col("id").is_in(asked)) if asked else results.evidence


def _pictures(results: Results, wanted: set[str]) -> dict[str, str]:
    """What the evidence and the instances show, each picture once. Those that an attack made stand with their
    instance and nowhere else.
    """
    found = results.pictures.drop_nulls().filter(~is_made())
    shown = pl.concat([found.head(SHOWN_PICTURES), found.filter(pl.col("image_id").is_in(list(wanted)))])
    return {image: base64.b64encode(picture).decode() for image, picture in shown.iter_rows()}


def _without_null(value: Any) -> Any:
    """What is null in a results file says as little as what is not there, which the template expects."""
    if isinstance(value, dict):
        return {name: _without_null(inner) for name, inner in value.items() if inner is not None}
    return [_without_null(inner) for inner in value] if isinstance(value, list) else value


def _object(value: object) -> dict[str, Any]:
    """Results may come from elsewhere, with less in their provenance than an audit puts there."""
    return value if isinstance(value, dict) else {}


def _totals(results: Results) -> dict[str, int]:
    return dict(results.evidence.group_by("id").len().iter_rows())


def _ids(sections: list[Section], sentences: Sequence[Conclusion]) -> list[str]:
    """The numbers of the page that open their captions, in tables and in sentences."""
    rows = [row for section in sections for row in section.rows]
    in_tables = [m.id for row in rows for m in row.cells.values() if m.value is not None]
    return list(dict.fromkeys([*in_tables, *(one.id for one in sentences)]))


def _by_column(found: dict[str, Any]) -> dict[str, Any]:
    """Results with a list for each field of their measurements: what is alike stands together, a third smaller.

    As they are where a script could not write a number again as it was.
    """
    rows = found["measurements"]
    if not rows or _has_huge(found):
        return found
    return found | {"measurements": {name: [row[name] for row in rows] for name in rows[0]}}


def _has_huge(value: Any) -> bool:
    """Whether a whole number is among it that a script would round."""
    if isinstance(value, dict):
        return any(map(_has_huge, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_huge, value))
    return isinstance(value, int) and abs(value) > _LARGEST
