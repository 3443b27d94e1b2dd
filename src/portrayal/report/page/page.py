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
from portrayal.questions import QUESTIONS, question_of
from portrayal.report.cards import metric_cards, prompt_ids
from portrayal.report.charts.concepts import concept_charts
from portrayal.report.charts.interactive import Plots
from portrayal.report.charts.intervals import interval_chart, system_names
from portrayal.report.charts.tradeoff import tradeoffs
from portrayal.report.export.citation import bibtex
from portrayal.report.findings.findings import Conclusion, conclusions
from portrayal.report.page.embedded import csp_hash, json_for_html, pack_json, read_template
from portrayal.report.page.evidence import CAPTION_LIMITS, PAGE_BYTES, pack_evidence, sample_evenly
from portrayal.report.page.glossary import GLOSSARY
from portrayal.report.page.instances import counterfactual_examples, is_generated
from portrayal.report.page.side_by_side import side_by_side
from portrayal.report.tables.layout import (
    footnotes,
    format_number,
    is_too_few,
    make_tables,
    settings_text,
    statistics_text,
    strongest_items,
    study_cautions,
)
from portrayal.report.tables.table import Table
from portrayal.results import EVIDENCE_FILE, Results

PAGE_FILE = "index.html"
SHOWN_ITEMS = 12  # words or objects of each system and group in a table; results.json has all
MAX_THUMBNAILS = 600
MAX_EXAMPLES = 6  # images with a caption of every source
# Where the evidence is inserted last, since it takes the space that the rest leaves.
_EVIDENCE_ELEMENT = '<script type="text/plain" id="data">'
_MAX_SAFE_INTEGER = 2**53  # JavaScript rounds larger integers


def write_page(results: Results, folder: Path) -> Path:
    """Write the page as index.html into a folder. Returns its path."""
    path = folder / PAGE_FILE
    write_text(path, render(results))
    return path


def render(results: Results) -> str:
    """The HTML of the page. Captions are untrusted: they enter through autoescaping and escaped JSON only."""
    tables, findings = page_tables(results), conclusions(results)
    questions = {table.metric: question_of(metric_cards(results).get(table.metric)) for table in tables}
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.ChainableUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = format_number
    environment.filters["thousands"] = lambda value: f"{value:,}" if isinstance(value, int) else value
    environment.tests["too_few"] = is_too_few
    examples = counterfactual_examples(results)
    thumbnails = _thumbnails(results, {example.image for example in examples})
    comparisons = side_by_side(results)
    systems = system_names(results)
    table_charts = [interval_chart(table, systems) for table in tables]
    chart_groups = concept_charts(results)
    tradeoff_panels = [(tradeoff, tradeoff.panel) for tradeoff in tradeoffs(results)]
    plots = Plots(
        [
            *(panel for chart in table_charts if chart for panel in chart.panels),
            *(panel for group in chart_groups for chart in group.charts for panel in chart.panels),
            *(panel for _, panel in tradeoff_panels),
        ]
    )
    script = "".join(read_template(name) for name in ("page.js", "evidence_data.js", "evidence.js"))
    style = read_template("page.css")
    template = environment.from_string(read_template("page.html"))
    html = template.render(
        origin=results.provenance,
        conditions=results.conditions,
        study=_mapping(results.provenance.get("study")),
        cards=_drop_null(_mapping(results.provenance.get("cards"))),
        tables=tables,
        findings=findings,
        cautions=study_cautions(results.provenance),
        question_by_metric=questions,
        questions=[question for question in QUESTIONS if question in questions.values()],
        settings_text=settings_text,
        footnotes=footnotes,
        statistics_text=statistics_text,
        evidence_file=EVIDENCE_FILE,
        glossary=GLOSSARY,
        citation=bibtex(results),
        evidence_counts=_evidence_counts(results),
        examples=_examples(results, thumbnails),
        comparisons=comparisons,
        tradeoffs=tradeoff_panels,
        chart_groups=chart_groups,
        table_charts=table_charts,
        plots=plots,
        counterfactual_examples=examples,
        thumbnails=thumbnails,
        compared=pack_json(comparisons),
        thumbnails_json=json_for_html(thumbnails),
        measurements=pack_json(_by_column(results.as_dict())),
        script=Markup(script),
        style=Markup(style),
        script_hash=csp_hash(script),
        style_hash=csp_hash(style),
    )
    evidence = pack_evidence(
        results, _linked_ids(tables, findings.sentences), PAGE_BYTES - len(html.encode())
    )
    return html.replace(_EVIDENCE_ELEMENT, _EVIDENCE_ELEMENT + evidence, 1)


