"""Small copies of a study's pictures, for a page that has to carry them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path

import polars as pl
from PIL import Image, ImageOps

from portrayal.results import PICTURES_SCHEMA

SIZE = 72
_MOST_PIXELS = 50_000_000  # a larger picture is not opened: it may be made to fill the memory


def thumbnails(pictures: Mapping[str, Path], images: Iterable[str], size: int = SIZE) -> pl.DataFrame:
    """`image_id` and a WebP picture for each of these images; one that cannot be read is left out."""
    found = [(image, _thumbnail(pictures[image], size)) for image in images if image in pictures]
    rows = [(image, small) for image, small in found if small is not None]
    return pl.DataFrame(rows, schema=PICTURES_SCHEMA, orient="row")


def _thumbnail(path: Path, size: int) -> bytes | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # checked by hand below
            with Image.open(path) as picture:
                if picture.width * picture.height > _MOST_PIXELS:
                    return None
                picture.draft("RGB", (size * 2, size * 2))
                small = ImageOps.exif_transpose(picture).convert("RGB")
                small.thumbnail((size, size))
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None
    written = io.BytesIO()
    small.save(written, "WEBP", quality=70)
    return written.getvalue()
