"""COCO results files: one JSON array of {image_id, caption} per system."""

from __future__ import annotations

from portrayal.errors import Problems
from portrayal.study.importers import ImportRequest, ImportResult
from portrayal.study.importers.table import build_from


def build(request: ImportRequest, problems: Problems) -> ImportResult:
    return build_from(request, problems, (".json",))
