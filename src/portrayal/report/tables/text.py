"""Results as CSV and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence

from portrayal.report.tables.layout import cell, footnotes, sections, settings_text, with_interval
from portrayal.report.tables.table import Section
from portrayal.results import Results

_STARTS = re.compile(r"(\s*)([#+>=~-]|\d+(?=[.)]))")  # what makes a line more than a line


def to_csv(results: Results) -> str:
    """The long table, one line per measurement."""
    return results.frame().write_csv()


def to_markdown(results: Results) -> str:
    """One table per metric and attribute."""
    parts: list[str] = []
    for section in sections(results):
        lines = [f"### {escape(about(section))}", "", *pipes(*grid(section)), ""]
        if section.settings:
            lines += [f"Settings: {escape(settings_text(section.settings))}.", ""]
        for reason in [*section.notes, *footnotes(section.rows)]:
            lines += [escape(reason), ""]
        parts.append("\n".join(lines))
    return "\n".join(parts)


def about(section: Section) -> str:
    """What a table is about, in a few words."""
    return " · ".join(filter(None, (section.metric, section.attribute, section.part)))


def grid(section: Section, second: bool = True) -> tuple[list[str], list[list[str]]]:
    """The head of a table and its lines, without markup; without a `second` column where it would say nothing."""
    grouped = second or section.grouped
    head = [
        section.first,
        *([section.second] if grouped else []),
        *(["item"] if section.has_items else []),
        *section.terms,
        *(["p", "q"] if section.tests else []),
        "n",
    ]
    lines = [
        [
            row.system or "",
            *([row.group or "all"] if grouped else []),
            *([row.item or "all"] if section.has_items else []),
            *(cell(row, term, with_interval) for term in section.terms),
            *(row.chance if section.tests else ()),
            row.n,
        ]
        for row in section.rows
    ]
    return head, lines


def pipes(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table in Markdown."""
    rule = "| " + " | ".join("---" for _ in head) + " |"
    return [_line(head), rule, *(_line(line) for line in lines)]


def paragraph(text: str) -> str:
    """Other people's text as a line of its own, which must not become a heading or a list."""
    return _STARTS.sub(_as_text, escape(text), count=1) if _STARTS.match(text) else escape(text)


def fenced(text: str, language: str = "") -> list[str]:
    """Text as it is, between fences that nothing in it can close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence + language, *text.splitlines(), fence]


def _as_text(found: re.Match[str]) -> str:
    space, mark = found.groups()
    return f"{space}{mark}\\" if mark.isdigit() else f"{space}\\{mark}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(escape(cell) for cell in cells) + " |"


def escape(text: str) -> str:
    """Names come from users: they must not end a cell, start a line, or be read as markup."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    for mark in ("\\", "|", "<", "`", "*", "_", "["):
        text = text.replace(mark, "\\" + mark)
    return text
