"""Images of a study as arrays, and their counterfactual images, from a folder or from a function."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from portrayal.errors import PortrayalError
from portrayal.models.masked_vlm.pixels import preprocess_square
from portrayal.models.vision.images import read_image
from portrayal.study.image_ids import find_image_files, image_id

# A folder with images under the same names, or a function from image to image, such as an image translator.
CounterfactualSource = Path | str | Callable[[Image.Image], Image.Image]
_BATCH_SIZE = 64


@dataclass(frozen=True)
class CounterfactualImages:
    """Counterfactual images of a study."""

    # The image itself where it has no counterfactual.
    pixels: NDArray[np.uint8]
    available: NDArray[np.bool_]
    # The files that were read.
    files: tuple[Path, ...]

    def describe(self) -> str:
        """Return the number of counterfactual images and a digest of their pixels."""
        hasher = hashlib.blake2b(np.ascontiguousarray(self.pixels).data, digest_size=8)
        hasher.update(self.available.tobytes())
        return f"{int(self.available.sum())} of them with counterfactuals {hasher.hexdigest()}"


def load_pixels(files: Sequence[Path], side: int) -> NDArray[np.uint8]:
    """Return images as an array of squares with the network's image size."""
    return _square_pixels(map(read_image, files), len(files), side)


def load_counterfactuals(
    counterfactuals: CounterfactualSource, image_files: Mapping[str, Path], images: Sequence[str], side: int
) -> CounterfactualImages:
    """Return the counterfactual of each image. Some may be missing, but not all; these are left out of the losses."""
    if isinstance(counterfactuals, str | Path):
        return _in_folder(Path(counterfactuals), image_files, images, side)
    generated = (_translated(counterfactuals, image_files[image]) for image in images)
    return CounterfactualImages(
        _square_pixels(generated, len(images), side), np.ones(len(images), dtype=bool), ()
    )


def _in_folder(
    folder: Path, image_files: Mapping[str, Path], images: Sequence[str], side: int
) -> CounterfactualImages:
    if not folder.is_dir():
        raise PortrayalError(f"{folder}: expected a folder of images, found none.")
    available = find_image_files(folder)
    # An id may include a file extension, and translated images may have another one.
    matches = [
        available.get(image) or available.get(image_id(image_files[image].stem) or "") for image in images
    ]
    if not any(matches):
        raise PortrayalError(
            f"{folder}: expected images with the names of the study's (such as {image_files[images[0]].name}), found "
            f"none of {len(images):,}."
        )
    matched_files = {image: file for image, file in zip(images, matches, strict=True) if file is not None}
    identical = [image for image, file in matched_files.items() if file.samefile(image_files[image])]
    if identical:
        raise PortrayalError(
            f"{folder}: expected images with a person of the other group, found the study's own ({identical[0]})."
        )
    return CounterfactualImages(
        load_pixels([matched_files.get(image, image_files[image]) for image in images], side),
        np.array([image in matched_files for image in images], dtype=bool),
        tuple(matched_files.values()),
    )


def _translated(translate: Callable[[Image.Image], Any], file: Path) -> Image.Image:
    image = translate(read_image(file))
    if not isinstance(image, Image.Image):
        raise PortrayalError(
            f"The function for counterfactual images must return an image (PIL.Image). "
            f"Got {type(image).__name__} for {file.name}."
        )
    return image


def _square_pixels(images: Iterator[Image.Image], n_images: int, side: int) -> NDArray[np.uint8]:
    pixels_of_images = np.empty((n_images, side, side, 3), dtype=np.uint8)
    for start in range(0, n_images, _BATCH_SIZE):
        pixels = preprocess_square(list(islice(images, _BATCH_SIZE)), side)
        pixels_of_images[start : start + len(pixels)] = (
            (pixels * 255).round().byte().permute(0, 2, 3, 1).numpy()
        )
    return pixels_of_images
