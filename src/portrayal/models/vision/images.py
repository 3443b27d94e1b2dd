"""Read image files safely: they may have any format, and may be broken or malicious."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from portrayal.errors import InputError, Problem

_MAX_PIXELS = 50_000_000  # a larger image is not opened: it may be a decompression bomb
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM")  # others may start programs to read them
_EXPECTED_SIZE = f"an image of at most {_MAX_PIXELS:,} pixels"


def read_image(path: Path) -> Image.Image:
    """Return the image in RGB.

    It is rotated according to its EXIF data, transparent pixels become white, and of an animation only the first
    frame is returned. A file that is no valid image raises an `InputError` that says what is wrong with it.
    """
    if not path.is_file():  # a pipe would wait for ever
        raise _problem(path, "an image", "no file" if not path.exists() else "a special file")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about unusual metadata; the size is checked below
            with Image.open(path, formats=_FORMATS) as image:
                if image.width * image.height > _MAX_PIXELS:
                    size = f"one of {image.width:,} by {image.height:,}"
                    raise _problem(path, _EXPECTED_SIZE, size)
                return _to_rgb(_apply_exif_rotation(image))
    except InputError:
        raise
    except Image.DecompressionBombError as error:
        raise _problem(path, _EXPECTED_SIZE, "a larger one") from error
    except Exception as error:  # decoders may raise anything for a broken file
        raise _problem(path, "an image", "something that cannot be read as one") from error


def _apply_exif_rotation(image: Image.Image) -> Image.Image:
    image.load()
    try:
        return ImageOps.exif_transpose(image)
    except Exception:  # the EXIF orientation is broken, the image is not
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):
        return _from_16_bits(image)
    if image.mode == "F":
        raise ValueError("floating-point pixels have no known range")
    if image.has_transparency_data:
        rgba = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba).convert("RGB")
    return image.convert("RGB")


def _from_16_bits(image: Image.Image) -> Image.Image:
    """Return a 16-bit grey image in RGB; Pillow's conversion would clip all but the darkest values to white."""
    values = np.asarray(image).astype(np.int64)
    if values.min() < 0 or values.max() > 0xFFFF:
        raise ValueError("more than 16 bits a pixel")
    return Image.fromarray((values >> 8).astype(np.uint8)).convert("RGB")


def _problem(path: Path, expected: str, found: str) -> InputError:
    return InputError([Problem(str(path), expected, found)])
