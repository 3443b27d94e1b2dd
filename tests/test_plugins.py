"""Importers and models of other packages, found by their entry points."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

IMPORTER = '''
import polars as pl
from portrayal import Study
from portrayal.study.importers import ImportResult

def lines(request, problems):
    """Captions line by line."""
    (source,) = request.sources
    captions = open(source).read().splitlines()
    frame = pl.DataFrame({"image_id": range(len(captions)), "system": "s", "caption": captions})
    return ImportResult(Study.from_frames(name=request.name, captions=frame), ["Images are numbered."])
'''
MODEL = """
import torch
from portrayal.models.masked_vlm import FunctionModel

WORDS = ["man", "woman", "cooking", "running"]

def even(device, precision, batch_size):
    def log_probs(images, texts):
        return torch.full((len(texts), len(WORDS)), 1 / len(WORDS)).log()
    return FunctionModel(log_probs, WORDS, 32, name="even")

def number(device, precision, batch_size):
    return 3
"""


@pytest.fixture
def package(tmp_path) -> Path:
    folder = tmp_path / "package"
    (folder / "ours-0.3.dist-info").mkdir(parents=True)
    (folder / "ours-0.3.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: ours\nVersion: 0.3\n"
    )
    (folder / "ours-0.3.dist-info" / "entry_points.txt").write_text(
        "[portrayal.importers]\nlines = ours:lines\ngone = ours:gone\n"
        "[portrayal.models]\neven = ours_models:even\nnumber = ours_models:number\n"
    )
    (folder / "ours.py").write_text(IMPORTER)
    (folder / "ours_models.py").write_text(MODEL)
    return folder


def portrayal(package: Path, folder: Path, *arguments: str) -> tuple[int, str]:
    start = f"import sys; sys.path.insert(0, {str(package)!r}); sys.argv[0] = 'portrayal'\n"
    command = [sys.executable, "-c", f"{start}from portrayal.cli.main import main; main()", *arguments]
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return process.returncode, " ".join((process.stdout + process.stderr).split())


def test_an_importer_of_another_package(package, tmp_path):
    (tmp_path / "captions.txt").write_text("a man\na woman\n")
    code, output = portrayal(package, tmp_path, "import", "lines", "captions.txt", "--out", "study")
    assert code == 0, output
    assert "1 system, 2 images, 2 captions" in output
    assert "Images are numbered." in output
    assert (tmp_path / "study" / "study.toml").is_file()


def test_a_broken_importer_is_named(package, tmp_path):
    (tmp_path / "captions.txt").write_text("a man\n")
    code, output = portrayal(package, tmp_path, "import", "gone", "captions.txt", "--out", "study")
    assert code == 2
    assert "The plug-in 'gone' of the package ours 0.3 cannot be used: AttributeError" in output
    code, output = portrayal(package, tmp_path, "list", "importers")
    assert code == 0
    assert "lines ours 0.3" in output
    assert "'gone' of the package ours 0.3 cannot be used" in output


def test_an_unknown_importer_lists_those_of_other_packages(package, tmp_path):
    code, output = portrayal(package, tmp_path, "import", "linez", "captions.txt", "--out", "study")
    assert code == 2
    assert "Did you mean 'lines'?" in output


def test_a_model_of_another_package(package):
    code = f"""
import sys; sys.path.insert(0, {str(package)!r})
from portrayal.errors import PortrayalError
from portrayal.metrics.counterbias.run import load_model
model, key = load_model("even", "cpu", "float32", 4, None)
print(model.name, key)
try:
    load_model("number", "cpu", "float32", 4, None)
except PortrayalError as error:
    print(error)
"""
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.splitlines() == [
        "even None",
        "The plug-in 'number' of the package ours 0.3 cannot be used: expected a function that returns a MaskedVLM, "
        "found int.",
    ]
