"""The public LIC data: pickled entries per captioner and attribute, vocabularies, and the age CSV."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.documents import is_unicode
from portrayal.errors import PortrayalError, Problems, shown, unknown_name
from portrayal.study import tables
from portrayal.study.formats import read_raw
from portrayal.study.group_names import GroupNames
from portrayal.study.image_ids import image_id
from portrayal.study.importers import ImportRequest, ImportResult, safe_pickle
from portrayal.study.importers.assemble import assemble

_ENTRIES = re.compile(r"(gender|race)_val_(.+)_cap(?:_mw)?_entries\.pkl")
_VOCABULARY = re.compile(r"(.+)_vocab\.pkl")
_LABEL_KEYS = {"gender": "bb_gender", "race": "bb_skin", "age": "bb_age"}
_GROUPS = {"gender": ("male", "female"), "race": ("light", "dark"), "age": ("old", "young")}
_SYSTEMS = {
    "st10": "nic",
    "sat": "sat",
    "fc": "fc",
    "att2in": "att2in",
    "updn": "updn",
    "transformer": "transformer",
    "cider_oscar": "oscar",
    "oscar": "oscar-xe",
    "baselineft": "nic-plus",
    "snowboard": "nic-equalizer",
}
_AGE_SYSTEMS = {
    "pred_oscar": "oscar-xe",
    "pred_sat": "sat",
    "pred_nicplus": "nic-plus",
    "pred_niceq": "nic-equalizer",
}


@dataclass
class LicData:
    """Contents of the LIC files read so far."""

    captions: dict[str, dict[str, str]] = field(default_factory=dict)  # system -> image -> caption, in order
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # attribute -> image -> group
    references: dict[str, list[str]] = field(default_factory=dict)  # image -> human captions
    vocabularies: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by the name in the file
    unlabelled: dict[str, int] = field(default_factory=dict)  # file -> rows with no usable label
    ignored: list[str] = field(default_factory=list)
    attributes_with_file: set[str] = field(default_factory=set)  # attributes that had a file


def build(request: ImportRequest, problems: Problems) -> ImportResult:
    wanted = request.attribute_columns(_GROUPS)
    for attribute in wanted:
        if attribute not in _GROUPS:
            raise unknown_name("attribute of the LIC data", attribute, _GROUPS)
    if not wanted:
        raise PortrayalError(
            "Say which labels to import: --attribute gender, race or age (it can be repeated)."
        )
    data = LicData()
    for path in _all_files(request.sources):
        _read_file(path, wanted, data, problems)
    for attribute in wanted:
        if attribute not in data.labels:
            problems.settle()  # report bad rows first: they may be the reason
            if attribute in data.attributes_with_file:
                raise PortrayalError(
                    f"{', '.join(request.sources)}: no entry has a usable label for '{attribute}'."
                )
            raise PortrayalError(
                f"{', '.join(request.sources)}: no file with labels for '{attribute}' was found; expected "
                + (
                    "a CSV with the column bb_age."
                    if attribute == "age"
                    else f"{attribute}_val_<captioner>_cap*_entries.pkl."
                )
            )
    imported = assemble(
        request,
        problems,
        _captions_frame(data.captions),
        attributes=_labels_frame(data.labels, request.group_names),
        references=_references_frame(data.references) if data.references else None,
        vocabularies=_vocabularies(data.vocabularies, data.captions),
    )
    imported.notes += [
        f"{file}: {count:,} entries without a usable label were left out."
        for file, count in data.unlabelled.items()
    ]
    if data.ignored:
        imported.notes.append(f"Not LIC data, left alone: {', '.join(data.ignored)}.")
    return imported


def system_name(key: str) -> str | None:
    """The system of a file's key; None for an unknown key.

    >>> system_name("st10_th10"), system_name("cider_oscar"), system_name("sat_masked_person"), system_name("x")
    ('nic-th10', 'oscar', 'sat-masked-person', None)
    """
    base, masked, part = key.partition("_masked_")
    threshold = re.fullmatch(r"st10_(th\d+)", base)
    system = f"nic-{threshold.group(1)}" if threshold else _SYSTEMS.get(base)
    return f"{system}-masked-{part}" if system and masked else system


def _base_system(system: str) -> str:
    """The base model of a system variant: nic for nic-th10, sat for sat-masked-person."""
    return re.sub(r"-th\d+$", "", system.partition("-masked-")[0])


def _all_files(sources: Iterable[str]) -> list[Path]:
    files: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            files += sorted(
                path for path in source.rglob("*") if path.is_file() and not path.name.startswith(".")
            )
        elif source.exists():
            files.append(source)
        else:
            raise PortrayalError(f"There is no file or folder {source}.")
    # The age table is last: it lists images by number and must not change the order on which a pickle's split depends.
    return sorted(files, key=lambda path: path.suffix == ".csv")


def _read_file(path: Path, wanted: Sequence[str], data: LicData, problems: Problems) -> None:
    entries = _ENTRIES.fullmatch(path.name)
    vocabulary = _VOCABULARY.fullmatch(path.name)
    if entries:
        attribute, key = entries.groups()
        system = system_name(key)
        if system is None:
            data.ignored.append(path.name)
        elif attribute in wanted:
            _read_entries(path, attribute, system, data, problems)
    elif vocabulary:
        words = safe_pickle.load(path, problems)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise problems.stop(path, "a list of words", shown(words))
        for word in words:
            if not is_unicode(word):
                raise problems.stop(path, "words in Unicode", f"half of a character in {shown(word)}")
        data.vocabularies[vocabulary.group(1)] = tuple(words)
    elif path.suffix == ".csv" and _is_age_table(path):
        if "age" in wanted:
            _read_age_table(path, data, problems)
    else:
        data.ignored.append(path.name)


def _read_entries(path: Path, attribute: str, system: str, data: LicData, problems: Problems) -> None:
    entries = safe_pickle.load(path, problems)
    if not isinstance(entries, list):
        raise problems.stop(path, "a list of entries", type(entries).__name__)
    data.attributes_with_file.add(attribute)
    label_key = _LABEL_KEYS[attribute]
    captions: dict[str, str] = {}
    for number, entry in enumerate(entries, start=1):
        location = f"entry {number:,}"
        if not isinstance(entry, dict):
            problems.note(path, "a dict", shown(entry), location)
            continue
        identifier, caption, label = image_id(entry.get("img_id")), entry.get("pred"), entry.get(label_key)
        if identifier is None:
            problems.note(path, "an image id under 'img_id'", shown(entry.get("img_id")), location)
        elif not isinstance(caption, str) or not is_unicode(caption):
            problems.note(path, "a caption under 'pred'", shown(caption), location)
        elif not isinstance(label, str):
            problems.note(path, f"a label under '{label_key}'", shown(label), location)
        elif label.lower() not in _GROUPS[attribute]:
            data.unlabelled[path.name] = data.unlabelled.get(path.name, 0) + 1
        elif identifier in captions:
            problems.note(path, "each image once", f"image {identifier} again", location)
        else:
            captions[identifier] = caption
            _add_label(data, attribute, identifier, label.lower(), problems, path, location)
    _add_captions(data, system, captions, problems, path)


def _is_age_table(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as lines:
        return {"img_id", "caption_list", "bb_age"} <= set(lines.readline().strip().split(","))


def _read_age_table(path: Path, data: LicData, problems: Problems) -> None:
    data.attributes_with_file.add("age")
    raw = read_raw(path, problems)
    systems = {column: _AGE_SYSTEMS[column] for column in raw.columns if column in _AGE_SYSTEMS}
    captions: dict[str, dict[str, str]] = {system: {} for system in systems.values()}
    for index, value in enumerate(raw.columns["img_id"]):
        location = raw.location(index)
        identifier = image_id(value)
        label = (raw.columns["bb_age"][index] or "").lower()
        references = _parse_list_literal(raw.columns["caption_list"][index])
        row_captions = {system: raw.columns[column][index] for column, system in systems.items()}
        if identifier is None:
            problems.note(path, "an image id under 'img_id'", shown(value), location)
        elif identifier in data.labels.get("age", {}):
            problems.note(path, "each image once", f"image {identifier} again", location)
        elif label not in _GROUPS["age"]:
            data.unlabelled[path.name] = data.unlabelled.get(path.name, 0) + 1
        elif references is None:
            problems.note(
                path,
                "a list of captions under 'caption_list'",
                shown(raw.columns["caption_list"][index]),
                location,
            )
        elif not all(row_captions.values()):
            problems.note(path, "a caption of every captioner", shown(row_captions), location)
        else:
            _add_label(data, "age", identifier, label, problems, path, location)
            data.references[identifier] = references
            for system, caption in row_captions.items():
                captions[system][identifier] = caption
    for system, system_captions in captions.items():
        _add_captions(data, system, system_captions, problems, path)


def _parse_list_literal(text: Any) -> list[str] | None:
    """Parse a Python literal of a list of captions without executing code; None if it is not one."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    valid = (
        isinstance(value, list)
        and value
        and all(isinstance(item, str) and item.strip() and is_unicode(item) for item in value)
    )
    return value if valid else None


