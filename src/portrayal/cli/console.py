"""Everything that is printed goes through here. Names and captions are other people's text, never markup."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PLAIN_LINES = 10  # of progress, where there is no terminal to draw a bar on
_LEAST = 4  # cells that another column of a table needs, with the gap before it
COLUMN_GAP = 2  # what stands between the columns of a table


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
    """A plain table; columns fold rather than lose text when the terminal is narrow.

    The first, which says what a row is about, does so only where it would take more than a third.
    """
    terminal = console()
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    cells = [[printable(cell).expandtabs() for cell in row] for row in rows]
    first = max(map(cell_len, [columns[0], *(row[0] for row in cells)]))
    whole = first <= terminal.width // 3 and first + _LEAST * (len(columns) - 1) <= terminal.width
    for index, column in enumerate(columns):
        justify: Literal["right", "left"] = "right" if index in (numeric or ()) else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=index == 0 and whole)
    for row in cells:
        table.add_row(*map(Text, row))
    terminal.print(table)


@contextmanager
def progress(
    what: str, *, kept: str | None = None, stages: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Gives a function to tell (step, done, of how many): a bar on a terminal, a few plain lines elsewhere.

    `kept` is the unit of work that is checkpointed ("tasks"): a command that is interrupted then says how far it got,
    until it calls `finished`. With `stages` it says at which step it stopped: counts begin anew with each, or are
    checkpointed now and then only.
    """
    if kept is not None:
        _checkpointed.text = f"Stopped. {RESUME}"
    terminal = Console(stderr=True)
    show: Callable[[str, int, int], None] = _tell_in_lines

    def report_progress(step: str, done: int, steps: int) -> None:
        if kept is not None:
            far = f"{done:,} of {steps:,} {kept}"
            counted = RESUME.replace(";", f" ({far} done);")
            _checkpointed.text = f"Stopped at {step}, {far}. {RESUME}" if stages else f"Stopped. {counted}"
        show(step, done, steps)

    if not terminal.is_terminal:
        yield report_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task(what, total=None)
        show = lambda step, done, steps: bar.update(task, description=step, completed=done, total=steps)  # noqa: E731
        yield report_progress


@dataclass
class _Checkpointed:
    """What is to be said of finished work when the command in progress is interrupted."""

    text: str = ""


RESUME = "Progress is checkpointed; run the same command again to resume."
_checkpointed = _Checkpointed()


def finished() -> None:
    """The results are written, so there is nothing left to resume."""
    _checkpointed.text = ""


def stopped() -> str:
    """What an interrupted command says."""
    return _checkpointed.text or "Stopped."


def show_cursor() -> None:
    """A bar hides it, and a command that is ended from outside cannot tidy up."""
    Console(stderr=True).show_cursor(True)


def _tell_in_lines(step: str, done: int, steps: int) -> None:
    if done == 0 or done == steps or done * PLAIN_LINES // steps > (done - 1) * PLAIN_LINES // steps:
        warn(f"[{done}/{steps}] {step}")


def console() -> Console:
    # Piped output has no width of its own; 100 columns keep a table readable in a file.
    made = Console(highlight=False)
    return made if made.is_terminal or "COLUMNS" in os.environ else Console(highlight=False, width=100)
