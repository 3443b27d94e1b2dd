"""Captions in any tabular file; several files, or a folder of them, are several systems."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from portrayal.errors import Problems
from portrayal.study import consistency, tables
from portrayal.study.formats import SUFFIXES, read_raw
from portrayal.study.importers import ImportRequest, ImportResult
from portrayal.study.importers.assemble import assemble
from portrayal.study.importers.sources import system_files


def build(request: ImportRequest, problems: Problems) -> ImportResult:
    return build_from(request, problems, SUFFIXES)


def build_from(request: ImportRequest, problems: Problems, endings: Sequence[str]) -> ImportResult:
    parts = [pl.DataFrame(schema=tables.CAPTIONS)]
    # Rankings may be imported without captions.
    for system, path in (
        system_files(request.sources, endings) if request.sources or not request.rankings else ()
    ):
        parts.append(tables.parse_captions(read_raw(path, problems), system, problems))
    captions = pl.concat(parts)
    consistency.refuse_duplicates(captions, ", ".join(request.sources), problems)
    return assemble(request, problems, captions)
