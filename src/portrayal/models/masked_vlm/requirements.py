"""Checks for the packages that a masked model needs, before any work is done. This module needs none of them."""

from __future__ import annotations

from pathlib import Path

from portrayal.errors import need

_BUNDLED = ("lab-dual",)  # name prefixes of models that need no Transformers; folders need none either
PURPOSE = "A masked model"


def need_packages(name: str, purpose: str = PURPOSE) -> None:
    """Raise now if a package is missing, instead of after all images have been read."""
    need("torch", "neural", purpose)
    need("safetensors.torch", "neural", purpose)
    if not name.startswith(_BUNDLED) and not Path(name).is_dir():
        need("transformers", "neural", purpose)
