"""Printing results as tables on the terminal."""

from __future__ import annotations

from portrayal.cli.console import COLUMN_GAP, console, echo, print_table
from portrayal.errors import counted
from portrayal.report.findings.findings import conclusions
from portrayal.report.tables.layout import (
    footnotes,
    format_cell,
    format_value,
    format_with_ci,
    make_tables,
    strongest_items,
    study_cautions,
)
from portrayal.report.tables.table import Table, TableRow
from portrayal.results import Results

MAX_ITEMS = 5  # words or objects per system and group


def print_results(results: Results, items: int = MAX_ITEMS, rest: str = "--format csv shows it") -> None:
    """Print a table per metric, with footnotes about undefined numbers and numbers with too little data.

    `items` limits the words or objects per system and group; `rest` says where the others are.
    """
    all_sections = make_tables(results)
    for number, full in enumerate(all_sections):
        if any(_same_metric(full, other) and other.side_by_side for other in all_sections[:number]):
            continue  # its headlines are in the table before it
        section = strongest_items(full, items)
        title = f"{section.metric} by {section.attribute}" if section.attribute else section.metric
        echo()
        echo(", ".join(filter(None, (title, section.subtitle))), style="bold")
        _print_section(section)
        if section.side_by_side:
            echo(f"The rest of each is in the results ({rest}).", style="dim")
        if section.n_hidden:
            echo(f"{section.n_hidden:,} more rows are in the results ({rest}).", style="dim")
        for reason in [*section.notes, *footnotes(section.rows)]:
            echo(reason, style="dim")


def print_findings(results: Results) -> None:
    """Print the findings of the page, or that there are none."""
    concluded = conclusions(results)
    corrected = f"(Holm, 5 %, {counted(concluded.n_comparisons, 'comparison')})"
    if not concluded.sentences:
        return
    echo(f"Findings {corrected}" if concluded.findings else f"No finding {corrected}.", style="bold")
    for finding in concluded.findings:
        echo(f"- {finding.text}")
    if concluded.findings:
        without = [
            f"{word} {', '.join(names)}"
            for word, names in (
                ("for", concluded.systems_without_finding),
                ("about", concluded.attributes_without_finding),
            )
            if names
        ]
        if without:
            echo(f"No finding {', and none '.join(without)}.", style="dim")
    echo()


def print_cautions(results: Results) -> None:
    """Print the cautions about the study."""
    for sentence in study_cautions(results.provenance):
        echo(f"Caution: {sentence}", style="yellow")


def _same_metric(section: Table, other: Table) -> bool:
    return (section.metric, section.attribute) == (other.metric, other.attribute)


def _print_section(section: Table) -> None:
    """Print a column per term, with CIs if the terminal is wide enough; a line per number if it is too narrow."""
    item = ["item"] if section.has_items else []
    head = [section.first_column, *([section.second_column] if section.has_second_column else []), *item]

    def row_labels(row: TableRow) -> list[str]:
        group = [row.group or "all"] if section.has_second_column else []
        return [row.system or "", *group, *([row.item or "all"] if item else [])]

    for formatter in (format_with_ci, format_value):
        lines = [
            [
                *row_labels(row),
                *(format_cell(row, t, formatter) for t in section.columns),
                *(row.p_and_q if section.has_p_values else ()),
                row.n,
            ]
            for row in section.rows
        ]
        columns = [*head, *section.columns, *(["p", "q"] if section.has_p_values else []), "n"]
        if (
            sum(max(len(line[i]) for line in [columns, *lines]) + COLUMN_GAP for i in range(len(columns)))
            <= console().width
        ):
            print_table(columns, lines, set(range(len(head), len(columns))))
            return
    long_rows = [
        [*row_labels(row), term, format_cell(row, term, format_with_ci)]
        for row in section.rows
        for term in row.cells
    ]
    print_table([*head, "system" if section.by_term else "term", "value"], long_rows, {len(head) + 1})