def _add_label(
    data: LicData,
    attribute: str,
    identifier: str,
    group: str,
    problems: Problems,
    path: Path,
    location: str,
) -> None:
    before = data.labels.setdefault(attribute, {}).setdefault(identifier, group)
    if before != group:
        problems.note(
            path, f"image {identifier} as '{before}', as another file has it", f"'{group}'", location
        )


def _add_captions(
    data: LicData, system: str, captions: dict[str, str], problems: Problems, path: Path
) -> None:
    """Add captions of a system. It may be in several files, one per attribute, which must agree where they overlap."""
    known = data.captions.get(system)
    if known is None:
        data.captions[system] = captions
        return
    for identifier, caption in captions.items():
        if known.get(identifier, caption) != caption:
            problems.note(
                path, f"for image {identifier} the caption {shown(known[identifier])}", shown(caption)
            )
    data.captions[system] = {
        i: known.get(i) or captions[i] for i in merge_orders(list(known), list(captions))
    }


def merge_orders(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Merge two lists and keep the order of each, if their shared items are in the same order.

    The published splits sample by row index, so a study of several attributes must not reorder any of them. If the
    orders disagree, the second list's other items follow the first list.

    >>> merge_orders(["a", "b", "d"], ["b", "c", "d", "e"])
    ['a', 'b', 'c', 'd', 'e']
    """
    in_first, in_second = set(first), set(second)
    shared = [i for i in second if i in in_first]
    if shared != [i for i in first if i in in_second]:
        return [*first, *(i for i in second if i not in in_first)]
    merged: list[str] = []
    rest = iter(second)
    for identifier in first:
        if identifier in in_second:
            for other in rest:
                merged.append(other)
                if other == identifier:
                    break
        else:
            merged.append(identifier)
    return [*merged, *rest]


def _captions_frame(captions: dict[str, dict[str, str]]) -> pl.DataFrame:
    order = [*_SYSTEMS.values()]
    systems = sorted(captions, key=lambda system: (order.index(_base_system(system)), system))
    rows = [(i, system, 0, text) for system in systems for i, text in captions[system].items()]
    return pl.DataFrame(rows, schema=tables.CAPTIONS, orient="row")


def _labels_frame(labels: dict[str, dict[str, str]], group_names: GroupNames) -> pl.DataFrame:
    labels = {attribute: labels[attribute] for attribute in _GROUPS if attribute in labels}
    images = list(dict.fromkeys(i for group_of_image in labels.values() for i in group_of_image))
    columns = {"image_id": images} | {
        attribute: group_names.apply(attribute, [group_of_image.get(i) for i in images], labels)
        for attribute, group_of_image in labels.items()
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String()))


def _references_frame(references: dict[str, list[str]]) -> pl.DataFrame:
    rows = [(i, text) for i, texts in references.items() for text in texts]
    return pl.DataFrame(rows, schema=tables.REFERENCES, orient="row")


def _vocabularies(named: dict[str, tuple[str, ...]], systems: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The vocabulary of each system, from its own file or that of its base model."""
    vocabularies = {}
    for system in systems:
        words = named.get(_base_system(system).removesuffix("-xe").replace("-", "_"))
        if words is not None:
            vocabularies[system] = words
    return vocabularies
