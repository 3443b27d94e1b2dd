"""The tutorial's metric, from start to page: as a file, and as an installed package in a fresh environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

import portrayal

pytestmark = pytest.mark.demo

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorials" / "hedging"


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Path:
    """Files of 80 images: the system hedges about 30 of 40 women and 10 of 40 men."""
    folder = tmp_path_factory.mktemp("study")
    captions, labels = ["image_id,caption"], ["image_id,gender"]
    for gender, noun, hedged in (("female", "woman", 30), ("male", "man", 10)):
        for n in range(40):
            captions.append(f"{gender}{n},a {noun} who {'seems to run' if n < hedged else 'runs'}")
            labels.append(f"{gender}{n},{gender}")
    (folder / "model.csv").write_text("\n".join(captions) + "\n")
    (folder / "labels.csv").write_text("\n".join(labels) + "\n")
    return folder


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """A fresh environment with the tutorial's package, and with what is installed here behind it."""
    folder = tmp_path_factory.mktemp("environment")
    source = folder / "hedging"
    source.mkdir()
    for file in ("hedging.py", "pyproject.toml"):
        (source / file).write_text((TUTORIAL / file).read_text())
    venv.create(folder / "venv", symlinks=True)
    python = folder / "venv" / "bin" / "python"
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    behind = [sysconfig.get_paths()["purelib"], str(Path(portrayal.__file__).parent.parent)]
    (site / "behind.pth").write_text("\n".join(behind) + "\n")
    offline = ["--quiet", "--no-deps", "--no-index"]
    pip = [sys.executable, "-m", "pip"]
    subprocess.run(
        [*pip, "wheel", *offline, "--no-build-isolation", "--wheel-dir", folder, source], check=True
    )
    (wheel,) = folder.glob("*.whl")
    subprocess.run([*pip, "--python", python, "install", *offline, wheel], check=True)
    return python


def test_the_metric_is_short():
    assert len((TUTORIAL / "hedging.py").read_text().splitlines()) <= 60


def test_its_own_tests_pass():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "test_hedging.py",
    ]
    process = subprocess.run(command, cwd=TUTORIAL, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout


def test_from_installation_to_page(python, study, tmp_path):
    def command(*arguments: object, code: int = 0) -> str:
        words = [str(python), "-m", "portrayal", *map(str, arguments)]
        process = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
        assert process.returncode == code, process.stdout + process.stderr
        return process.stdout + process.stderr

    listed = " ".join(command("list", "metrics").split())
    assert "hedging" in listed
    assert "portrayal-hedging" in listed

    command("import", "table", study / "model.csv", "--attributes", study / "labels.csv", "--out", "study")
    for seed in (0, 1):
        audited = command(
            *(
                "audit",
                "study",
                "--metrics",
                "hedging,error",
                "--quick",
                "--seed",
                seed,
                "--out",
                f"audit{seed}",
            )
        )
    sentence = "model hedges more often about female than about male: 75.0 % for female, 25.0 % for male"
    assert sentence in " ".join(audited.split())

    page = (tmp_path / "audit0" / "index.html").read_text()
    assert "model hedges more often about female than about male" in page
    assert "Hedged captions" in page
    assert page.index("Who is named, and rightly?") < page.index("Hedged captions")
    assert "largest difference between two groups" in page
    assert 'aria-label="hedging: 3 numbers with their 95 % CIs' in page  # the chart
    rows = json.loads((tmp_path / "audit0" / "results.json").read_text())["measurements"]
    hedging = {(m["term"], m["group"]): m["value"] for m in rows if m["metric"] == "hedging"}
    assert hedging == {
        ("hedging", None): 0.5, ("hedging", "female"): 0.75, ("hedging", "male"): 0.25, ("hedging-gap", None): 0.5,
    }  # fmt: skip

    assert "hedging-gap" in command("gate", "audit0", "hedging:hedging-gap <= 0.1", code=1)
    command("gate", "audit0", "hedging:hedging-gap <= 0.6")
    assert "hedging" in command("compare", "audit0", "audit1")
    command("report", "audit0", "--out", "exported", "--export", "charts")
    assert (tmp_path / "exported" / "charts" / "hedged-captions-by-gender.svg").is_file()
