"""Pictures for the live page: full-size ones from a folder, small ones from the results.

A request names an image, never a file. Files are those of a table that was made once, from what the folder
holds; a link that leads out of the folder is not followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from portrayal.errors import InputError, Problem, shown
from portrayal.results import PICTURES_FILE, ResultsFile

LARGEST = 64 << 20  # bytes; a larger file is no picture that a page shows

# How files begin whose pictures browsers show. Nothing here can hold a script, as SVG can.
_BEGINNINGS = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


def picture_type(data: bytes) -> str | None:
    """The content type by how the bytes begin, or None for anything that is no picture for a browser.

    >>> picture_type(b"GIF89a..."), picture_type(b"<svg onload=...>")
    ('image/gif', None)
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if data.startswith(beginning)), None)


class Images:
    """Full-size pictures of a folder, by image id."""

    def __init__(self, folder: Path | None = None, files: Mapping[str, Path] | None = None) -> None:
        self._root = None if folder is None else folder.resolve()
        self._files = dict(files or {})

    def __contains__(self, image: object) -> bool:
        return image in self._files

    def __len__(self) -> int:
        return len(self._files)

    def read(self, image: str) -> bytes | None:
        """The file of an image; None where there is none, or where its link leads out of the folder."""
        path = self._files.get(image)
        if path is None or self._root is None:
            return None
        try:
            # Asked every time: what was a file at the start may be a link by now.
            real = path.resolve(strict=True)
            if not real.is_relative_to(self._root) or not real.is_file() or real.stat().st_size > LARGEST:
                return None
            handle = os.open(real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
            with os.fdopen(handle, "rb") as file:
                return file.read(LARGEST)
        except (OSError, RuntimeError):  # gone, not ours to read, or a link to itself
            return None


class SmallPictures:
    """The small copies that results carry, read one by one from their file."""

    def __init__(self, results: ResultsFile) -> None:
        self._path = results.beside.get("pictures", results.path.parent / PICTURES_FILE)
        self._scan = results.scan("pictures")
        try:
            images = self._scan.select("image_id").collect().get_column("image_id").to_list()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._broken(error) from None
        self._places = {image: place for place, image in reversed(list(enumerate(images)))}

    def __contains__(self, image: object) -> bool:
        return image in self._places

    def read(self, image: str) -> bytes | None:
        place = self._places.get(image)
        if place is None:
            return None
        try:
            found = self._scan.slice(place, 1).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._broken(error) from None
        return found.item(0, "picture") if found.height else None

    def _broken(self, error: Exception) -> InputError:
        return InputError([Problem(str(self._path), "a Parquet file", shown(str(error)))])
