"""A new file of plain rows, CSV or JSON Lines by its ending."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from portrayal.errors import PortrayalError
from portrayal.files import replacing

ENDINGS = (".csv", ".jsonl")


def refuse_file(path: Path) -> None:
    """Before any work is done: the file must be new, and of an ending that is known."""
    if path.suffix.lower() not in ENDINGS:
        raise click.BadParameter(
            f"expected a file ending in {' or '.join(ENDINGS)}, got {path.name!r}.", param_hint="--out"
        )
    if path.exists():
        raise PortrayalError(f"{path} is already there; choose a new file.")


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Rows with the same columns, at least one."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix.lower() == ".csv":
            table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
        else:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def journal_beside(path: Path) -> Path:
    """Where a command keeps what is finished until the file is whole."""
    return path.with_name(f".{path.name}-journal")
