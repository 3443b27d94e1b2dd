"""Masked vision-language models: how likely is a word at a mask, given a picture and a text?

Nothing of PyTorch is imported until a name is used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from portrayal.models.masked_vlm.function import GivenModel as GivenModel
    from portrayal.models.masked_vlm.loading import load_masked as load_masked
    from portrayal.models.masked_vlm.model import FillsMasks as FillsMasks
    from portrayal.models.masked_vlm.model import MaskedModel as MaskedModel

_HOMES = {"FillsMasks": "model", "GivenModel": "given", "MaskedModel": "model", "load_masked": "loading"}
__all__ = ["FillsMasks", "GivenModel", "MaskedModel", "load_masked"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"portrayal.models.masked_vlm.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'portrayal.models.masked_vlm' has no attribute {name!r}")
