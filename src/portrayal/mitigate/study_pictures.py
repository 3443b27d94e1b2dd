"""The pictures of a study as a network takes them, and the same with somebody of the other group, if given."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from portrayal.errors import PortrayalError
from portrayal.models.masked.pixels import square_pixels
from portrayal.models.vision.pictures import read_picture
from portrayal.study.identifiers import picture_files

# A folder with pictures under the same names, or what makes one out of a picture, such as an image translator.
Others = Path | Callable[[Image.Image], Image.Image]
_TOGETHER = 64


@dataclass(frozen=True)
class OtherPictures:
    levels: NDArray[np.uint8]  # as those of the study; the picture itself where there is no other
    there: NDArray[np.bool_]

    @property
    def digest(self) -> str:
        whole = hashlib.blake2b(self.levels.tobytes(), digest_size=8)
        whole.update(self.there.tobytes())
        return whole.hexdigest()


def levels(files: Iterable[Path], side: int) -> NDArray[np.uint8]:
    """As squares of the network's size."""
    return _squares(map(read_picture, files), side)


def other_pictures(
    others: Others, pictures: Mapping[str, Path], images: Sequence[str], side: int
) -> OtherPictures:
    """Of each image. Some may lack one: nothing is asked about these, and there must be others."""
    if isinstance(others, Path):
        return _in_folder(others, pictures, images, side)
    made = (_made(others, pictures[image]) for image in images)
    return OtherPictures(_squares(made, side), np.ones(len(images), dtype=bool))


def _in_folder(folder: Path, pictures: Mapping[str, Path], images: Sequence[str], side: int) -> OtherPictures:
    given = picture_files(folder)
    there = np.array([image in given for image in images], dtype=bool)
    if not there.any():
        raise PortrayalError(
            f"{folder}: expected pictures under the names of the study's (such as {pictures[images[0]].name}), found "
            f"none of {len(images):,}."
        )
    same = [image for image in images if image in given and given[image].samefile(pictures[image])]
    if same:
        raise PortrayalError(
            f"{folder}: expected pictures with somebody of the other group, found the study's own ({same[0]})."
        )
    return OtherPictures(levels((given.get(image, pictures[image]) for image in images), side), there)


def _made(make: Callable[[Image.Image], Any], file: Path) -> Image.Image:
    made = make(read_picture(file))
    if not isinstance(made, Image.Image):
        raise PortrayalError(
            f"What makes other pictures must return a picture (PIL.Image). Got {type(made).__name__} for {file.name}."
        )
    return made


def _squares(pictures: Iterable[Image.Image], side: int) -> NDArray[np.uint8]:
    parts = [np.empty((0, side, side, 3), dtype=np.uint8)]
    some: list[Image.Image] = []

    def pack() -> None:
        if some:
            parts.append((square_pixels(some, side) * 255).round().byte().permute(0, 2, 3, 1).numpy())
            some.clear()

    for picture in pictures:
        some.append(picture)
        if len(some) == _TOGETHER:
            pack()
    pack()
    return np.concatenate(parts)
