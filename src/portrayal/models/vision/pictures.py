"""Reading a picture from a file that others made."""

from __future__ import annotations

import warnings
from pathlib import Path

from PIL import Image, ImageOps

from portrayal.errors import InputError, Problem

_MOST_PIXELS = 50_000_000  # a larger picture is not opened: it may be made to fill the memory
_NOT_A_PICTURE = (OSError, ValueError, SyntaxError, Image.DecompressionBombError)  # what Pillow raises


def read_picture(path: Path) -> Image.Image:
    """In colour and upright, as the camera noted it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd notes in the file; its size is checked by hand below
            with Image.open(path) as picture:
                if picture.width * picture.height > _MOST_PIXELS:
                    found = f"one of {picture.width:,} by {picture.height:,}"
                    raise InputError(
                        [Problem(str(path), f"a picture of at most {_MOST_PIXELS:,} pixels", found)]
                    )
                return ImageOps.exif_transpose(picture).convert("RGB")
    except _NOT_A_PICTURE as error:
        found = "no file" if isinstance(error, FileNotFoundError) else "something that cannot be read as one"
        raise InputError([Problem(str(path), "a picture", found)]) from error
