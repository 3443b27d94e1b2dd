"""Normalisation of image ids, which files write in different ways."""

from __future__ import annotations

import re
from pathlib import Path

from portrayal.documents import is_unicode

# 42, "000000000042.jpg" and "COCO_val2014_000000000042.jpg" are the same image.
_COCO = re.compile(r"(?:.*[/\\])?(?:COCO_[a-z]+\d{4}_(\d{1,12})|(\d{12}))(?:\.(?:jpe?g|png))?", re.IGNORECASE)
_WHOLE = re.compile(r"(\d{1,15})\.0")  # what pandas writes for a whole number in a column with gaps

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff")


def image_id(value: object) -> str | None:
    """The id as text, with COCO file names reduced to their number; None if the value is not a valid id.

    >>> image_id("COCO_val2014_000000000042.jpg"), image_id(42), image_id("dog 7.png"), image_id(None)
    ('42', '42', 'dog 7.png', None)
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        return str(value) if value.bit_length() < 128 else None
    if isinstance(value, float):  # pandas turns whole numbers into floats where a column has gaps
        return str(int(value)) if value.is_integer() else None
    if not isinstance(value, str):
        return None
    text = value.strip()
    number = _COCO.fullmatch(text) or _WHOLE.fullmatch(text)
    if number:
        return str(int(next(digits for digits in number.groups() if digits)))
    return text if text and is_unicode(text) else None


def find_image_files(folder: Path) -> dict[str, Path]:
    """Image id to file for the images of a folder. The id is the file name with or without its suffix."""
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in IMAGE_SUFFIXES and path.is_file():
            for name in (path.name, path.stem):
                identifier = image_id(name)
                if identifier is not None:
                    files.setdefault(identifier, path)
    return files
