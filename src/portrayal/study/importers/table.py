"""Captions in any tabular file; several files, or a folder of them, are several systems."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from portrayal.errors import Problems
from portrayal.study import consistency, tables
from portrayal.study.formats import ENDINGS, read_raw
from portrayal.study.importers import Imported, Request
from portrayal.study.importers.assemble import assemble
from portrayal.study.importers.sources import system_files


def build(request: Request, problems: Problems) -> Imported:
    return build_from(request, problems, ENDINGS)


def build_from(request: Request, problems: Problems, endings: Sequence[str]) -> Imported:
    parts = [pl.DataFrame(schema=tables.CAPTIONS)]
    # Rankings may come alone: a search writes no captions.
    for system, path in (
        system_files(request.sources, endings) if request.sources or not request.rankings else ()
    ):
        parts.append(tables.captions(read_raw(path, problems), system, problems))
    captions = pl.concat(parts)
    consistency.refuse_repeats(captions, ", ".join(request.sources), problems)
    return assemble(request, problems, captions)
