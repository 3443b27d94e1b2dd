"""COCO annotation files: human captions, or objects with boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import NO_LABEL, RawTable
from portrayal.study.image_ids import image_id


def read_annotations(path: Path, problems: Problems, document: dict[str, Any]) -> RawTable:
    """Read the rows under `annotations`. Category ids become names, boxes become fractions of the image.

    An image listed under `images` without an annotation was annotated too: it contains none of the categories.
    """
    categories = {str(c.get("id")): c.get("name") for c in _objects(document.get("categories"))}
    sizes = {
        image_id(i.get("id")): (i.get("width"), i.get("height")) for i in _objects(document.get("images"))
    }
    row_numbers: list[int] = []
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(document["annotations"], start=1):
        location = f"annotation {number:,}"
        if not isinstance(item, dict):
            problems.note(path, "a JSON object", shown(item), location)
            continue
        row = {"image_id": item.get("image_id")}
        if "caption" in item:
            row["caption"] = item["caption"]
        elif "category_id" in item:
            category, box = item["category_id"], item.get("bbox")
            if str(category) not in categories:
                problems.note(path, "a category_id listed under 'categories'", shown(category), location)
                continue
            if box is not None and not _is_box(box):
                problems.note(path, "bbox as four numbers", shown(box), location)
                continue
            row["label"] = categories[str(category)]
            row |= _fractions(box, sizes.get(image_id(row["image_id"])))
        else:
            problems.note(path, "a caption or a category_id", shown(item), location)
            continue
        row_numbers.append(number)
        rows.append(row)
    if categories:
        annotated = {image_id(item.get("image_id")) for item in _objects(document["annotations"])}
        for identifier in (known for known in sizes if known is not None and known not in annotated):
            row_numbers.append(len(document["annotations"]))
            rows.append({"image_id": identifier, "kind": NO_LABEL})
    return RawTable.of_rows(path, "annotation", row_numbers, rows)


def _objects(items: object) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _is_box(box: object) -> bool:
    return isinstance(box, list) and len(box) == 4 and all(isinstance(side, int | float) for side in box)


def _fractions(box: list[float] | None, size: tuple[Any, Any] | None) -> dict[str, float]:
    """A COCO box ([x, y, width, height] in pixels) as fractions; empty if the image size is unknown."""
    if box is None or size is None or not all(isinstance(side, int | float) and side > 0 for side in size):
        return {}
    width, height = size
    sides = zip(("x", "y", "width", "height"), box, (width, height, width, height), strict=True)
    # Annotated boxes sometimes exceed the image slightly.
    return {name: min(max(side / whole, 0.0), 1.0) for name, side, whole in sides}
