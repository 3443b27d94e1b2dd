"""One JSON document: an array of objects, an object {id: values}, or COCO annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portrayal.documents import Unreadable, parse_json
from portrayal.errors import Problems, shown
from portrayal.study.formats import coco
from portrayal.study.formats.raw_table import VALUES, RawTable, read_text


def read(path: Path, problems: Problems) -> RawTable:
    repeated: list[str] = []
    text = read_text(path, problems)
    try:
        document = parse_json(text, lambda pairs: _object(pairs, repeated))
    except Unreadable as error:
        raise problems.stop(path, "JSON", error.found, error.place) from None
    for key in repeated:
        problems.note(path, "each key once in an object", f"the key {shown(key)} again")
    if isinstance(document, list):
        return _array(path, problems, document)
    if not isinstance(document, dict):
        raise problems.stop(path, "an array of objects or an object", shown(document))
    if isinstance(document.get("annotations"), list):
        return coco.read_annotations(path, problems, document)
    return _mapping(path, document)


def _object(pairs: list[tuple[str, Any]], repeated: list[str]) -> dict[str, Any]:
    """Like dict(pairs), but a repeated key, of which a dict keeps one value only, is remembered."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        repeated.extend(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return made


def _array(path: Path, problems: Problems, items: list[Any]) -> RawTable:
    where: list[int] = []
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(items, start=1):
        if isinstance(item, dict):
            where.append(number)
            rows.append(item)
        else:
            problems.note(path, "a JSON object", shown(item), f"row {number:,}")
    return RawTable.of_rows(path, "row", where, rows)


def _mapping(path: Path, document: dict[str, Any]) -> RawTable:
    where = range(1, len(document) + 1)
    if document and all(isinstance(value, dict) for value in document.values()):
        rows = [{"image_id": key, **value} for key, value in document.items()]
        return RawTable.of_rows(path, "row", where, rows)
    columns = {"image_id": list(document), VALUES: list(document.values())}
    return RawTable(path, "row", where, columns)
