"""The pictures of a study as a network takes them, and the same with somebody of the other group, if given."""

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
from portrayal.models.masked_vlm.pixels import square_pixels
from portrayal.models.vision.images import read_picture
from portrayal.study.image_ids import image_id, picture_files

# A folder with pictures under the same names, or what makes one out of a picture, such as an image translator.
Others = Path | str | Callable[[Image.Image], Image.Image]
_TOGETHER = 64


@dataclass(frozen=True)
class OtherPictures:
    levels: NDArray[np.uint8]  # as those of the study; the picture itself where there is no other
    there: NDArray[np.bool_]
    files: tuple[Path, ...]  # that were read

    def told(self) -> str:
        """How many there are, and a digest: what they show, not where they come from, says which they are."""
        whole = hashlib.blake2b(np.ascontiguousarray(self.levels).data, digest_size=8)
        whole.update(self.there.tobytes())
        return f"{int(self.there.sum())} of them with others {whole.hexdigest()}"


def levels(files: Sequence[Path], side: int) -> NDArray[np.uint8]:
    """As squares of the network's size."""
    return _squares(map(read_picture, files), len(files), side)


def other_pictures(
    others: Others, pictures: Mapping[str, Path], images: Sequence[str], side: int
) -> OtherPictures:
    """Of each image. Some may lack one: nothing is asked about these, and there must be others."""
    if isinstance(others, str | Path):
        return _in_folder(Path(others), pictures, images, side)
    made = (_made(others, pictures[image]) for image in images)
    return OtherPictures(_squares(made, len(images), side), np.ones(len(images), dtype=bool), ())


def _in_folder(folder: Path, pictures: Mapping[str, Path], images: Sequence[str], side: int) -> OtherPictures:
    if not folder.is_dir():
        raise PortrayalError(f"{folder}: expected a folder of pictures, found none.")
    held = picture_files(folder)
    # An id may hold an ending, and who translates pictures may choose another.
    found = [held.get(image) or held.get(image_id(pictures[image].stem) or "") for image in images]
    if not any(found):
        raise PortrayalError(
            f"{folder}: expected pictures under the names of the study's (such as {pictures[images[0]].name}), found "
            f"none of {len(images):,}."
        )
    given = {image: file for image, file in zip(images, found, strict=True) if file is not None}
    same = [image for image, file in given.items() if file.samefile(pictures[image])]
    if same:
        raise PortrayalError(
            f"{folder}: expected pictures with somebody of the other group, found the study's own ({same[0]})."
        )
    return OtherPictures(
        levels([given.get(image, pictures[image]) for image in images], side),
        np.array([image in given for image in images], dtype=bool),
        tuple(given.values()),
    )


def _made(make: Callable[[Image.Image], Any], file: Path) -> Image.Image:
    made = make(read_picture(file))
    if not isinstance(made, Image.Image):
        raise PortrayalError(
            f"What makes other pictures must return a picture (PIL.Image). Got {type(made).__name__} for {file.name}."
        )
    return made


def _squares(pictures: Iterator[Image.Image], many: int, side: int) -> NDArray[np.uint8]:
    made = np.empty((many, side, side, 3), dtype=np.uint8)
    for start in range(0, many, _TOGETHER):
        pixels = square_pixels(list(islice(pictures, _TOGETHER)), side)
        made[start : start + len(pixels)] = (pixels * 255).round().byte().permute(0, 2, 3, 1).numpy()
    return made
