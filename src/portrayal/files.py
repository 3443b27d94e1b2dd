"""Writing files so that a reader never sees half of one, and telling files apart by what they hold."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends without an error.

    The temporary file is in the same folder because only a rename within one file system is atomic.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())  # mkstemp makes private files; these are ordinary ones
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


_OF_A_MODEL = (".safetensors", ".bin", ".json", ".txt", ".model")


def content_digest(path: Path) -> str:
    """Of a file, or of a folder that holds a model: its name does not say what is in it."""
    whole = hashlib.blake2b(digest_size=16)
    inside = (
        sorted(found for found in path.rglob("*") if found.suffix in _OF_A_MODEL) if path.is_dir() else [path]
    )
    for one in inside:
        whole.update(one.relative_to(path).as_posix().encode())
        with one.open("rb") as file:
            while block := file.read(1 << 20):
                whole.update(block)
    return whole.hexdigest()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
