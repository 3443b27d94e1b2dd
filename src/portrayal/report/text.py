"""Results as CSV and Markdown."""

from __future__ import annotations

from portrayal.report.layout import cell, footnotes, sections, settings_text, with_interval
from portrayal.results import Results


def to_csv(results: Results) -> str:
    """The long table, one line per measurement."""
    return results.frame().write_csv()


def to_markdown(results: Results) -> str:
    """One table per metric and attribute."""
    parts: list[str] = []
    for section in sections(results):
        about = " · ".join(filter(None, (section.metric, section.attribute, section.part)))
        head = [
            section.first,
            section.second,
            *(["item"] if section.has_items else []),
            *section.terms,
            *(["p", "q"] if section.tests else []),
            "n",
        ]
        lines = [f"### {about}", "", _line(head), _line(["---"] * len(head))]
        for row in section.rows:
            cells = [cell(row, term, with_interval) for term in section.terms]
            item = [row.item or "all"] if section.has_items else []
            lines.append(
                _line(
                    [
                        row.system or "",
                        row.group or "all",
                        *item,
                        *cells,
                        *(row.chance if section.tests else ()),
                        row.n,
                    ]
                )
            )
        lines.append("")
        if section.settings:
            lines += [f"Settings: {_escape(settings_text(section.settings))}.", ""]
        for reason in [*section.notes, *footnotes(section.rows)]:
            lines += [_escape(reason), ""]
        parts.append("\n".join(lines))
    return "\n".join(parts)


def _line(cells: list[str]) -> str:
    return "| " + " | ".join(_escape(cell) for cell in cells) + " |"


def _escape(text: str) -> str:
    """Names come from users: they must not end a cell, start a line, or be read as markup."""
    text = "".join(letter if letter.isprintable() else " " for letter in text)
    for mark in ("\\", "|", "<", "`", "*", "_", "["):
        text = text.replace(mark, "\\" + mark)
    return text
