"""Provenance: the version, command, seed, study and packages behind results, enough to compute them again."""

from __future__ import annotations

import platform
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from portrayal import __version__
from portrayal.documents import writable

_PACKAGES = ("numpy", "scipy", "polars", "scikit-learn", "torch", "transformers")


def provenance(
    *, command: str, seed: int | None, started: float, study: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """The provenance of results: enough to compute them again. `started` is a `time.time()`."""
    return {
        "version": __version__,
        "command": command,
        "seed": seed,
        "started": datetime.fromtimestamp(started, UTC).isoformat(timespec="seconds"),
        "seconds": round(time.time() - started, 3),
        "study": dict(study),
        "python": platform.python_version(),
        "packages": dict(_package_versions()),
        "git_commit": _git_commit(),
        **more,
    }


def command_line() -> str:
    """The command line of this process, without the folder of the program."""
    return writable(" ".join([Path(sys.argv[0]).name, *sys.argv[1:]]))


# Slow: as long as measuring a small study.
@cache
def _package_versions() -> dict[str, str]:
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


@cache
def _git_commit() -> str | None:
    """The git commit of the working directory, so that results can be traced to the user's code."""
    try:
        process = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip() or None if process.returncode == 0 else None
