"""Everything that is printed goes through here. Names and captions are other people's text, never markup."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from portrayal.report.layout import Section, sections, undefined_reasons, with_interval
from portrayal.results import Results


def printable(text: object) -> str:
    """Without control characters, which a terminal would obey; line ends and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in str(text))


def say(text: object = "", style: str = "") -> None:
    Console(highlight=False, soft_wrap=True).print(Text(printable(text), style=style))


def raw(text: str) -> None:
    """Output that another program reads: exactly this text."""
    sys.stdout.write(text)
    sys.stdout.flush()


def errors(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text("error: ", style="bold red") + Text(printable(text))
    )


def warn(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(printable(text), style="yellow"))


def show_table(columns: list[str], rows: list[list[str]], numeric: set[int] | None = None) -> None:
    """A plain table; columns fold rather than lose text when the terminal is narrow."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index in (numeric or ()) else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    _console().print(table)


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
    if sum(widths) <= _console().width:
        show_table(columns, wide, set(range(len(head), len(columns))))
        return
    long = []
    for row in rows:
        for term, m in row.cells.items():
            about = [row.system or "", row.group or "all", *([row.item or "all"] if item else [])]
            long.append([*about, term, with_interval(m)])
    show_table([*head, "term", "value"], long, {len(head) + 1})


@contextmanager
def progress(what: str) -> Iterator[Progress | None]:
    """A bar on a terminal; elsewhere the caller gets None and prints plain lines."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        bar.add_task(what, total=None)
        yield bar


def _console() -> Console:
    # Piped output has no width of its own; 100 columns keep a table readable in a file.
    console = Console(highlight=False)
    return (
        console
        if console.is_terminal or "COLUMNS" in console._environ
        else Console(highlight=False, width=100)
    )
