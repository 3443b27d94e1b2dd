"""A synthetic world with planted bias: studies whose truth is known."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from portrayal.lab.annotators import Annotators
from portrayal.lab.captioners import DEMO_CAPTIONERS, FAITHFUL, Captioner
from portrayal.lab.world import Scene, World, make_scenes

if TYPE_CHECKING:
    from portrayal.lab.study import make_study as make_study

__all__ = [
    "DEMO_CAPTIONERS",
    "FAITHFUL",
    "Annotators",
    "Captioner",
    "Scene",
    "World",
    "make_scenes",
    "make_study",
]


def __getattr__(name: str) -> Any:
    """Import `make_study` on first use: it needs polars, and models are trained on the world without polars."""
    if name == "make_study":
        return importlib.import_module("portrayal.lab.study").make_study
    raise AttributeError(f"module 'portrayal.lab' has no attribute {name!r}")
