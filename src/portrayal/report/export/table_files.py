"""Every table of the page as files: CSV for programs, Markdown for pages, LaTeX for papers."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from portrayal.files import write_text
from portrayal.report.export.citation import cards_of
from portrayal.report.export.slugs import slugs
from portrayal.report.page.page import SHOWN_ITEMS
from portrayal.report.tables import latex
from portrayal.report.tables.layout import footnotes, sections, settings_text, strongest
from portrayal.report.tables.table import Section
from portrayal.report.tables.text import about, escape, grid, paragraph, pipes
from portrayal.results import Measurement, Results

_ABOUT = ("metric", "attribute", "system", "group", "item", "term")
_NUMBERS = (
    "value",
    "low",
    "high",
    "n",
    "n_unit",
    "p",
    "q",
    "unit",
    "ideal",
    "better",
    "reason",
    "caution",
    "id",
)
SETTING = "setting:"  # before the name of a setting in the head of a CSV


def write_tables(results: Results, folder: Path) -> list[Path]:
    """NAME.csv, NAME.md and NAME.tex for each table."""
    found = sections(results)
    cards = cards_of(results)
    written = []
    for name, section in zip(names(found), found, strict=True):
        title = caption(section, cards)
        made = {
            "csv": to_csv(section),
            "md": to_markdown(section, title, name),
            "tex": to_latex(section, title, name),
        }
        for kind, text in made.items():
            written.append(folder / f"{name}.{kind}")
            write_text(written[-1], text)
    return written


def names(found: Sequence[Section]) -> list[str]:
    """Of files: what a table is about, and where that is not enough, its settings too."""
    told = [json.dumps(section.settings, sort_keys=True, default=str) for section in found]
    return slugs([about(section) for section in found], told)


def caption(section: Section, cards: dict[str, Any]) -> str:
    title = cards.get(section.metric, {}).get("title")
    by = f"by {section.attribute}" if section.attribute else ""
    told = " ".join(filter(None, (str(title or section.metric), by)))
    return ": ".join(filter(None, (told, section.part)))


def to_csv(section: Section) -> str:
    """A line for each number, with all its digits; what is undefined is empty and has a reason."""
    every = _measurements(section)
    settings = list(dict.fromkeys(name for m in every for name in m.settings))
    head = [*_ABOUT, *_NUMBERS, *(SETTING + name for name in settings)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    for m in every:
        known = [getattr(m, name) for name in (*_ABOUT, *_NUMBERS)]
        writer.writerow([*known, *(_plain(m.settings.get(name)) for name in settings)])
    return text.getvalue()


def to_markdown(section: Section, title: str, name: str) -> str:
    shown = strongest(section, SHOWN_ITEMS)
    lines = [f"**{escape(title)}**", "", *pipes(*grid(shown, second=False)), ""]
    for note in _notes(shown, name):
        lines += [paragraph(note), ""]
    return "\n".join(lines)


def to_latex(section: Section, title: str, name: str) -> str:
    shown = strongest(section, SHOWN_ITEMS)
    head, lines = grid(shown, second=False)
    texts = 1 + shown.grouped + shown.has_items
    return latex.table(head, lines, texts=texts, caption=title, label=name, notes=_notes(shown, name))


def _notes(shown: Section, name: str) -> list[str]:
    """What stands below a table: what is not shown, what is undefined and why, what is too few, the settings."""
    hidden = [f"{shown.hidden:,} more rows are in {name}.csv."] if shown.hidden else []
    settings = [f"Settings: {settings_text(shown.settings)}."] if shown.settings else []
    return [*hidden, *shown.notes, *footnotes(shown.rows), *settings]


def _measurements(section: Section) -> list[Measurement]:
    """Every number once, in the order of the table; a count comes before its share."""
    found = [
        m
        for row in section.rows
        for term in section.terms
        for m in (row.beside.get(term), row.cells.get(term))
        if m is not None
    ]
    return list({m.id: m for m in found}.values())


def _plain(value: Any) -> Any:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
