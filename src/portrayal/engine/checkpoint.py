"""Checkpoints of finished work, so that an interrupted command resumes instead of starting over."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")


@cache
def code_digest() -> str:
    """Return a short digest of the package's code: checkpoints of another version are not reused."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Checkpoint(Generic[T]):
    """A folder with an entry per finished task; `save` and `load` write and read one result."""

    folder: Path
    save: Callable[[T, Path], object]
    load: Callable[[Path], T]

    def get(self, key: str) -> T | None:
        entry = self.folder / key
        return self.load(entry) if entry.is_dir() else None

    def put(self, key: str, result: T) -> None:
        """Store a result. It is written to a temporary folder and renamed, so existing entries are complete."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=self.folder))
        try:
            self.save(result, temporary)
            temporary.replace(self.folder / key)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
