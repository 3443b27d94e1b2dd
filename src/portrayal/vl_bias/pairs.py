"""Read sets of images in which only the person differs, paired by their file names, such as PAIRS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from portrayal.counterfactual.manifest import Instance
from portrayal.errors import InputError, PortrayalError, Problem

GROUP_NAMES = {"man": "male", "woman": "female"}  # part of a file name -> group in manifests
IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
SEPARATOR = "_"
DIGITS = "0123456789"  # at the end of a part: white_man1.png is an image of white_man


def read_pairs(folder: Path | str, swap: Mapping[str, str] | None = None) -> list[Instance]:
    """Read all images KIND/CONCEPT/OTHER_GROUP.png of a folder, each with its counterfactual.

    PAIRS has occupations/apron/black_man.png, whose counterfactual is occupations/apron/black_woman.png. Either part of
    a name may be the group. "_" in the name of a concept stands for a space.

    Parameters
    ----------
    folder
        The folder of the images.
    swap
        The two parts of a name that are exchanged, by default man and woman.
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
    named: dict[Path, list[Path]] = {}  # name without digits -> its images
    for path in sorted(folder.glob(f"*/*/*{SEPARATOR}*")):
        if path.suffix.lower() in IMAGE_SUFFIXES:
            parts = _name_parts(path)
            if len(parts) == 2 and len([part for part in parts if part in other]) == 1:
                named.setdefault(path.with_name(SEPARATOR.join(parts)), []).append(path)
            else:
                expected = f"a name of two parts joined by '{SEPARATOR}', one of them {' or '.join(other)}"
                problems.append(Problem(str(path), expected, repr(path.stem)))
    instances: list[Instance] = []
    for name, paths in named.items():
        partner = name.with_name(SEPARATOR.join(other.get(part, part) for part in _name_parts(name)))
        others = named.get(partner, [])
        for path in paths:
            if len(others) == 1:
                instances.append(_instance(path, others[0], folder, other))
            else:
                expected = f"one counterfactual {partner.name}"
                problems.append(Problem(str(path), expected, f"{len(others)}" if others else "none"))
    if problems:
        raise InputError(problems)
    if not instances:
        raise PortrayalError(
            f"{folder} holds no images of the form KIND/CONCEPT/OTHER{SEPARATOR}GROUP{IMAGE_SUFFIXES[0]}."
        )
    return instances


def _name_parts(path: Path) -> list[str]:
    stem = path.stem if path.suffix.lower() in IMAGE_SUFFIXES else path.name
    return [part.rstrip(DIGITS) for part in stem.split(SEPARATOR)]


def _instance(path: Path, partner: Path, folder: Path, groups: Mapping[str, str]) -> Instance:
    (group,) = (part for part in _name_parts(path) if part in groups)
    kind, concept = path.relative_to(folder).parts[:2]
    return Instance(
        image=path.relative_to(folder).as_posix(),
        group=GROUP_NAMES.get(group, group),
        concept=concept.replace(SEPARATOR, " ").lower(),
        kind=kind,
        path=path,
        counterfactual=partner,
    )
