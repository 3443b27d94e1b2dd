"""What a masked model needs, asked for before any work is done; this file itself needs none of it."""

from __future__ import annotations

from pathlib import Path

from portrayal.errors import need

_WHOLE = ("lab-dual",)  # names that begin so, and folders, bring all that they are made of
PURPOSE = "A masked model"


def need_packages(name: str, purpose: str = PURPOSE) -> None:
    """One sentence now if a package is missing, instead of an error when all pictures have been read."""
    need("torch", "neural", purpose)
    need("safetensors.torch", "neural", purpose)
    if not name.startswith(_WHOLE) and not Path(name).is_dir():
        need("transformers", "neural", purpose)
