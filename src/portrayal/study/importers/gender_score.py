"""The files of the Gender Score's authors: captions, objects and confidences in files whose lines belong together.

A folder is one system, named by it (or NAME=FOLDER): a file of captions, one of objects, one of how sure a model was of
them, and perhaps one of image ids; without it an image is named by its line. A single caption may have several objects.
Tables of captions beside it (any file that `table` reads) are other systems on the same images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from portrayal.errors import PortrayalError, Problems, shown
from portrayal.study import consistency, tables
from portrayal.study.formats import ENDINGS, read_raw
from portrayal.study.formats.raw_table import read_text
from portrayal.study.image_ids import image_id
from portrayal.study.importers import Imported, Request
from portrayal.study.importers.assemble import assemble
from portrayal.study.importers.sources import system_files

_LEFT = ("lm", "belief", "score", "output")  # parts of names of files that hold results, not data


@dataclass(frozen=True)
class _Aligned:
    """The files of a folder, by what they hold."""

    captions: Path
    objects: Path
    confidences: Path
    images: Path | None
    others: tuple[Path, ...]


def build(request: Request, problems: Problems) -> Imported:
    folders, files = _sorted_out(request.sources)
    captions, seen, notes = [], [], []
    for system, folder in folders:
        found = _files(folder)
        said, objects = _read(system, found, problems)
        captions.append(said)
        seen.append(objects)
        notes += [f"{path}: not data of a study; left out." for path in found.others]
    for system, path in system_files(files, ENDINGS) if files else []:
        captions.append(tables.captions(read_raw(path, problems), system, problems))
    everything = pl.concat(captions)
    consistency.refuse_repeats(everything, ", ".join(request.sources), problems)
    made = assemble(replace(request, objects=None), problems, everything)
    objects = pl.concat(seen).unique(maintain_order=True)
    if request.objects is not None:
        given = assemble(
            replace(request, references=None, attributes=None, rankings=()), problems, everything
        )
        objects = pl.concat([objects, given.study.objects])
        notes += given.notes
    return Imported(replace(made.study, objects=objects), [*notes, *made.notes])


def _sorted_out(sources: Sequence[str]) -> tuple[list[tuple[str, Path]], list[str]]:
    """Folders of lines that belong together, with their systems' names; and other files."""
    folders, files = [], []
    for source in sources:
        name, equals, rest = source.partition("=")
        place = Path(rest) if equals and not Path(source).exists() else Path(source)
        if place.is_dir():
            folders.append((name if place != Path(source) else place.name, place))
        else:
            files.append(source)
    if not folders:
        raise PortrayalError("Name a folder with captions, objects and confidences in files of equal lines.")
    return folders, files


def _files(folder: Path) -> _Aligned:
    """What the files of a folder hold, by their names."""
    kinds: dict[str, list[Path]] = {
        "captions": [],
        "objects": [],
        "confidences": [],
        "images": [],
        "others": [],
    }
    for path in sorted(folder.glob("*.txt")):
        name = path.stem.lower().replace("-", "_")
        if "image_id" in name or name == "ids":
            kinds["images"].append(path)
        elif "context" in name and ("prob" in name or name == "visual_context"):
            kinds["confidences"].append(path)
        elif "context" in name:
            kinds["objects"].append(path)
        elif any(part in name for part in _LEFT):
            kinds["others"].append(path)
        elif "caption" in name or "sentence" in name:
            kinds["captions"].append(path)
        else:
            kinds["others"].append(path)
    if len(kinds["objects"]) == 0 and len(kinds["confidences"]) == 2:  # named alike but for one ending
        kinds["objects"] = [kinds["confidences"].pop()]
    for kind, what in (("captions", "captions"), ("objects", "objects"), ("confidences", "confidences")):
        if len(kinds[kind]) != 1:
            names = ", ".join(path.name for path in kinds[kind]) or "none"
            raise PortrayalError(
                f"{folder}: expected one file of {what} (such as {_SUCH_AS[kind]}), found {names}."
            )
    if len(kinds["images"]) > 1:
        raise PortrayalError(f"{folder}: expected one file of image ids, found {len(kinds['images'])}.")
    images = kinds["images"][0] if kinds["images"] else None
    one = {kind: kinds[kind][0] for kind in ("captions", "objects", "confidences")}
    return _Aligned(one["captions"], one["objects"], one["confidences"], images, tuple(kinds["others"]))


_SUCH_AS = {
    "captions": "caption.txt",
    "objects": "visual-context_label.txt",
    "confidences": "visual-context.txt",
}


def _read(system: str, files: _Aligned, problems: Problems) -> tuple[pl.DataFrame, pl.DataFrame]:
    captions, labels, sure = (
        _lines(path, problems) for path in (files.captions, files.objects, files.confidences)
    )
    several = len(captions) == 1 and len(labels) > 1  # all that was seen in one image
    if not several:  # empty lines at the end: nothing was seen in the last images
        labels += [""] * (len(captions) - len(labels))
        sure += [""] * (len(labels) - len(sure)) if not any(labels[len(sure) :]) else []
    _same_length(files.objects, labels, files.captions, captions if not several else labels, problems)
    _same_length(files.confidences, sure, files.objects, labels, problems)
    images = _images(files, captions, problems)
    seen = []
    for number, (label, text) in enumerate(zip(labels, sure, strict=True)):
        confidence = _fraction(text)
        if confidence is None and label.strip():
            place = f"line {number + 1:,}"
            problems.note(files.confidences, "a confidence from 0 to 1", shown(text), place)
        seen.append((images[0 if several else number], label.strip(), confidence))
    said = [(image, system, 0, text.strip()) for image, text in zip(images, captions, strict=True) if image]
    rows = [
        {
            "image_id": image,
            "label": label,
            "kind": "object",
            "source": tables.SEVERAL_LABELS,
            "confidence": confidence,
        }
        for image, label, confidence in seen
        if image and label and confidence is not None  # an empty line: nothing was seen there
    ]
    return pl.DataFrame(said, schema=tables.CAPTIONS, orient="row"), pl.DataFrame(rows, schema=tables.OBJECTS)


def _images(files: _Aligned, captions: Sequence[str], problems: Problems) -> list[str | None]:
    """The image of each caption: by the file of ids, else by its line."""
    if files.images is None:
        return [str(number + 1) for number in range(len(captions))]
    lines = _lines(files.images, problems)
    _same_length(files.images, lines, files.captions, captions, problems)
    found = [image_id(line.split("\t")[0]) for line in lines]
    for number, (line, image) in enumerate(zip(lines, found, strict=True), 1):
        if image is None:
            problems.note(files.images, "an image id", shown(line), f"line {number:,}")
    return found


def _same_length(
    path: Path, lines: Sequence[str], other: Path, others: Sequence[str], problems: Problems
) -> None:
    if len(lines) != len(others):
        raise problems.stop(path, f"{len(others):,} lines, as in {other.name}", f"{len(lines):,}")


def _lines(path: Path, problems: Problems) -> list[str]:
    """The lines of a file; empty ones at its end are no lines."""
    lines = read_text(path, problems).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return [line.rstrip("\r") for line in lines]


def _fraction(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None
