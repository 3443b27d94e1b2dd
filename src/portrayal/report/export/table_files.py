"""Every table of the page as files: CSV for programs, Markdown for pages, LaTeX for papers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from portrayal.files import write_text
from portrayal.report.cards import metric_cards
from portrayal.report.export.slugs import slugs
from portrayal.report.page.page import SHOWN_ITEMS
from portrayal.report.tables.csv import table_to_csv
from portrayal.report.tables.latex import table_to_latex
from portrayal.report.tables.layout import footnotes, make_tables, settings_text, strongest_items
from portrayal.report.tables.markdown import table_to_markdown
from portrayal.report.tables.table import Table
from portrayal.results import Results


def write_tables(results: Results, folder: Path) -> list[Path]:
    """Write NAME.csv, NAME.md and NAME.tex for each table. Returns the paths."""
    tables = make_tables(results)
    cards = metric_cards(results)
    written = []
    for name, table in zip(file_names(tables), tables, strict=True):
        title = table_caption(table, cards)
        shown = strongest_items(table, SHOWN_ITEMS)
        notes = _notes(shown, name)
        texts = {
            "csv": table_to_csv(table),
            "md": table_to_markdown(shown, title, notes),
            "tex": table_to_latex(shown, title, name, notes),
        }
        for suffix, text in texts.items():
            written.append(folder / f"{name}.{suffix}")
            write_text(written[-1], text)
    return written


def file_names(tables: Sequence[Table]) -> list[str]:
    """A name for each table from its heading, with a digest of its settings where headings are equal."""
    settings = [json.dumps(table.settings, sort_keys=True, default=str) for table in tables]
    return slugs([table.heading for table in tables], settings)


def table_caption(table: Table, cards: dict[str, Any]) -> str:
    """The metric's title, the attribute and the subtitle."""
    title = cards.get(table.metric, {}).get("title")
    by = f"by {table.attribute}" if table.attribute else ""
    caption = " ".join(filter(None, (str(title or table.metric), by)))
    return ": ".join(filter(None, (caption, table.subtitle)))


def _notes(shown: Table, name: str) -> list[str]:
    """The notes below a table: hidden rows, undefined values with their reasons, too few images, settings."""
    hidden = [f"{shown.n_hidden:,} more rows are in {name}.csv."] if shown.n_hidden else []
    settings = [f"Settings: {settings_text(shown.settings)}."] if shown.settings else []
    return [*hidden, *shown.notes, *footnotes(shown.rows), *settings]
