"""Check for the packages that a masked model needs. This module itself needs none of them."""

from __future__ import annotations

from pathlib import Path

from portrayal.errors import need

_WITHOUT_TRANSFORMERS = ("lab-dual",)  # name prefixes of models that do not need Transformers; nor do folders
PURPOSE = "A masked model"


def need_packages(name: str, purpose: str = PURPOSE) -> None:
    """Raise an error if a package is missing. Called before images are read, so that no work is lost."""
    need("torch", "neural", purpose)
    need("safetensors.torch", "neural", purpose)
    if not name.startswith(_WITHOUT_TRANSFORMERS) and not Path(name).is_dir():
        need("transformers", "neural", purpose)
