"""Importers: convert users' files into a study."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from portrayal.errors import Problems, unknown_name
from portrayal.study.group_names import GroupNames
from portrayal.study.study import Study


@dataclass(frozen=True)
class ImportRequest:
    """The files and options of an import."""

    sources: Sequence[str]
    references: Path | None = None
    attributes: Path | None = None
    objects: Path | None = None
    objects_source: str | None = None  # labeller of a file without that column
    rankings: Sequence[str] = ()  # files, folders of them, or NAME=FILE, as for captions
    images: Path | None = None
    attribute_names: Sequence[str] = ()
    group_names: GroupNames = field(default_factory=GroupNames)  # maps label columns and values
    name: str = "study"

    def attribute_columns(self, columns: Collection[str]) -> list[str]:
        """The distinct columns that `attribute_names` refers to."""
        return list(
            dict.fromkeys(self.group_names.find_column(name, columns) for name in self.attribute_names)
        )


@dataclass
class ImportResult:
    """An imported study, and notes about what was left out."""

    study: Study
    notes: list[str] = field(default_factory=list)


IMPORTERS = {
    "table": (
        "portrayal.study.importers.table",
        "CSV, TSV, JSON, JSON Lines or Parquet: one row per caption",
    ),
    "coco": (
        "portrayal.study.importers.coco",
        "COCO results JSON; references and objects as COCO annotations",
    ),
    "lic": (
        "portrayal.study.importers.lic",
        "the public LIC data: pickled entries, vocabularies, the age CSV",
    ),
    "gender-score": (
        "portrayal.study.importers.gender_score",
        "folders of the Gender Score's authors: captions, objects and confidences line by line; and captions of others",
    ),
}


def run_importer(kind: str, request: ImportRequest, problems: Problems) -> ImportResult:
    """Run the importer of that name, collecting problems for the caller to settle."""
    if kind not in IMPORTERS:
        raise unknown_name("importer", kind, IMPORTERS)
    module = importlib.import_module(IMPORTERS[kind][0])
    result: ImportResult = module.build(request, problems)
    request.group_names.check_used((*result.study.attribute_names, *result.study.ranked_attributes))
    return replace(result, study=replace(result.study, mapped=request.group_names.mapped))
