"""Image preprocessing: images in the size that a network takes, with values from 0 to 1."""

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

_MAX_ASPECT = 1333 / 800  # longer side over shorter side, as in ViLT's own preprocessing
_BICUBIC = 3  # Pillow's number for the filter


def preprocess_images(
    images: Sequence[Image], network: VLMNetwork, device: str = "cpu"
) -> Tensor | list[Tensor]:
    """Return one tensor where all sizes are equal, as always with a network for square images; else a list."""
    if not network.image_size:
        raise PortrayalError("A text-only model takes no images.")
    levels = [_resized_levels(image, _target_size(image, network)) for image in images]
    if len({level.shape for level in levels}) == 1:
        return _to_pixels(torch.stack(levels).to(device))
    return [_to_pixels(level[None].to(device))[0] for level in levels]


def preprocess_square(images: Sequence[Image], image_size: int) -> Tensor:
    """Return a tensor (images, 3, size, size)."""
    return _to_pixels(torch.stack([_resized_levels(image, (image_size, image_size)) for image in images]))


def _target_size(image: Image, network: VLMNetwork) -> tuple[int, int]:
    """Return width and height."""
    if network.square:
        return network.image_size, network.image_size
    edges = [edge * network.image_size / min(image.size) for edge in image.size]
    max_edge = int(_MAX_ASPECT * network.image_size)
    if max(edges) > max_edge:
        edges = [edge * max_edge / max(edges) for edge in edges]
    width, height = (max(1, int(edge + 0.5) // network.patch_size) * network.patch_size for edge in edges)
    return width, height


def _resized_levels(image: Image, size: tuple[int, int]) -> Tensor:
    """Return levels from 0 to 255, channels last."""
    image = image.convert("RGB")
    if image.size != size:
        image = image.resize(size, _BICUBIC)
    return torch.from_numpy(np.array(image))


def _to_pixels(levels: Tensor) -> Tensor:
    """Return values from 0 to 1, channels first: (images, 3, height, width)."""
    return levels.permute(0, 3, 1, 2).float().contiguous() / 255
