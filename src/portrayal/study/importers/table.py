"""Captions in any tabular file; several files, or a folder of them, are several systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from portrayal.errors import PortrayalError, Problems
from portrayal.study import tables
from portrayal.study.formats import ENDINGS, read_raw
from portrayal.study.importers import Imported, Request
from portrayal.study.importers.assemble import assemble


def build(request: Request, problems: Problems) -> Imported:
    return build_from(request, problems, ENDINGS)


def build_from(request: Request, problems: Problems, endings: Sequence[str]) -> Imported:
    parts = []
    for system, path in system_files(request.sources, endings):
        parts.append(tables.captions(read_raw(path, problems), system, problems))
    captions = pl.concat(parts)
    tables.refuse_repeats(captions, ", ".join(request.sources), problems)
    return assemble(request, problems, captions)


def system_files(sources: Sequence[str], endings: Sequence[str]) -> list[tuple[str, Path]]:
    """(system, file) for sources that are files, folders, or NAME=FILE."""
    found: list[tuple[str, Path]] = []
    for source in sources:
        name, equals, rest = source.partition("=")
        if equals and not Path(source).exists():
            found.append((name, Path(rest)))
        elif Path(source).is_dir():
            inside = [path for path in sorted(Path(source).iterdir()) if path.suffix.lower() in endings]
            if not inside:
                raise PortrayalError(f"The folder {source} holds no file ending in {', '.join(endings)}.")
            found.extend((path.stem, path) for path in inside)
        else:
            found.append((Path(source).stem, Path(source)))
    if not found:
        raise PortrayalError("Name at least one file with captions.")
    for _, path in found:
        if path.suffix.lower() not in endings:
            raise PortrayalError(f"{path}: expected a file ending in {', '.join(endings)}.")
    return found
