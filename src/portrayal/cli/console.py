"""Terminal output. All printing goes through here: names and captions are untrusted text, never markup."""

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

PLAIN_PROGRESS_LINES = 10  # progress lines where there is no terminal to draw a bar on
_MIN_CELLS = 4  # minimum width of each further column of a table, with the gap before it
COLUMN_GAP = 2  # spaces between the columns of a table


def printable(text: object) -> str:
    """Return the text with control characters replaced, since a terminal obeys them; line ends and tabs stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in str(text))


def echo(text: object = "", style: str = "") -> None:
    Console(highlight=False, soft_wrap=True).print(Text(printable(text), style=style))


def write_raw(text: str) -> None:
    """Write exactly this text to stdout, for output that another program parses."""
    sys.stdout.write(text)
    sys.stdout.flush()


def print_error(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text("error: ", style="bold red") + Text(printable(text))
    )


def print_warning(text: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(printable(text), style="yellow"))


def print_table(columns: list[str], rows: list[list[str]], numeric: set[int] | None = None) -> None:
    """Print a plain table; columns wrap rather than lose text when the terminal is narrow.

    The first column, which labels the row, wraps only if it would take more than a third of the width.
    """
    terminal = console()
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    cells = [[printable(cell).expandtabs() for cell in row] for row in rows]
    first_width = max(map(cell_len, [columns[0], *(row[0] for row in cells)]))
    keep_whole = (
        first_width <= terminal.width // 3 and first_width + _MIN_CELLS * (len(columns) - 1) <= terminal.width
    )
    for index, column in enumerate(columns):
        justify: Literal["right", "left"] = "right" if index in (numeric or ()) else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=index == 0 and keep_whole)
    for row in cells:
        table.add_row(*map(Text, row))
    terminal.print(table)


@contextmanager
def progress(
    description: str, *, unit: str | None = None, stages: bool = False
) -> Iterator[Callable[[str, int, int], None]]:
    """Yield a progress function (step, done, total): a bar on a terminal, a few plain lines elsewhere.

    `unit` names the checkpointed unit of work ("tasks"). If it is given, an interrupted command reports how far it
    got, until it calls `clear_interrupt_message`. With `stages` it also reports the step where it stopped, because
    counts restart with each step or checkpoints are written only now and then.
    """
    if unit is not None:
        _message.text = f"Stopped. {RESUME}"
    terminal = Console(stderr=True)
    listener: Callable[[str, int, int], None] = _print_progress_line

    def report_progress(step: str, done: int, steps: int) -> None:
        if unit is not None:
            position = f"{done:,} of {steps:,} {unit}"
            resume = RESUME.replace(";", f" ({position} done);")
            _message.text = f"Stopped at {step}, {position}. {RESUME}" if stages else f"Stopped. {resume}"
        listener(step, done, steps)

    if not terminal.is_terminal:
        yield report_progress
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal, transient=True) as bar:
        task = bar.add_task(description, total=None)
        listener = lambda step, done, steps: bar.update(task, description=step, completed=done, total=steps)  # noqa: E731
        yield report_progress


@dataclass
class _InterruptMessage:
    """What to print about checkpointed work if the running command is interrupted."""

    text: str = ""


RESUME = "Progress is checkpointed; run the same command again to resume."
_message = _InterruptMessage()


def clear_interrupt_message() -> None:
    """Forget the resume hint: the results are written, so there is nothing left to resume."""
    _message.text = ""


def interrupt_message() -> str:
    """Return what an interrupted command prints."""
    return _message.text or "Stopped."


def show_cursor() -> None:
    """Show the cursor again: a progress bar hides it, and a killed command cannot clean up."""
    Console(stderr=True).show_cursor(True)


def _print_progress_line(step: str, done: int, steps: int) -> None:
    if (
        done == 0
        or done == steps
        or done * PLAIN_PROGRESS_LINES // steps > (done - 1) * PLAIN_PROGRESS_LINES // steps
    ):
        print_warning(f"[{done}/{steps}] {step}")


def console() -> Console:
    # Piped output has no width of its own; 100 columns keep a table readable in a file.
    terminal = Console(highlight=False)
    return (
        terminal if terminal.is_terminal or "COLUMNS" in os.environ else Console(highlight=False, width=100)
    )
