"""COCO annotation files: captions of people, or objects with their boxes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portrayal.errors import Problems, shown
from portrayal.study.formats.raw_table import NOTHING, RawTable
from portrayal.study.image_ids import image_id


def read_annotations(path: Path, problems: Problems, document: dict[str, Any]) -> RawTable:
    """The rows under `annotations`; category numbers become names, boxes become fractions of the image.

    An image listed under `images` without an annotation was annotated too: it holds none of the categories.
    """
    categories = {str(c.get("id")): c.get("name") for c in _objects(document.get("categories"))}
    sizes = {
        image_id(i.get("id")): (i.get("width"), i.get("height")) for i in _objects(document.get("images"))
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
            category, box = item["category_id"], item.get("bbox")
            if str(category) not in categories:
                problems.note(path, "a category_id listed under 'categories'", shown(category), place)
                continue
            if box is not None and not _is_box(box):
                problems.note(path, "bbox as four numbers", shown(box), place)
                continue
            row["label"] = categories[str(category)]
            row |= _fractions(box, sizes.get(image_id(row["image_id"])))
        else:
            problems.note(path, "a caption or a category_id", shown(item), place)
            continue
        where.append(number)
        rows.append(row)
    if categories:
        annotated = {image_id(item.get("image_id")) for item in _objects(document["annotations"])}
        for identifier in (known for known in sizes if known is not None and known not in annotated):
            where.append(len(document["annotations"]))
            rows.append({"image_id": identifier, "kind": NOTHING})
    return RawTable.of_rows(path, "annotation", where, rows)


def _objects(items: object) -> list[dict[str, Any]]:
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _is_box(box: object) -> bool:
    return isinstance(box, list) and len(box) == 4 and all(isinstance(side, int | float) for side in box)


def _fractions(box: list[float] | None, size: tuple[Any, Any] | None) -> dict[str, float]:
    """COCO boxes are in pixels, [x, y, width, height]; without the picture's size there is no fraction."""
    if box is None or size is None or not all(isinstance(side, int | float) and side > 0 for side in size):
        return {}
    width, height = size
    sides = zip(("x", "y", "width", "height"), box, (width, height, width, height), strict=True)
    # Annotators' boxes reach a little over the edge now and then.
    return {name: min(max(side / whole, 0.0), 1.0) for name, side, whole in sides}
