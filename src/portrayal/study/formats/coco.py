"""COCO annotation files: captions of people, or objects with their boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portrayal.errors import Problems, shown
from portrayal.study.formats.raw import RawTable


def read_annotations(path: Path, problems: Problems, document: dict[str, Any]) -> RawTable:
    """The rows under `annotations`; category numbers become names, boxes become fractions of the picture."""
    categories = {
        c["id"]: c["name"] for c in _objects(document.get("categories")) if "id" in c and "name" in c
    }
    sizes = {
        i["id"]: (i.get("width"), i.get("height")) for i in _objects(document.get("images")) if "id" in i
    }
    where: list[int] = []
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(document["annotations"], start=1):
        place = f"annotation {number:,}"
        if not isinstance(item, dict):
            problems.note(path, "a JSON object", shown(item), place)
            continue
        row = {"image_id": item.get("image_id")}
        if "caption" in item:
            row["caption"] = item["caption"]
        elif "category_id" in item:
            if item["category_id"] not in categories:
                problems.note(
                    path, "a category_id listed under 'categories'", shown(item["category_id"]), place
                )
                continue
            row["label"] = categories[item["category_id"]]
            row |= _fractions(item.get("bbox"), sizes.get(item.get("image_id")))
        else:
            problems.note(path, "a caption or a category_id", shown(item), place)
            continue
        where.append(number)
        rows.append(row)
    return RawTable.of_rows(path, "annotation", where, rows)


def _objects(items: object) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _fractions(box: object, size: tuple[Any, Any] | None) -> dict[str, float]:
    """COCO boxes are in pixels, [x, y, width, height]; without the picture's size there is no fraction."""
    if not isinstance(box, list) or len(box) != 4 or size is None or not all(size):
        return {}
    width, height = size
    scaled = (box[0] / width, box[1] / height, box[2] / width, box[3] / height)
    return dict(zip(("x", "y", "width", "height"), scaled, strict=True))
