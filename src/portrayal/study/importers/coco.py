"""COCO results files: one JSON array of {image_id, caption} per system."""

from __future__ import annotations

from portrayal.errors import Problems
from portrayal.study.importers import Imported, Request
from portrayal.study.importers.table import build_from


def build(request: Request, problems: Problems) -> Imported:
    return build_from(request, problems, (".json",))
