"""Image preprocessing: resize images to the size that a network takes, with values from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from portrayal.errors import PortrayalError

if TYPE_CHECKING:
    from PIL.Image import Image

    from portrayal.models.masked_vlm.network import VLMNetwork

_MAX_ASPECT_RATIO = 1333 / 800  # longer side over shorter side, as in ViLT's preprocessing
_BICUBIC = 3  # Pillow's code of the filter


def preprocess_images(
    images: Sequence[Image], network: VLMNetwork, device: str = "cpu"
) -> Tensor | list[Tensor]:
    """Return the images as one tensor if they have the same size, as with a network for square images; else a list."""
    if not network.image_size:
        raise PortrayalError("A text-only model takes no images.")
    byte_images = [_resize(image, _target_size(image, network)) for image in images]
    if len({byte_image.shape for byte_image in byte_images}) == 1:
        return _to_pixels(torch.stack(byte_images).to(device))
    return [_to_pixels(byte_image[None].to(device))[0] for byte_image in byte_images]


def preprocess_square(images: Sequence[Image], image_size: int) -> Tensor:
    """Return a tensor (images, 3, size, size)."""
    return _to_pixels(torch.stack([_resize(image, (image_size, image_size)) for image in images]))


def _target_size(image: Image, network: VLMNetwork) -> tuple[int, int]:
    """Return width and height."""
    if network.square:
        return network.image_size, network.image_size
    sides = [side * network.image_size / min(image.size) for side in image.size]
    max_side = int(_MAX_ASPECT_RATIO * network.image_size)
    if max(sides) > max_side:
        sides = [side * max_side / max(sides) for side in sides]
    width, height = (max(1, int(side + 0.5) // network.patch_size) * network.patch_size for side in sides)
    return width, height


def _resize(image: Image, size: tuple[int, int]) -> Tensor:
    """Return the resized image, with integer values from 0 to 255 and channels last."""
    image = image.convert("RGB")
    if image.size != size:
        image = image.resize(size, _BICUBIC)
    return torch.from_numpy(np.array(image))


def _to_pixels(byte_images: Tensor) -> Tensor:
    """Return pixels from 0 to 1 with channels first: (images, 3, height, width)."""
    return byte_images.permute(0, 3, 1, 2).float().contiguous() / 255
