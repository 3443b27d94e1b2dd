"""Results and tables as Markdown. Names are escaped, since they come from users."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from portrayal.report.tables.layout import footnotes, make_tables, settings_text, text_grid
from portrayal.report.tables.table import Table
from portrayal.results import Results

_MARKUP_CHARACTERS = ("\\", "|", "<", "`", "*", "_", "[")
# Characters at the start of a line that make it a heading, a quotation, a list or a rule.
_LINE_START = re.compile(r"(\s*)([#+>=~-]|\d+(?=[.)]))")


def to_markdown(results: Results) -> str:
    """The results as Markdown: one table per metric and attribute, each with its settings and notes."""
    sections = []
    for table in make_tables(results):
        settings = [f"Settings: {settings_text(table.settings)}."] if table.settings else []
        notes = [*settings, *table.notes, *footnotes(table.rows)]
        sections.append(
            "\n".join(
                [
                    f"### {escape(table.heading)}",
                    "",
                    *table_lines(table),
                    *_with_blank_lines(map(escape, notes)),
                ]
            )
        )
    return "\n".join(sections)


def table_to_markdown(table: Table, title: str, notes: Iterable[str]) -> str:
    """The table as Markdown, with its title above and its notes below."""
    lines = table_lines(table, keep_second_column=False)
    return "\n".join([f"**{escape(title)}**", "", *lines, *_with_blank_lines(map(paragraph, notes))])


def table_lines(table: Table, keep_second_column: bool = True) -> list[str]:
    """The Markdown lines of a table, with an empty line at the end.

    An empty second column is dropped unless `keep_second_column` is set.
    """
    header, rows = text_grid(table, keep_second_column)
    separator = "| " + " | ".join("---" for _ in header) + " |"
    return [_row(header), separator, *map(_row, rows), ""]


def escape(text: str) -> str:
    """The text on one line, with its markup escaped, so that it can stand in a cell."""
    text = "".join(character if character.isprintable() else " " for character in text)
    for markup in _MARKUP_CHARACTERS:
        text = text.replace(markup, "\\" + markup)
    return text


def paragraph(text: str) -> str:
    """The text as a paragraph, escaped so that it is not read as a heading or a list."""
    return _LINE_START.sub(_escape_start, escape(text), count=1) if _LINE_START.match(text) else escape(text)


def code_block(text: str, language: str = "") -> list[str]:
    """The lines of a code block, whose fence is longer than any run of backticks in the text."""
    longest_run = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest_run + 1)
    return [fence + language, *text.splitlines(), fence]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def _with_blank_lines(lines: Iterable[str]) -> list[str]:
    """The lines with an empty line after each."""
    return [spaced_line for line in lines for spaced_line in (line, "")]


def _escape_start(match: re.Match[str]) -> str:
    """The start of a line with a backslash before the character, or after a number, that would start a block."""
    whitespace, marker = match.groups()
    return f"{whitespace}{marker}\\" if marker.isdigit() else f"{whitespace}\\{marker}"
