"""Writing rows to a new CSV or JSON Lines file, by file extension."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from portrayal.errors import PortrayalError
from portrayal.files import replacing

ENDINGS = (".csv", ".jsonl")


def require_new_file(path: Path) -> None:
    """Raise an error, before any work is done, if the file exists or its extension is unknown."""
    if path.suffix.lower() not in ENDINGS:
        raise click.BadParameter(
            f"expected a file ending in {' or '.join(ENDINGS)}, got {path.name!r}.", param_hint="--out"
        )
    if path.exists():
        raise PortrayalError(f"{path} is already there; choose a new file.")


def write_rows(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write one or more rows that have the same columns."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        if path.suffix.lower() == ".csv":
            table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
        else:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def checkpoint_folder(path: Path) -> Path:
    """Return the folder of checkpoints that a command uses until the output file is complete."""
    return path.with_name(f".{path.name}-checkpoint")
