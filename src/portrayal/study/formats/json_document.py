"""One JSON document: an array of objects, an object {id: values}, or COCO annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portrayal.documents import DocumentError, parse_json
from portrayal.errors import Problems, shown
from portrayal.study.formats import coco_annotations
from portrayal.study.formats.raw_table import VALUES_COLUMN, RawTable, read_text


def read(path: Path, problems: Problems) -> RawTable:
    repeated: list[str] = []
    text = read_text(path, problems)
    try:
        document = parse_json(text, lambda pairs: _collect_object(pairs, repeated))
    except DocumentError as error:
        raise problems.stop(path, "JSON", error.found, error.location) from None
    for key in repeated:
        problems.note(path, "each key once in an object", f"the key {shown(key)} again")
    if isinstance(document, list):
        return _array(path, problems, document)
    if not isinstance(document, dict):
        raise problems.stop(path, "an array of objects or an object", shown(document))
    if isinstance(document.get("annotations"), list):
        return coco_annotations.read_annotations(path, problems, document)
    return _mapping(path, document)


def _collect_object(pairs: list[tuple[str, Any]], repeated: list[str]) -> dict[str, Any]:
    """Like dict(pairs), but collects repeated keys, of which a dict keeps the last value only."""
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        repeated.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return result


def _array(path: Path, problems: Problems, items: list[Any]) -> RawTable:
    row_numbers: list[int] = []
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, dict):
            row_numbers.append(number)
            rows.append(item)
        else:
            problems.note(path, "a JSON object", shown(item), f"row {number:,}")
    return RawTable.of_rows(path, "row", row_numbers, rows)


def _mapping(path: Path, document: dict[str, Any]) -> RawTable:
    row_numbers = range(1, len(document) + 1)
    if document and all(isinstance(value, dict) for value in document.values()):
        rows = [{"image_id": key, **value} for key, value in document.items()]
        return RawTable.of_rows(path, "row", row_numbers, rows)
    columns = {"image_id": list(document), VALUES_COLUMN: list(document.values())}
    return RawTable(path, "row", row_numbers, columns)
