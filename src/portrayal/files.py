"""Atomic writes, and digests of files by content."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path that replaces `path` when the block ends without an error.

    The temporary file is in the same folder, because only a rename within one file system is atomic.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes private files
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


_MODEL_SUFFIXES = (".safetensors", ".bin", ".json", ".txt", ".model")


def content_digest(path: Path) -> str:
    """Digest of the content of a file, or of a folder that holds a model."""
    digest = hashlib.blake2b(digest_size=16)
    files = (
        sorted(child for child in path.rglob("*") if child.suffix in _MODEL_SUFFIXES)
        if path.is_dir()
        else [path]
    )
    for file_path in files:
        digest.update(file_path.relative_to(path).as_posix().encode())
        with file_path.open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
