"""Results and tables as Markdown. Names are escaped, since they come from users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from portrayal.report.tables.layout import footnotes, make_tables, settings_text, text_grid
from portrayal.report.tables.table import Table
from portrayal.results import Results

_MARKUP = ("\\", "|", "<", "`", "*", "_", "[")
# What makes a line a heading, a quotation, a list or a rule.
_LINE_START = re.compile(r"(\s*)([#+>=~-]|\d+(?=[.)]))")


def to_markdown(results: Results) -> str:
    """One table per metric and attribute, each with its settings and notes."""
    parts = []
    for table in make_tables(results):
        settings = [f"Settings: {settings_text(table.settings)}."] if table.settings else []
        notes = [*settings, *table.notes, *footnotes(table.rows)]
        parts.append(
            "\n".join([f"### {escape(table.heading)}", "", *table_lines(table), *_spaced(map(escape, notes))])
        )
    return "\n".join(parts)


def table_to_markdown(table: Table, title: str, notes: Iterable[str]) -> str:
    """A table with its title above and its notes below."""
    lines = table_lines(table, keep_second_column=False)
    return "\n".join([f"**{escape(title)}**", "", *lines, *_spaced(map(paragraph, notes))])


def table_lines(table: Table, keep_second_column: bool = True) -> list[str]:
    """The lines of a table and an empty one; without the second column if that is empty and not to be kept."""
    head, rows = text_grid(table, keep_second_column)
    rule = "| " + " | ".join("---" for _ in head) + " |"
    return [_row(head), rule, *map(_row, rows), ""]


def escape(text: str) -> str:
    """A text that ends no cell, starts no line and holds no markup."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    for mark in _MARKUP:
        text = text.replace(mark, "\\" + mark)
    return text


def paragraph(text: str) -> str:
    """A text as a line of its own that is neither a heading nor a list."""
    return _LINE_START.sub(_escape_start, escape(text), count=1) if _LINE_START.match(text) else escape(text)


def fenced(text: str, language: str = "") -> list[str]:
    """A code block with a fence that is longer than any in the text."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *text.splitlines(), fence]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def _spaced(lines: Iterable[str]) -> list[str]:
    return [part for line in lines for part in (line, "")]


def _escape_start(match: re.Match[str]) -> str:
    space, mark = match.groups()
    return f"{space}{mark}\\" if mark.isdigit() else f"{space}\\{mark}"
