"""Thumbnails of a study's images, for embedding in the report page."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl
from PIL import Image, ImageOps

from portrayal.results import THUMBNAILS_SCHEMA

THUMBNAIL_SIZE = 72
_MAX_PIXELS = 50_000_000  # larger images are not opened: they could exhaust the memory


def thumbnails(
    image_files: Mapping[str, Path], images: Iterable[str], size: int = THUMBNAIL_SIZE
) -> pl.DataFrame:
    """Create WebP thumbnails.

    Parameters
    ----------
    image_files : mapping of str to Path
        Image files by image id.
    images : iterable of str
        Image ids. Images that are missing or cannot be read are left out.
    size : int
        Maximum width and height in pixels.

    Returns
    -------
    polars.DataFrame
        `image_id` and the encoded thumbnail.
    """
    encoded = [(image, _thumbnail(image_files[image], size)) for image in images if image in image_files]
    rows = [(image, data) for image, data in encoded if data is not None]
    return pl.DataFrame(rows, schema=THUMBNAILS_SCHEMA, orient="row")


def _thumbnail(path: Path, size: int) -> bytes | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # checked below
            with Image.open(path) as image:
                if image.width * image.height > _MAX_PIXELS:
                    return None
                image.draft("RGB", (size * 2, size * 2))
                thumbnail = ImageOps.exif_transpose(image).convert("RGB")
                thumbnail.thumbnail((size, size))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    buffer = io.BytesIO()
    thumbnail.save(buffer, "WEBP", quality=70)
    return buffer.getvalue()
