"""Images for the live page: full-size ones from a folder, thumbnails from the results.

A request names an image, never a file. The files were listed once, at the start; links that lead out of the folder are
not followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from portrayal.errors import InputError, Problem, shown
from portrayal.results import THUMBNAILS_FILE, ResultsFile

MAX_BYTES = 64 << 20  # a larger file is not served

# The first bytes of image formats that browsers show. SVG is not among them, since it can hold scripts.
_SIGNATURES = (
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


def image_media_type(data: bytes) -> str | None:
    """The media type by the first bytes, or None if the data are no image that browsers show.

    >>> image_media_type(b"GIF89a..."), image_media_type(b"<svg onload=...>")
    ('image/gif', None)
    """
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _SIGNATURES if data.startswith(beginning)), None)


class ImageFolder:
    """Full-size images of a folder, by image id."""

    def __init__(self, folder: Path | None = None, files: Mapping[str, Path] | None = None) -> None:
        self._root = None if folder is None else folder.resolve()
        self._files = dict(files or {})

    def __contains__(self, image: object) -> bool:
        return image in self._files

    def __len__(self) -> int:
        return len(self._files)

    def read(self, image: str) -> bytes | None:
        """The bytes of an image; None if there is none or its link leads out of the folder."""
        path = self._files.get(image)
        if path is None or self._root is None:
            return None
        try:
            # Checked on every request: the file may have been replaced by a link.
            real = path.resolve(strict=True)
            if not real.is_relative_to(self._root) or not real.is_file() or real.stat().st_size > MAX_BYTES:
                return None
            handle = os.open(real, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
            with os.fdopen(handle, "rb") as file:
                return file.read(MAX_BYTES)
        except (OSError, RuntimeError):  # gone, not readable, or a link to itself
            return None


class Thumbnails:
    """The thumbnails of the results, read one by one from their file."""

    def __init__(self, results: ResultsFile) -> None:
        self._path = results.files.get("thumbnails", results.path.parent / THUMBNAILS_FILE)
        self._scan = results.scan("thumbnails")
        try:
            images = self._scan.select("image_id").collect().get_column("image_id").to_list()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._broken(error) from None
        self._indices = {image: index for index, image in reversed(list(enumerate(images)))}

    def __contains__(self, image: object) -> bool:
        return image in self._indices

    def read(self, image: str) -> bytes | None:
        index = self._indices.get(image)
        if index is None:
            return None
        try:
            row = self._scan.slice(index, 1).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise self._broken(error) from None
        return row.item(0, "image") if row.height else None

    def _broken(self, error: Exception) -> InputError:
        return InputError([Problem(str(self._path), "a Parquet file", shown(str(error)))])
