"""Masked vision-language models: the probability of a word at a mask, given an image and a text.

PyTorch is imported when a name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.function import FunctionModel as FunctionModel
    from portrayal.models.masked_vlm.loading import load_masked as load_masked
    from portrayal.models.masked_vlm.model import MaskedVLM as MaskedVLM
    from portrayal.models.masked_vlm.model import TorchMaskedVLM as TorchMaskedVLM

_MODULES = {
    "MaskedVLM": "model",
    "FunctionModel": "function",
    "TorchMaskedVLM": "model",
    "load_masked": "loading",
}
__all__ = ["FunctionModel", "MaskedVLM", "TorchMaskedVLM", "load_masked"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(importlib.import_module(f"portrayal.models.masked_vlm.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'portrayal.models.masked_vlm' has no attribute {name!r}")
