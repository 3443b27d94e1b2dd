"""Manifests: tables of images, each with a group and a concept, in the layout of VL-Bias."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portrayal.counterfactual.concepts import CONCEPTS_BY_KIND
from portrayal.errors import InputError, PortrayalError, Problem, Problems, shown
from portrayal.files import write_text

REQUIRED_COLUMNS = ("image", "group", "concept", "kind")
COUNTERFACTUAL_COLUMN = "counterfactual"  # optional column: the same image with a person of the other group
MIN_IMAGES = 30  # images of a group with a concept below which a warning is given; VL-Bias has hundreds


@dataclass(frozen=True)
class Instance:
    """One row: an image, the group of the person in it, and the concept (what they do or are)."""

    image: str  # name in the manifest
    group: str
    concept: str
    kind: str
    path: Path
    counterfactual: Path | None = None  # file of the same image with a person of the other group


@dataclass(frozen=True)
class Manifest:
    """The rows of a manifest, in their order, and the number of bad rows that were skipped."""

    name: str
    instances: tuple[Instance, ...]
    n_skipped: int = 0

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(instance.group for instance in self.instances))

    @property
    def concepts(self) -> dict[str, tuple[str, ...]]:
        """Return the concepts of each kind: those of VL-Bias first, in its order."""
        concepts_by_kind: dict[str, tuple[str, ...]] = {}
        for kind in dict.fromkeys(instance.kind for instance in self.instances):
            present_concepts = dict.fromkeys(
                instance.concept for instance in self.instances if instance.kind == kind
            )
            ordered_concepts = [
                concept for concept in CONCEPTS_BY_KIND.get(kind, ()) if concept in present_concepts
            ]
            concepts_by_kind[kind] = (
                *ordered_concepts,
                *(concept for concept in present_concepts if concept not in ordered_concepts),
            )
        return concepts_by_kind


def read_manifest(file: Path | str, images: Path | str | None = None, skip_bad: bool = False) -> Manifest:
    """Return the manifest in a CSV or TSV file.

    All rows are read before an error is raised, which lists the problems of all rows.

    Parameters
    ----------
    file
        The manifest.
    images
        Folder of the image files; by default the folder of the manifest.
    skip_bad
        Skip and count bad rows instead of raising an error.
    """
    file = Path(file)
    folder = Path(images) if images is not None else file.parent
    problems = Problems(skip_bad)
    instances: list[Instance] = []
    seen_keys: set[tuple[str, ...]] = set()
    counterfactual_by_image: dict[tuple[str, str], Path | None] = {}
    n_skipped = 0
    for line, row in _read_rows(file):
        row_problems = _row_problems(row, folder)
        if not row_problems:
            instance = _instance(row, folder)
            key = (instance.image, instance.group, instance.concept, instance.kind)
            known_counterfactual = counterfactual_by_image.setdefault(
                (instance.image, instance.group), instance.counterfactual
            )
            if key not in seen_keys and known_counterfactual == instance.counterfactual:
                seen_keys.add(key)
                instances.append(instance)
                continue
            row_problems = [("each image once with a concept", f"{shown(instance.image)} again")]
            if known_counterfactual != instance.counterfactual:
                row_problems = [("one counterfactual of an image", f"another one of {shown(instance.image)}")]
        n_skipped += 1
        for expected, found in row_problems:
            problems.note(file, expected, found, f"line {line}")
    problems.settle()
    if not instances:
        raise InputError(
            [Problem(str(file), "at least one row", "none" if not n_skipped else "only bad ones")]
        )
    return Manifest(file.stem, tuple(instances), n_skipped)


def write_manifest(instances: Sequence[Instance], file: Path) -> None:
    """Write a manifest that `read_manifest` can read; image paths are relative to the file's folder."""
    text = io.StringIO()
    with_counterfactual = any(instance.counterfactual is not None for instance in instances)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*REQUIRED_COLUMNS, *((COUNTERFACTUAL_COLUMN,) if with_counterfactual else ())))
    for instance in instances:
        relative_counterfactual = (
            "" if instance.counterfactual is None else _relative_path(file, instance.counterfactual)
        )
        writer.writerow(
            (
                _relative_path(file, instance.path),
                instance.group,
                instance.concept,
                instance.kind,
                *((relative_counterfactual,) if with_counterfactual else ()),
            )
        )
    write_text(file, text.getvalue())


