"""Reading a picture from a file that others made: it may be of any kind, broken, or made to do harm."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from portrayal.errors import InputError, Problem

_MOST_PIXELS = 50_000_000  # a larger picture is not opened: it may be made to fill the memory
_KINDS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # others may start programs to read them
_EXPECTED_SIZE = f"a picture of at most {_MOST_PIXELS:,} pixels"


def read_picture(path: Path) -> Image.Image:
    """In colour, upright as the camera noted it, on white where it is transparent; of moving ones the first.

    Whatever a file holds, the answer is a picture or an `InputError` that says what is wrong with it.
    """
    if not path.is_file():  # a pipe would wait for ever
        raise _problem(path, "a picture", "no file" if not path.exists() else "no ordinary file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd notes in the file; its size is checked by hand below
            with Image.open(path, formats=_KINDS) as picture:
                if picture.width * picture.height > _MOST_PIXELS:
                    found = f"one of {picture.width:,} by {picture.height:,}"
                    raise _problem(path, _EXPECTED_SIZE, found)
                return _in_colour(_upright(picture))
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise _problem(path, _EXPECTED_SIZE, "a larger one") from error
    except Exception as error:  # decoders raise anything at all when a file is broken
        raise _problem(path, "a picture", "something that cannot be read as one") from error


def _upright(picture: Image.Image) -> Image.Image:
    picture.load()
    try:
        return ImageOps.exif_transpose(picture)
    except Exception:  # the note on how the camera was held is broken, the picture is not
        return picture


def _in_colour(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I"):
        return _of_16_bits(picture)
    if picture.mode == "F":
        raise ValueError("numbers without a range are no picture")
    if picture.has_transparency_data:
        seen = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", seen.size, "white"), seen).convert("RGB")
    return picture.convert("RGB")


def _of_16_bits(picture: Image.Image) -> Image.Image:
    """Grey of 16 bits a pixel; converting it would cut all but the darkest to white."""
    values = np.asarray(picture).astype(np.int64)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ValueError("more than 16 bits a pixel")
    return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")


def _problem(path: Path, expected: str, found: str) -> InputError:
    return InputError([Problem(str(path), expected, found)])
