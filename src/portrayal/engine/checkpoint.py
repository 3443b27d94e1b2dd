"""A journal of finished work, so that a command that was interrupted goes on instead of starting over."""

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
    """A short name for this version of the package: work that another version began is not gone on with."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Checkpoint(Generic[T]):
    """A folder with an entry per finished task. How a result is written and read is the caller's."""

    folder: Path
    save: Callable[[T, Path], object]
    load: Callable[[Path], T]

    def get(self, key: str) -> T | None:
        entry = self.folder / key
        return self.load(entry) if entry.is_dir() else None

    def put(self, key: str, result: T) -> None:
        """Written beside its place and then renamed: an entry that is there is whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=".", dir=self.folder))
        try:
            self.save(result, temporary)
            temporary.replace(self.folder / key)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
