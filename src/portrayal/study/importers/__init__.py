"""Importers: convert users' files into a study."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from portrayal import plugins
from portrayal.errors import PortrayalError, Problems, unknown_name
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
    result = _find_importer(kind)(request, problems)
    request.group_names.check_used((*result.study.attribute_names, *result.study.ranked_attributes))
    return replace(result, study=replace(result.study, mapped=request.group_names.mapped))


def _find_importer(kind: str) -> Callable[[ImportRequest, Problems], ImportResult]:
    """Return the importer of that name: one of this package, or of a plug-in."""
    if kind in IMPORTERS:
        build: Callable[[ImportRequest, Problems], ImportResult] = importlib.import_module(
            IMPORTERS[kind][0]
        ).build
        return build
    plugin = plugins.find_plugin(plugins.IMPORTERS, kind)
    if plugin is None:
        names = [name for name, _ in plugins.plugin_names(plugins.IMPORTERS)]
        raise unknown_name("importer", kind, [*IMPORTERS, *names])
    if not callable(plugin.value):
        raise PortrayalError(str(plugin.failed("it is no function (request, problems)").problem))
    return plugin.value  # type: ignore[no-any-return]
