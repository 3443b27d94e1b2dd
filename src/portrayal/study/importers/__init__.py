"""Importers: what people already have, made into a study."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from portrayal.errors import Problems, unknown_name
from portrayal.study.group_names import GroupNames
from portrayal.study.study import Study


@dataclass(frozen=True)
class Request:
    """What the user asked an importer to read."""

    sources: Sequence[str]
    references: Path | None = None
    attributes: Path | None = None
    objects: Path | None = None
    objects_source: str | None = None  # who labelled them, where their file does not say
    rankings: Sequence[str] = ()  # files, folders of them, or NAME=FILE, as for captions
    images: Path | None = None
    attribute_names: Sequence[str] = ()
    meaning: GroupNames = field(default_factory=GroupNames)  # of columns of labels and their values
    name: str = "study"

    def named(self, columns: Collection[str]) -> list[str]:
        """Which columns `attribute_names` means, each once."""
        return list(dict.fromkeys(self.meaning.column(name, columns) for name in self.attribute_names))


@dataclass
class Imported:
    """The study an importer made, and what it left out, in sentences."""

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


def run(kind: str, request: Request, problems: Problems) -> Imported:
    """Import with the importer of that name; problems are noted, and the caller settles them."""
    if kind not in IMPORTERS:
        raise unknown_name("importer", kind, IMPORTERS)
    module = importlib.import_module(IMPORTERS[kind][0])
    made: Imported = module.build(request, problems)
    request.meaning.check_used((*made.study.attribute_names, *made.study.ranked_attributes))
    return replace(made, study=replace(made.study, mapped=request.meaning.mapped))
