"""The files of the Gender Score's authors: captions, objects and confidences in files with aligned lines.

A folder is one system, named by the folder (or NAME=FOLDER). It has a file of captions, one of objects, one of their
confidences, and optionally one of image ids; without it, the line number is the image id. A single caption may have
several objects. Additional tables of captions (any file that `table` reads) are other systems on the same images.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from portrayal.errors import PortrayalError, Problems, shown
from portrayal.study import consistency, tables
from portrayal.study.formats import SUFFIXES, read_raw
from portrayal.study.formats.raw_table import read_text
from portrayal.study.image_ids import image_id
from portrayal.study.importers import ImportRequest, ImportResult
from portrayal.study.importers.assemble import assemble
from portrayal.study.importers.sources import system_files

# Parts of the names of result files, which are not data.
_RESULT_FILE_PARTS = ("lm", "belief", "score", "output")


@dataclass(frozen=True)
class AlignedFiles:
    """The files of a folder by their content."""

    captions: Path
    objects: Path
    confidences: Path
    images: Path | None
    others: tuple[Path, ...]


def build(request: ImportRequest, problems: Problems) -> ImportResult:
    folders, files = _split_sources(request.sources)
    captions, object_tables, notes = [], [], []
    for system, folder in folders:
        aligned = _find_files(folder)
        caption_table, objects = _read_folder(system, aligned, problems)
        captions.append(caption_table)
        object_tables.append(objects)
        notes += [f"{path}: not data of a study; left out." for path in aligned.others]
    for system, path in system_files(files, SUFFIXES) if files else []:
        captions.append(tables.parse_captions(read_raw(path, problems), system, problems))
    all_captions = pl.concat(captions)
    consistency.refuse_duplicates(all_captions, ", ".join(request.sources), problems)
    result = assemble(replace(request, objects=None), problems, all_captions)
    objects = pl.concat(object_tables).unique(maintain_order=True)
    if request.objects is not None:
        with_objects = assemble(
            replace(request, references=None, attributes=None, rankings=()), problems, all_captions
        )
        objects = pl.concat([objects, with_objects.study.objects])
        notes += with_objects.notes
    return ImportResult(replace(result.study, objects=objects), [*notes, *result.notes])


def _split_sources(sources: Sequence[str]) -> tuple[list[tuple[str, Path]], list[str]]:
    """Split the sources into folders of aligned files, with their systems' names, and other files."""
    folders, files = [], []
    for source in sources:
        name, equals, rest = source.partition("=")
        folder = Path(rest) if equals and not Path(source).exists() else Path(source)
        if folder.is_dir():
            folders.append((name if folder != Path(source) else folder.name, folder))
        else:
            files.append(source)
    if not folders:
        raise PortrayalError("Name a folder with captions, objects and confidences in files of equal lines.")
    return folders, files


def _find_files(folder: Path) -> AlignedFiles:
    """Find the files of a folder by their names."""
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
        elif any(part in name for part in _RESULT_FILE_PARTS):
            kinds["others"].append(path)
        elif "caption" in name or "sentence" in name:
            kinds["captions"].append(path)
        else:
            kinds["others"].append(path)
    if len(kinds["objects"]) == 0 and len(kinds["confidences"]) == 2:  # names that differ in one suffix only
        kinds["objects"] = [kinds["confidences"].pop()]
    for kind, what in (("captions", "captions"), ("objects", "objects"), ("confidences", "confidences")):
        if len(kinds[kind]) != 1:
            names = ", ".join(path.name for path in kinds[kind]) or "none"
            raise PortrayalError(
                f"{folder}: expected one file of {what} (such as {_EXAMPLE_NAMES[kind]}), found {names}."
            )
    if len(kinds["images"]) > 1:
        raise PortrayalError(f"{folder}: expected one file of image ids, found {len(kinds['images'])}.")
    images = kinds["images"][0] if kinds["images"] else None
    single = {kind: kinds[kind][0] for kind in ("captions", "objects", "confidences")}
    return AlignedFiles(
        single["captions"], single["objects"], single["confidences"], images, tuple(kinds["others"])
    )


_EXAMPLE_NAMES = {
    "captions": "caption.txt",
    "objects": "visual-context_label.txt",
    "confidences": "visual-context.txt",
}


def _read_folder(system: str, files: AlignedFiles, problems: Problems) -> tuple[pl.DataFrame, pl.DataFrame]:
    captions, labels, confidences = (
        _read_lines(path, problems) for path in (files.captions, files.objects, files.confidences)
    )
    single_image = len(captions) == 1 and len(labels) > 1  # all objects of one image
    if not single_image:  # empty lines at the end: no object in the last images
        labels += [""] * (len(captions) - len(labels))
        confidences += [""] * (len(labels) - len(confidences)) if not any(labels[len(confidences) :]) else []
    _check_length(files.objects, labels, files.captions, captions if not single_image else labels, problems)
    _check_length(files.confidences, confidences, files.objects, labels, problems)
    images = _read_image_ids(files, captions, problems)
    detections = []
    for number, (label, text) in enumerate(zip(labels, confidences, strict=True)):
        confidence = _parse_confidence(text)
        if confidence is None and label.strip():
            location = f"line {number + 1:,}"
            problems.note(files.confidences, "a confidence from 0 to 1", shown(text), location)
        detections.append((images[0 if single_image else number], label.strip(), confidence))
    caption_rows = [
        (image, system, 0, text.strip()) for image, text in zip(images, captions, strict=True) if image
    ]
    object_rows = [
        {
            "image_id": image,
            "label": label,
            "kind": "object",
            "source": tables.SEVERAL_LABELS,
            "confidence": confidence,
        }
        for image, label, confidence in detections
        if image and label and confidence is not None  # an empty line means no object
    ]
    return pl.DataFrame(caption_rows, schema=tables.CAPTIONS, orient="row"), pl.DataFrame(
        object_rows, schema=tables.OBJECTS
    )


def _read_image_ids(files: AlignedFiles, captions: Sequence[str], problems: Problems) -> list[str | None]:
    """The image id of each caption, from the file of ids or its line number."""
    if files.images is None:
        return [str(number + 1) for number in range(len(captions))]
    lines = _read_lines(files.images, problems)
    _check_length(files.images, lines, files.captions, captions, problems)
    identifiers = [image_id(line.split("\t")[0]) for line in lines]
    for number, (line, image) in enumerate(zip(lines, identifiers, strict=True), 1):
        if image is None:
            problems.note(files.images, "an image id", shown(line), f"line {number:,}")
    return identifiers


def _check_length(
    path: Path, lines: Sequence[str], other: Path, others: Sequence[str], problems: Problems
) -> None:
    if len(lines) != len(others):
        raise problems.stop(path, f"{len(others):,} lines, as in {other.name}", f"{len(lines):,}")


def _read_lines(path: Path, problems: Problems) -> list[str]:
    """The lines of a file without empty lines at its end."""
    lines = read_text(path, problems).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    return [line.rstrip("\r") for line in lines]


def _parse_confidence(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None
