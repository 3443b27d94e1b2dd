"""Sets of pictures in which only the person differs, told apart by their file names, such as those of PAIRS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from portrayal.counterfactual.manifest import Instance
from portrayal.errors import InputError, PortrayalError, Problem

GROUPS = {"man": "male", "woman": "female"}  # the part of a file's name, and what manifests call the group
ENDINGS = (".png", ".jpg", ".jpeg", ".webp")
BETWEEN = "_"
DIGITS = "0123456789"  # at the end of a part: white_man1.png is a picture of white_man


def read_pairs(folder: Path | str, swap: Mapping[str, str] | None = None) -> list[Instance]:
    """Every picture of KIND/CONCEPT/OTHER_GROUP.png in a folder, each with the one that only another group tells apart.

    PAIRS holds occupations/apron/black_man.png, whose counterfactual is occupations/apron/black_woman.png. `swap` says
    which two parts of a name are exchanged, by default man and woman; either part of a name may be the group's. Folders
    stand for the kind and the concept, and "_" in a concept's name for a space.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise PortrayalError(f"There is no folder {folder}.")
    words = dict(swap or {"man": "woman"})
    other = {**words, **{second: first for first, second in words.items()}}
    if len(other) != 2 * len(words):
        raise PortrayalError(
            f"The 'swap' parameter of read_pairs must name each word once. Got {words} instead."
        )
    problems: list[Problem] = []
    named: dict[Path, list[Path]] = {}  # a name without numbers -> the pictures of it
    for path in sorted(folder.glob(f"*/*/*{BETWEEN}*")):
        if path.suffix.lower() in ENDINGS:
            parts = _parts(path)
            if len(parts) == 2 and len([part for part in parts if part in other]) == 1:
                named.setdefault(path.with_name(BETWEEN.join(parts)), []).append(path)
            else:
                expected = f"a name of two parts joined by '{BETWEEN}', one of them {' or '.join(other)}"
                problems.append(Problem(str(path), expected, repr(path.stem)))
    found: list[Instance] = []
    for name, paths in named.items():
        partner = name.with_name(BETWEEN.join(other.get(part, part) for part in _parts(name)))
        others = named.get(partner, [])
        for path in paths:
            if len(others) == 1:
                found.append(_instance(path, others[0], folder, other))
            else:
                expected = f"one counterfactual {partner.name}"
                problems.append(Problem(str(path), expected, f"{len(others)}" if others else "none"))
    if problems:
        raise InputError(problems)
    if not found:
        raise PortrayalError(
            f"{folder} holds no pictures of the form KIND/CONCEPT/OTHER{BETWEEN}GROUP{ENDINGS[0]}."
        )
    return found


def _parts(path: Path) -> list[str]:
    stem = path.stem if path.suffix.lower() in ENDINGS else path.name
    return [part.rstrip(DIGITS) for part in stem.split(BETWEEN)]


def _instance(path: Path, partner: Path, folder: Path, groups: Mapping[str, str]) -> Instance:
    (group,) = (part for part in _parts(path) if part in groups)
    kind, concept = path.relative_to(folder).parts[:2]
    return Instance(
        image=path.relative_to(folder).as_posix(),
        group=GROUPS.get(group, group),
        concept=concept.replace(BETWEEN, " ").lower(),
        kind=kind,
        path=path,
        exact=partner,
    )