def _relative_path(file: Path, image: Path) -> str:
    return Path(os.path.relpath(image, file.parent)).as_posix()


@dataclass(frozen=True)
class ManifestCheck:
    """The number of images of each concept and group, and warnings about unknown concepts and small groups."""

    counts: dict[tuple[str, str, str], int]  # (kind, concept, group) -> images
    warnings: tuple[str, ...]


def check_manifest(manifest: Manifest) -> ManifestCheck:
    """Count the images of each concept and group, and warn about unknown concepts and small groups."""
    counts = Counter((instance.kind, instance.concept, instance.group) for instance in manifest.instances)
    warnings = []
    for kind, concepts in manifest.concepts.items():
        if kind in CONCEPTS_BY_KIND:
            unknown = [concept for concept in concepts if concept not in CONCEPTS_BY_KIND[kind]]
            if unknown:
                warnings.append(f"{kind}: not of VL-Bias: {', '.join(map(shown, unknown))}")
        else:
            warnings.append(f"{shown(kind)}: a kind that VL-Bias does not have")
        for group in manifest.groups:
            missing_concepts = [concept for concept in concepts if not counts[kind, concept, group]]
            rare_concepts = [concept for concept in concepts if 0 < counts[kind, concept, group] < MIN_IMAGES]
            if missing_concepts:
                warnings.append(f"{kind}, {group}: no image of {', '.join(map(shown, missing_concepts))}")
            if rare_concepts:
                warnings.append(
                    f"{kind}, {group}: fewer than {MIN_IMAGES} images of {', '.join(map(shown, rare_concepts))}"
                )
    if len(manifest.groups) < 2:
        warnings.append(
            f"all images are of {shown(manifest.groups[0])}: there is no group to compare it with"
        )
    return ManifestCheck(dict(counts), tuple(warnings))


def _read_rows(file: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise PortrayalError(f"There is no manifest at {file}.") from None
    except (UnicodeDecodeError, IsADirectoryError, PermissionError) as error:
        raise InputError([Problem(str(file), "a text file in UTF-8", shown(str(error)))]) from None
    try:
        lines = csv.DictReader(io.StringIO(text), dialect="excel-tab" if file.suffix == ".tsv" else "excel")
        missing = [name for name in REQUIRED_COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            found = ", ".join(lines.fieldnames or ()) or "nothing"
            raise InputError(
                [Problem(str(file), f"the columns {', '.join(REQUIRED_COLUMNS)}", shown(found), "line 1")]
            )
        return [(lines.line_num, row) for row in lines]
    except csv.Error as error:
        raise InputError([Problem(str(file), "CSV", shown(str(error)))]) from None


def _row_problems(row: dict[str, str], folder: Path) -> list[tuple[str, str]]:
    """Return (expected, found) for each problem of a row."""
    problems = [
        (f"a value for '{name}'", "none") for name in REQUIRED_COLUMNS if not (row.get(name) or "").strip()
    ]
    if any(name is None for name in row):
        problems.append(("as many values as the first line has names", "more"))
    for name in ("image", COUNTERFACTUAL_COLUMN):
        value = (row.get(name) or "").strip()
        if value and not (folder / value).is_file():
            problems.append((f"an image for '{name}'", f"no file {shown(value)}"))
    return problems


def _instance(row: dict[str, str], folder: Path) -> Instance:
    image, group, concept, kind = (row[name].strip() for name in REQUIRED_COLUMNS)
    counterfactual = (row.get(COUNTERFACTUAL_COLUMN) or "").strip()
    return Instance(
        image,
        group,
        concept.lower(),
        kind.lower(),
        folder / image,
        folder / counterfactual if counterfactual else None,
    )
