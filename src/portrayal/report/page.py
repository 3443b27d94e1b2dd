"""The page: one self-contained HTML file in which every number opens its evidence."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from portrayal.files import write_text
from portrayal.report.beside import beside
from portrayal.report.citing import bibtex
from portrayal.report.concept_charts import charts
from portrayal.report.concepts import METRIC as COUNTERBIAS
from portrayal.report.glossary import GLOSSARY
from portrayal.report.instances import instances, is_made
from portrayal.report.layout import (
    facts,
    footnotes,
    is_too_few,
    number,
    sections,
    settings_text,
    strongest,
)
from portrayal.report.questions import OTHER, QUESTIONS, question_of
from portrayal.report.section import Section
from portrayal.report.tradeoff import remedies, tradeoffs
from portrayal.report.verdict import by_question, verdicts
from portrayal.results import EVIDENCE_FILE, Results

PAGE_FILE = "index.html"
SHOWN_ITEMS = 12  # words or objects the page shows for each system and group; the results have them all
SHOWN_EVIDENCE = 20  # captions the page carries for each number; the evidence file has them all
SHOWN_PICTURES = 600  # small pictures the page carries at most
EXAMPLES = 6  # images shown with what every speaker says of them


def write_page(results: Results, folder: Path) -> Path:
    path = folder / PAGE_FILE
    write_text(path, render(results))
    return path


def render(results: Results) -> str:
    """The page as text. Captions are untrusted: they enter through autoescaping and escaped JSON only."""
    shown = [strongest(section, SHOWN_ITEMS) for section in sections(results)]
    asked = [*QUESTIONS, OTHER]
    shown.sort(key=lambda section: asked.index(question_of(section.metric)))
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.ChainableUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["number"] = number
    environment.filters["thousands"] = lambda value: f"{value:,}" if isinstance(value, int) else value
    environment.tests["too_few"] = is_too_few
    changed = instances(results)
    pictures = _pictures(results, {one.image for one in changed})
    compared = beside(results)
    script, style = template_text("page.js"), template_text("page.css")
    template = environment.from_string(template_text("page.html"))
    return template.render(
        origin=results.provenance,
        study=_object(results.provenance.get("study")),
        cards=_object(results.provenance.get("cards")),
        sections=shown,
        verdicts=by_question(verdicts(results)),
        question_of=question_of,
        questions=[one for one in asked if any(question_of(part.metric) == one for part in shown)],
        settings_text=settings_text,
        footnotes=footnotes,
        facts=facts,
        evidence_file=EVIDENCE_FILE,
        glossary=GLOSSARY,
        citation=bibtex(results),
        totals=_totals(results),
        examples=_examples(results, pictures),
        beside=compared,
        tradeoffs=[*tradeoffs(results), *remedies(results)],
        charts=charts(results),
        instances=changed,
        shown_pictures=pictures,
        compared=packed(compared),
        data=packed(_once(_shown_evidence(results, shown))),
        pictures=json_for_html(pictures),
        measurements=packed(results.as_dict()),
        script=Markup(script),
        style=Markup(style),
        script_hash=hash_of(script),
        style_hash=hash_of(style),
    )


def pictured_images(results: Results) -> list[str]:
    """The images whose pictures the page would show: the examples, then those behind numbers with little evidence.

    A few wrong captions are looked at one by one; of a thousand right ones some pictures are enough.
    """
    shown = [strongest(section, SHOWN_ITEMS) for section in sections(results)]
    totals = _totals(results)
    rarest: dict[str, int] = {}
    for identifier, rows in _shown_evidence(results, shown).items():
        for image, *_ in rows:
            rarest[image] = min(rarest.get(image, totals[identifier]), totals[identifier])
    telling = sorted(rarest, key=lambda image: (rarest[image], image))
    compared = [one["image"] for part in beside(results) for one in part["images"]]
    return list(dict.fromkeys([*_example_images(results), *compared, *telling]))[:SHOWN_PICTURES]


def _example_images(results: Results) -> list[str]:
    """Some images that every speaker describes, spread evenly over all of them."""
    told = _captions(results).group_by("image_id").agg(pl.col("system").n_unique())
    images = told.filter(pl.col("system") == pl.col("system").max())["image_id"].sort().to_list()
    step = max(1, len(images) // EXAMPLES)
    return images[step // 2 :: step][:EXAMPLES]


def _examples(results: Results, pictures: Mapping[str, str]) -> list[dict[str, Any]]:
    """Pictures with a caption of every speaker; none where the results have no pictures."""
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


def _object(value: object) -> dict[str, Any]:
    """Results may come from elsewhere, with less in their provenance than an audit puts there."""
    return value if isinstance(value, dict) else {}


def json_for_html(value: Any) -> Markup:
    """JSON that can stand inside a script element: nothing in it can end the element or open another."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    for mark in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return Markup(text)


def packed(value: Any) -> str:
    """JSON, compressed, in letters that need no escaping: a tenth of its size, and nothing of anybody's in the open."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def unpacked(text: str) -> Any:
    """
    >>> unpacked(packed({"caption": "<b>"}))
    {'caption': '<b>'}
    """
    return json.loads(gzip.decompress(base64.b64decode(text)))


def template_text(name: str) -> str:
    return (resources.files("portrayal.report") / "templates" / name).read_text(encoding="utf-8")


def hash_of(text: str) -> str:
    """The content security policy lets this one script and this one style run, and nothing else."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _totals(results: Results) -> dict[str, int]:
    return dict(results.evidence.group_by("id").len().iter_rows())


def _once(evidence: dict[str, Any]) -> dict[str, Any]:
    """Every caption once, and for each number which of them stand behind it: many stand behind several.

    Those of one image stand together, since what is alike and near each other is compressed best.
    """
    captions = sorted(
        {tuple(row) for rows in evidence.values() for row in rows}, key=lambda row: [*map(str, row)]
    )
    place = {row: number for number, row in enumerate(captions)}
    behind = {identifier: [place[tuple(row)] for row in rows] for identifier, rows in evidence.items()}
    return {"captions": [list(row) for row in captions], "behind": behind}


def _shown_evidence(results: Results, sections: list[Section]) -> dict[str, Any]:
    """For each number on the page some of its captions, spread evenly over all of them."""
    rows = [row for section in sections for row in section.rows]
    ids = [m.id for row in rows for m in (*row.cells.values(), *row.beside.values())]
    place, count = pl.int_range(pl.len()).over("id"), pl.len().over("id")
    step = ((count - 1) // SHOWN_EVIDENCE + 1).cast(pl.Int64)
    picked = results.evidence.filter(pl.col("id").is_in(ids)).filter(place % step == 0)
    shown: dict[str, Any] = {}
    for identifier, image, caption, detail in picked.select(
        "id", "image_id", "caption", "detail"
    ).iter_rows():
        shown.setdefault(identifier, []).append([image, caption, detail])
    return shown
