"""What tests share: the real data where it is, small studies, and the command line in this process."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import polars as pl
import pytest
from hypothesis import settings

from portrayal.cli.main import run
from portrayal.study import Study

# A fixed set of examples: a test either passes or fails, today as tomorrow.
settings.register_profile("portrayal", deadline=None, derandomize=True)
settings.load_profile("portrayal")

ROOT = Path(__file__).parent.parent


def cannot_run(reason: str) -> NoReturn:
    """Skip, or fail where nothing may be skipped."""
    if os.environ.get("PORTRAYAL_NO_SKIP"):
        pytest.fail(f"may not be skipped here: {reason}")
    pytest.skip(reason)


# Fixtures whose tests are left out by `make check`, with their marker.
_MARKER_BY_FIXTURE = {"shared": "real_data", "chromium": "browser", "printed_demo": "demo"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the slow fixtures that they use."""
    for item in items:
        for fixture, marker in _MARKER_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real data, which is not part of the project."""
    folder = Path(os.environ.get("PORTRAYAL_SHARED", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        cannot_run(f"the real data is not at {folder} (set PORTRAYAL_SHARED)")
    return folder


@pytest.fixture(scope="session", autouse=True)
def isolated_environment(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Model outputs are cached in a folder of the tests, and tables ignore the width of the terminal."""
    os.environ["PORTRAYAL_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    os.environ.pop("COLUMNS", None)


@pytest.fixture(scope="session")
def chromium() -> str:
    path = shutil.which("chromium")
    if path is None:
        cannot_run("chromium is not installed")
    return path


@pytest.fixture(scope="session")
def lic_gender(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real gender study, imported by the command a user would type."""
    out = tmp_path_factory.mktemp("lic") / "gender"
    code = run(
        [
            *("import", "lic", str(shared / "lic" / "bias_data"), "--attribute", "gender", "--out", str(out)),
            *("--references", str(shared / "coco" / "human_captions_val2014.jsonl")),
            *("--objects", str(shared / "coco" / "instance_labels_val2014.json")),
        ]
    )
    assert code == 0
    return out


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: (exit code, stdout, stderr)."""

    def call(*arguments: object) -> tuple[int, str, str]:
        code = run([str(argument) for argument in arguments])
        output = capsys.readouterr()
        return code, output.out, output.err

    return call


def small_study(
    rows: list[tuple[str, str, str]], references: list[tuple[str, str]] | None = None, system: str = "s"
) -> Study:
    """A study from (image, gender, caption) rows."""
    images = list(dict.fromkeys((image, gender) for image, gender, _ in rows))
    counts: dict[str, int] = {}
    samples = []
    for image, _, _ in rows:
        samples.append(counts.get(image, 0))
        counts[image] = samples[-1] + 1
    captions = {
        "image_id": [image for image, _, _ in rows],
        "system": [system] * len(rows),
        "sample": samples,
        "caption": [caption for _, _, caption in rows],
    }
    attributes = {"image_id": [image for image, _ in images], "gender": [gender for _, gender in images]}
    human_captions = None
    if references is not None:
        human_captions = pl.DataFrame(
            {
                "image_id": [image for image, _ in references],
                "caption": [caption for _, caption in references],
            }
        )
    return Study.from_frames(
        captions=pl.DataFrame(captions), attributes=pl.DataFrame(attributes), references=human_captions
    )
