"""Results as tables on the terminal."""

from __future__ import annotations

from portrayal.cli.console import console, say, show_table
from portrayal.report.layout import Section, sections, undefined_reasons, with_interval
from portrayal.results import Results


def show_results(results: Results, groups: bool = True) -> None:
    """Each metric as a table with a column per term, or as a long one where the terminal is too narrow."""
    for section in sections(results):
        title = f"{section.metric} by {section.attribute}" if section.attribute else section.metric
        say()
        say(title, style="bold")
        _show_section(section, groups)
        for reason in undefined_reasons(section.rows):
            say(reason, style="dim")


def _show_section(section: Section, groups: bool) -> None:
    rows = [row for row in section.rows if groups or row.group is None]
    item = ["item"] if section.has_items else []
    head = ["system", "group", *item]
    wide = []
    for row in rows:
        about = [row.system or "", row.group or "all", *([row.item or "all"] if item else [])]
        wide.append(about + [with_interval(row.cells[t]) if t in row.cells else "" for t in section.terms])
    columns = head + section.terms
    widths = [max(len(line[i]) for line in [columns, *wide]) + 1 for i in range(len(columns))]
    if sum(widths) <= console().width:
        show_table(columns, wide, set(range(len(head), len(columns))))
        return
    long = []
    for row in rows:
        for term, m in row.cells.items():
            about = [row.system or "", row.group or "all", *([row.item or "all"] if item else [])]
            long.append([*about, term, with_interval(m)])
    show_table([*head, "term", "value"], long, {len(head) + 1})
