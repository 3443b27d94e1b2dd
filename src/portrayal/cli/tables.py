"""Results as tables on the terminal."""

from __future__ import annotations

from portrayal.cli.console import COLUMN_GAP, console, say, show_table
from portrayal.errors import counted
from portrayal.report.findings.findings import conclusions
from portrayal.report.tables.layout import (
    bare,
    caution_sentences,
    cell,
    footnotes,
    sections,
    strongest,
    with_interval,
)
from portrayal.report.tables.table import Row, Section
from portrayal.results import Results

SHOWN_ITEMS = 5  # words or objects for each system and group


def show_results(results: Results, items: int = SHOWN_ITEMS, rest: str = "--format csv shows it") -> None:
    """Each metric as a table, with what is undefined or rests on too little said below it.

    `items` limits the words or objects of each system and group; `rest` says where the others are.
    """
    found = sections(results)
    for number, whole in enumerate(found):
        if any(_same(whole, other) and other.side_by_side for other in found[:number]):
            continue  # its headlines stand in the table before it
        section = strongest(whole, items)
        title = f"{section.metric} by {section.attribute}" if section.attribute else section.metric
        say()
        say(", ".join(filter(None, (title, section.part))), style="bold")
        _show_section(section)
        if section.side_by_side:
            say(f"The rest of each is in the results ({rest}).", style="dim")
        if section.hidden:
            say(f"{section.hidden:,} more rows are in the results ({rest}).", style="dim")
        for reason in [*section.notes, *footnotes(section.rows)]:
            say(reason, style="dim")


def show_findings(results: Results) -> None:
    """What the page calls findings, or that there are none."""
    concluded = conclusions(results)
    corrected = f"(Holm, 5 %, {counted(concluded.comparisons, 'comparison')})"
    if not concluded.sentences:
        return
    say(f"Findings {corrected}" if concluded.findings else f"No finding {corrected}.", style="bold")
    for finding in concluded.findings:
        say(f"- {finding.text}")
    if concluded.findings:
        nothing = [
            f"{word} {', '.join(names)}"
            for word, names in (
                ("for", concluded.without_finding),
                ("about", concluded.attributes_without_finding),
            )
            if names
        ]
        if nothing:
            say(f"No finding {', and none '.join(nothing)}.", style="dim")
    say()


def show_cautions(results: Results) -> None:
    """What a reader must know of the study, before the tables' own footnotes are forgotten."""
    for sentence in caution_sentences(results.provenance):
        say(f"Caution: {sentence}", style="yellow")


def _same(one: Section, other: Section) -> bool:
    return (one.metric, one.attribute) == (other.metric, other.attribute)


def _show_section(section: Section) -> None:
    """A column per term, as precise as the terminal is wide; a line per number where it is too narrow for that."""
    item = ["item"] if section.has_items else []
    head = [section.first, *([section.second] if section.grouped else []), *item]

    def about(row: Row) -> list[str]:
        whom = [row.group or "all"] if section.grouped else []
        return [row.system or "", *whom, *([row.item or "all"] if item else [])]

    for write in (with_interval, bare):
        lines = [
            [
                *about(row),
                *(cell(row, t, write) for t in section.terms),
                *(row.chance if section.tests else ()),
                row.n,
            ]
            for row in section.rows
        ]
        columns = [*head, *section.terms, *(["p", "q"] if section.tests else []), "n"]
        if (
            sum(max(len(line[i]) for line in [columns, *lines]) + COLUMN_GAP for i in range(len(columns)))
            <= console().width
        ):
            show_table(columns, lines, set(range(len(head), len(columns))))
            return
    long = [[*about(row), term, cell(row, term, with_interval)] for row in section.rows for term in row.cells]
    show_table([*head, "system" if section.by_term else "term", "value"], long, {len(head) + 1})