def page_tables(results: Results) -> list[Table]:
    """The tables of the page in the order of its questions, with the strongest items only."""
    tables = [strongest_items(table, SHOWN_ITEMS) for table in make_tables(results)]
    cards = metric_cards(results)
    return sorted(tables, key=lambda table: QUESTIONS.index(question_of(cards.get(table.metric))))


def thumbnail_images(results: Results) -> list[str]:
    """Ids of the images whose thumbnails the page shows: examples, then images behind numbers with little evidence.

    Readers look at each of a few wrong captions, and at some of a thousand right ones.
    """
    evidence = results.evidence.filter(
        pl.col("id").is_in(_linked_ids(page_tables(results), conclusions(results).sentences))
    )
    evidence = evidence.select("id", "image_id", total=pl.len().over("id"))
    rarest = sample_evenly(evidence, CAPTION_LIMITS[-1]).group_by("image_id").agg(pl.col("total").min())
    by_evidence = rarest.sort("total", "image_id")["image_id"].to_list()
    side_by_side_images = [example["image"] for group in side_by_side(results) for example in group["images"]]
    return list(dict.fromkeys([*_example_images(results), *side_by_side_images, *by_evidence]))[
        :MAX_THUMBNAILS
    ]


def _example_images(results: Results) -> list[str]:
    """Images that every source describes, evenly sampled."""
    n_sources = _captions(results).group_by("image_id").agg(pl.col("system").n_unique())
    images = n_sources.filter(pl.col("system") == pl.col("system").max())["image_id"].sort().to_list()
    step = max(1, len(images) // MAX_EXAMPLES)
    return images[step // 2 :: step][:MAX_EXAMPLES]


def _examples(results: Results, thumbnails: Mapping[str, str]) -> list[dict[str, Any]]:
    """Images with a thumbnail and a caption of every source."""
    examples, captions = [], _captions(results)
    for image in _example_images(results) if thumbnails else ():
        own = captions.filter(pl.col("image_id") == image).unique(
            ["system", "caption"], keep="first", maintain_order=True
        )
        by_source: dict[str, str] = {}
        for system, caption in own.select("system", "caption").iter_rows():
            by_source.setdefault(system, caption)
        if image in thumbnails:
            examples.append({"image": image, "thumbnail": thumbnails[image], "captions": by_source})
    return examples


def _captions(results: Results) -> pl.DataFrame:
    """The evidence whose texts are captions, not prompts."""
    prompts = prompt_ids(results)
    return results.evidence.filter(~pl.col("id").is_in(prompts)) if prompts else results.evidence


def _thumbnails(results: Results, example_images: set[str]) -> dict[str, str]:
    """The thumbnails of the evidence and of the counterfactual examples, base64-encoded, by image id.

    Generated images are left out: they stand in their examples.
    """
    originals = results.thumbnails.drop_nulls().filter(~is_generated())
    shown = pl.concat(
        [originals.head(MAX_THUMBNAILS), originals.filter(pl.col("image_id").is_in(list(example_images)))]
    )
    return {image: base64.b64encode(data).decode() for image, data in shown.iter_rows()}


def _drop_null(value: Any) -> Any:
    """The value without null entries, which the template treats as missing ones."""
    if isinstance(value, dict):
        return {name: _drop_null(item) for name, item in value.items() if item is not None}
    return [_drop_null(item) for item in value] if isinstance(value, list) else value


def _mapping(value: object) -> dict[str, Any]:
    """The value if it is a mapping, else an empty one: the provenance of foreign results may lack anything."""
    return value if isinstance(value, dict) else {}


def _evidence_counts(results: Results) -> dict[str, int]:
    return dict(results.evidence.group_by("id").len().iter_rows())


def _linked_ids(tables: list[Table], sentences: Sequence[Conclusion]) -> list[str]:
    """Ids of the numbers in tables and sentences that open their captions."""
    rows = [row for table in tables for row in table.rows]
    in_tables = [m.id for row in rows for m in row.cells.values() if m.value is not None]
    return list(dict.fromkeys([*in_tables, *(conclusion.id for conclusion in sentences)]))


def _by_column(results: dict[str, Any]) -> dict[str, Any]:
    """Results with a list for each field of their measurements, which compress a third better.

    Unchanged if they hold an integer that JavaScript would round.
    """
    rows = results["measurements"]
    if not rows or _has_large_integer(results):
        return results
    return results | {"measurements": {name: [row[name] for row in rows] for name in rows[0]}}


def _has_large_integer(value: Any) -> bool:
    """Whether it holds an integer that JavaScript would round."""
    if isinstance(value, dict):
        return any(map(_has_large_integer, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_has_large_integer, value))
    return isinstance(value, int) and abs(value) > _MAX_SAFE_INTEGER
