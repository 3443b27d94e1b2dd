"""Caption files as named by the user: a file per system, a folder of such files, or NAME=FILE."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from portrayal.errors import PortrayalError


def system_files(sources: Sequence[str], endings: Sequence[str]) -> list[tuple[str, Path]]:
    """(system, file) pairs for files, folders and NAME=FILE."""
    files: list[tuple[str, Path]] = []
    for source in sources:
        name, equals, rest = source.partition("=")
        if equals and not Path(source).exists():
            files.append((name, Path(rest)))
        elif Path(source).is_dir():
            inside = [path for path in sorted(Path(source).iterdir()) if path.suffix.lower() in endings]
            if not inside:
                raise PortrayalError(f"The folder {source} holds no file ending in {', '.join(endings)}.")
            files.extend((path.stem, path) for path in inside)
        else:
            files.append((Path(source).stem, Path(source)))
    if not files:
        raise PortrayalError("Name at least one file with captions.")
    for _, path in files:
        if path.suffix.lower() not in endings:
            raise PortrayalError(f"{path}: expected a file ending in {', '.join(endings)}.")
    return files
