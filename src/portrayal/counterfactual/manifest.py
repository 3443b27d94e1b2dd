"""A manifest: which picture shows which group with which concept, as VL-Bias lists its images."""

from __future__ import annotations

import csv
import io
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from portrayal.counterfactual.concepts import KINDS
from portrayal.errors import InputError, PortrayalError, Problem, Problems, shown
from portrayal.files import write_text

COLUMNS = ("image", "group", "concept", "kind")
EXACT = "counterfactual"  # a column of its own: the same picture with somebody of the other group
FEW = 30  # pictures of a group with a concept; VL-Bias has hundreds


@dataclass(frozen=True)
class Instance:
    """One row: a picture, the group of the person in it, and what they do or are."""

    image: str  # as the manifest names it
    group: str
    concept: str
    kind: str
    path: Path
    exact: Path | None = None  # the same picture, but for the person


@dataclass(frozen=True)
class Manifest:
    """All rows, in their order, and what was left out."""

    name: str
    instances: tuple[Instance, ...]
    left_out: int = 0

    @property
    def groups(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(one.group for one in self.instances))

    @property
    def concepts(self) -> dict[str, tuple[str, ...]]:
        """kind -> its concepts, in the order of VL-Bias where they are of it."""
        found: dict[str, tuple[str, ...]] = {}
        for kind in dict.fromkeys(one.kind for one in self.instances):
            here = dict.fromkeys(one.concept for one in self.instances if one.kind == kind)
            listed = [concept for concept in KINDS.get(kind, ()) if concept in here]
            found[kind] = (*listed, *(concept for concept in here if concept not in listed))
        return found


def read_manifest(file: Path | str, images: Path | str | None = None, skip_bad: bool = False) -> Manifest:
    """Read a CSV or TSV file. Pictures are found from `images`, by default the manifest's own folder.

    Every row is checked before the first error ends it; with `skip_bad` bad rows are left out and counted.
    """
    file = Path(file)
    folder = Path(images) if images is not None else file.parent
    problems = Problems(skip_bad)
    instances: list[Instance] = []
    seen: set[tuple[str, ...]] = set()
    exact: dict[tuple[str, str], Path | None] = {}
    left_out = 0
    for line, row in _rows(file):
        bad = _bad(row, folder)
        if not bad:
            one = _instance(row, folder)
            key = (one.image, one.group, one.concept, one.kind)
            other = exact.setdefault((one.image, one.group), one.exact)
            if key not in seen and other == one.exact:
                seen.add(key)
                instances.append(one)
                continue
            bad = [("each picture once with a concept", f"{shown(one.image)} again")]
            if other != one.exact:
                bad = [("one counterfactual of a picture", f"another one of {shown(one.image)}")]
        left_out += 1
        for expected, found in bad:
            problems.note(file, expected, found, f"line {line}")
    problems.settle()
    if not instances:
        raise InputError(
            [Problem(str(file), "at least one row", "none" if not left_out else "only bad ones")]
        )
    return Manifest(file.stem, tuple(instances), left_out)


def write_manifest(instances: Sequence[Instance], file: Path) -> None:
    """As `read_manifest` reads it: pictures are named as seen from the file's folder."""
    text = io.StringIO()
    exact = any(one.exact is not None for one in instances)
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow((*COLUMNS, *((EXACT,) if exact else ())))
    for one in instances:
        other = "" if one.exact is None else _from(file, one.exact)
        rows.writerow((_from(file, one.path), one.group, one.concept, one.kind, *((other,) if exact else ())))
    write_text(file, text.getvalue())


def _from(file: Path, picture: Path) -> str:
    return Path(os.path.relpath(picture, file.parent)).as_posix()


@dataclass(frozen=True)
class Checked:
    """What a manifest holds, and what a measurement of it would suffer from."""

    counts: dict[tuple[str, str, str], int]  # kind, concept, group -> pictures
    warnings: tuple[str, ...]


def check_manifest(manifest: Manifest) -> Checked:
    counts = Counter((one.kind, one.concept, one.group) for one in manifest.instances)
    told = []
    for kind, concepts in manifest.concepts.items():
        if kind in KINDS:
            strange = [concept for concept in concepts if concept not in KINDS[kind]]
            if strange:
                told.append(f"{kind}: not of VL-Bias: {', '.join(map(shown, strange))}")
        else:
            told.append(f"{shown(kind)}: a kind that VL-Bias does not have")
        for group in manifest.groups:
            none = [concept for concept in concepts if not counts[kind, concept, group]]
            few = [concept for concept in concepts if 0 < counts[kind, concept, group] < FEW]
            if none:
                told.append(f"{kind}, {group}: no picture of {', '.join(map(shown, none))}")
            if few:
                told.append(f"{kind}, {group}: fewer than {FEW} pictures of {', '.join(map(shown, few))}")
    if len(manifest.groups) < 2:
        told.append(f"all pictures are of {shown(manifest.groups[0])}: there is nobody to compare them with")
    return Checked(dict(counts), tuple(told))


def _rows(file: Path) -> list[tuple[int, dict[str, str]]]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise PortrayalError(f"There is no manifest at {file}.") from None
    except (UnicodeDecodeError, IsADirectoryError, PermissionError) as error:
        raise InputError([Problem(str(file), "a text file in UTF-8", shown(str(error)))]) from None
    try:
        lines = csv.DictReader(io.StringIO(text), dialect="excel-tab" if file.suffix == ".tsv" else "excel")
        missing = [name for name in COLUMNS if name not in (lines.fieldnames or ())]
        if missing:
            found = ", ".join(lines.fieldnames or ()) or "nothing"
            raise InputError(
                [Problem(str(file), f"the columns {', '.join(COLUMNS)}", shown(found), "line 1")]
            )
        return [(lines.line_num, row) for row in lines]
    except csv.Error as error:
        raise InputError([Problem(str(file), "CSV", shown(str(error)))]) from None


def _bad(row: dict[str, str], folder: Path) -> list[tuple[str, str]]:
    """What is expected and found instead, for everything that is wrong."""
    bad = [(f"a value for '{name}'", "none") for name in COLUMNS if not (row.get(name) or "").strip()]
    if any(name is None for name in row):
        bad.append(("as many values as the first line has names", "more"))
    for name in ("image", EXACT):
        value = (row.get(name) or "").strip()
        if value and not (folder / value).is_file():
            bad.append((f"a picture for '{name}'", f"no file {shown(value)}"))
    return bad


def _instance(row: dict[str, str], folder: Path) -> Instance:
    image, group, concept, kind = (row[name].strip() for name in COLUMNS)
    other = (row.get(EXACT) or "").strip()
    return Instance(
        image, group, concept.lower(), kind.lower(), folder / image, folder / other if other else None
    )
