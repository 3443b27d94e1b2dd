"""Fixtures that require coco-caption and Java."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from tests.conftest import cannot_run


@pytest.fixture(scope="session")
def coco_caption() -> None:
    if importlib.util.find_spec("pycocoevalcap") is None:
        cannot_run("pycocoevalcap is not installed (the extra 'meteor')")


@pytest.fixture(scope="session")
def java(coco_caption: None) -> None:
    if shutil.which("java") is None:
        cannot_run("Java is not installed")
