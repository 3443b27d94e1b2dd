"""Pictures in the size a network takes, as numbers from 0 to 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from portrayal.errors import PortrayalError

if TYPE_CHECKING:
    from PIL.Image import Image

    from portrayal.models.masked_vlm.network import Network

_LONGEST = 1333 / 800  # of the shorter side, as ViLT's own preparation has it
_BICUBIC = 3  # as Pillow counts its filters


def as_pixels(pictures: Sequence[Image], network: Network, device: str = "cpu") -> Tensor | list[Tensor]:
    """One tensor where all have one size, as always with a network for square pictures; else a list."""
    if not network.side:
        raise PortrayalError("A model that reads texts alone takes no pictures.")
    made = [_levels(picture, _size(picture, network)) for picture in pictures]
    if len({one.shape for one in made}) == 1:
        return _numbers(torch.stack(made).to(device))
    return [_numbers(one[None].to(device))[0] for one in made]


def square_pixels(pictures: Sequence[Image], side: int) -> Tensor:
    return _numbers(torch.stack([_levels(picture, (side, side)) for picture in pictures]))


def _size(picture: Image, network: Network) -> tuple[int, int]:
    """Width and height."""
    if network.square:
        return network.side, network.side
    edges = [edge * network.side / min(picture.size) for edge in picture.size]
    longest = int(_LONGEST * network.side)
    if max(edges) > longest:
        edges = [edge * longest / max(edges) for edge in edges]
    width, height = (max(1, int(edge + 0.5) // network.patch) * network.patch for edge in edges)
    return width, height


def _levels(picture: Image, size: tuple[int, int]) -> Tensor:
    """From 0 to 255, colours last."""
    picture = picture.convert("RGB")
    if picture.size != size:
        picture = picture.resize(size, _BICUBIC)
    return torch.from_numpy(np.array(picture))


def _numbers(levels: Tensor) -> Tensor:
    """From 0 to 1, colours first: (pictures, 3, height, width)."""
    return levels.permute(0, 3, 1, 2).float().contiguous() / 255
