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
from portrayal.study.importers import Imported, Request, safe_pickle
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
class _Gathered:
    """What the files held, so far."""

    captions: dict[str, dict[str, str]] = field(default_factory=dict)  # system -> image -> caption, in order
    labels: dict[str, dict[str, str]] = field(default_factory=dict)  # attribute -> image -> group
    references: dict[str, list[str]] = field(default_factory=dict)  # image -> people's captions
    vocabularies: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by the name in the file
    unlabelled: dict[str, int] = field(default_factory=dict)  # file -> rows with no usable label
    ignored: list[str] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)  # attributes that had a file


def build(request: Request, problems: Problems) -> Imported:
    wanted = request.named(_GROUPS)
    for attribute in wanted:
        if attribute not in _GROUPS:
            raise unknown_name("attribute of the LIC data", attribute, _GROUPS)
    if not wanted:
        raise PortrayalError(
            "Say which labels to import: --attribute gender, race or age (it can be repeated)."
        )
    gathered = _Gathered()
    for path in _all_files(request.sources):
        _gather(path, wanted, gathered, problems)
    for attribute in wanted:
        if attribute not in gathered.labels:
            problems.settle()  # the reason may be that every row was bad
            if attribute in gathered.seen:
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
        _captions_frame(gathered.captions),
        attributes=_labels_frame(gathered.labels, request.meaning),
        references=_references_frame(gathered.references) if gathered.references else None,
        vocabularies=_vocabularies(gathered.vocabularies, gathered.captions),
    )
    imported.notes += [
        f"{file}: {count:,} entries without a usable label were left out."
        for file, count in gathered.unlabelled.items()
    ]
    if gathered.ignored:
        imported.notes.append(f"Not LIC data, left alone: {', '.join(gathered.ignored)}.")
    return imported


def system_name(key: str) -> str | None:
    """The system a file's key stands for, or None for a key that is not known.

    >>> system_name("st10_th10"), system_name("cider_oscar"), system_name("sat_masked_person"), system_name("x")
    ('nic-th10', 'oscar', 'sat-masked-person', None)
    """
    base, masked, part = key.partition("_masked_")
    threshold = re.fullmatch(r"st10_(th\d+)", base)
    system = f"nic-{threshold.group(1)}" if threshold else _SYSTEMS.get(base)
    return f"{system}-masked-{part}" if system and masked else system


def _base(system: str) -> str:
    """The model that a system is a variant of: nic-th10 and sat-masked-person are nic and sat."""
    return re.sub(r"-th\d+$", "", system.partition("-masked-")[0])


def _all_files(sources: Iterable[str]) -> list[Path]:
    found: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            found += sorted(
                path for path in source.rglob("*") if path.is_file() and not path.name.startswith(".")
            )
        elif source.exists():
            found.append(source)
        else:
            raise PortrayalError(f"There is no file or folder {source}.")
    # The age table last: it lists images by number, and must not reorder what the split of a pickle rests on.
    return sorted(found, key=lambda path: path.suffix == ".csv")


def _gather(path: Path, wanted: Sequence[str], gathered: _Gathered, problems: Problems) -> None:
    entries = _ENTRIES.fullmatch(path.name)
    vocabulary = _VOCABULARY.fullmatch(path.name)
    if entries:
        attribute, key = entries.groups()
        system = system_name(key)
        if system is None:
            gathered.ignored.append(path.name)
        elif attribute in wanted:
            _gather_entries(path, attribute, system, gathered, problems)
    elif vocabulary:
        words = safe_pickle.load(path, problems)
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise problems.stop(path, "a list of words", shown(words))
        for word in words:
            if not is_unicode(word):
                raise problems.stop(path, "words in Unicode", f"half of a character in {shown(word)}")
        gathered.vocabularies[vocabulary.group(1)] = tuple(words)
    elif path.suffix == ".csv" and _is_age_table(path):
        if "age" in wanted:
            _gather_age(path, gathered, problems)
    else:
        gathered.ignored.append(path.name)


def _gather_entries(path: Path, attribute: str, system: str, gathered: _Gathered, problems: Problems) -> None:
    entries = safe_pickle.load(path, problems)
    if not isinstance(entries, list):
        raise problems.stop(path, "a list of entries", type(entries).__name__)
    gathered.seen.add(attribute)
    label_key = _LABEL_KEYS[attribute]
    captions: dict[str, str] = {}
    for number, entry in enumerate(entries, start=1):
        place = f"entry {number:,}"
        if not isinstance(entry, dict):
            problems.note(path, "a dict", shown(entry), place)
            continue
        identifier, caption, label = image_id(entry.get("img_id")), entry.get("pred"), entry.get(label_key)
        if identifier is None:
            problems.note(path, "an image id under 'img_id'", shown(entry.get("img_id")), place)
        elif not isinstance(caption, str) or not is_unicode(caption):
            problems.note(path, "a caption under 'pred'", shown(caption), place)
        elif not isinstance(label, str):
            problems.note(path, f"a label under '{label_key}'", shown(label), place)
        elif label.lower() not in _GROUPS[attribute]:
            gathered.unlabelled[path.name] = gathered.unlabelled.get(path.name, 0) + 1
        elif identifier in captions:
            problems.note(path, "each image once", f"image {identifier} again", place)
        else:
            captions[identifier] = caption
            _add_label(gathered, attribute, identifier, label.lower(), problems, path, place)
    _add_captions(gathered, system, captions, problems, path)


def _is_age_table(path: Path) -> bool:
    with path.open(encoding="utf-8", errors="replace") as lines:
        return {"img_id", "caption_list", "bb_age"} <= set(lines.readline().strip().split(","))


def _gather_age(path: Path, gathered: _Gathered, problems: Problems) -> None:
    gathered.seen.add("age")
    raw = read_raw(path, problems)
    systems = {column: _AGE_SYSTEMS[column] for column in raw.columns if column in _AGE_SYSTEMS}
    captions: dict[str, dict[str, str]] = {system: {} for system in systems.values()}
    for index, value in enumerate(raw.columns["img_id"]):
        place = raw.place(index)
        identifier = image_id(value)
        label = (raw.columns["bb_age"][index] or "").lower()
        people = _list_literal(raw.columns["caption_list"][index])
        said = {system: raw.columns[column][index] for column, system in systems.items()}
        if identifier is None:
            problems.note(path, "an image id under 'img_id'", shown(value), place)
        elif identifier in gathered.labels.get("age", {}):
            problems.note(path, "each image once", f"image {identifier} again", place)
        elif label not in _GROUPS["age"]:
            gathered.unlabelled[path.name] = gathered.unlabelled.get(path.name, 0) + 1
        elif people is None:
            problems.note(
                path,
                "a list of captions under 'caption_list'",
                shown(raw.columns["caption_list"][index]),
                place,
            )
        elif not all(said.values()):
            problems.note(path, "a caption of every captioner", shown(said), place)
        else:
            _add_label(gathered, "age", identifier, label, problems, path, place)
            gathered.references[identifier] = people
            for system, caption in said.items():
                captions[system][identifier] = caption
    for system, said_of in captions.items():
        _add_captions(gathered, system, said_of, problems, path)


def _list_literal(text: Any) -> list[str] | None:
    """The list that a Python literal spells, without running anything; None where it spells no captions."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    sound = (
        isinstance(value, list)
        and value
        and all(isinstance(item, str) and item.strip() and is_unicode(item) for item in value)
    )
    return value if sound else None


def _add_label(
    gathered: _Gathered,
    attribute: str,
    identifier: str,
    group: str,
    problems: Problems,
    path: Path,
    place: str,
) -> None:
    before = gathered.labels.setdefault(attribute, {}).setdefault(identifier, group)
    if before != group:
        problems.note(path, f"image {identifier} as '{before}', as another file has it", f"'{group}'", place)


def _add_captions(
    gathered: _Gathered, system: str, captions: dict[str, str], problems: Problems, path: Path
) -> None:
    """A system may stand in several files, one per attribute; they must agree where they overlap."""
    known = gathered.captions.get(system)
    if known is None:
        gathered.captions[system] = captions
        return
    for identifier, caption in captions.items():
        if known.get(identifier, caption) != caption:
            problems.note(
                path, f"for image {identifier} the caption {shown(known[identifier])}", shown(caption)
            )
    gathered.captions[system] = {
        i: known.get(i) or captions[i] for i in merged_order(list(known), list(captions))
    }


def merged_order(first: Sequence[str], second: Sequence[str]) -> list[str]:
    """Both lists in one that keeps the order of each, where they order what they share alike.

    The published splits draw by a row's place in its file, so a study of several attributes should not
    shuffle any of them. Where the two disagree, the first goes first and the rest follows.

    >>> merged_order(["a", "b", "d"], ["b", "c", "d", "e"])
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
    systems = sorted(captions, key=lambda system: (order.index(_base(system)), system))
    rows = [(i, system, 0, text) for system in systems for i, text in captions[system].items()]
    return pl.DataFrame(rows, schema=tables.CAPTIONS, orient="row")


def _labels_frame(labels: dict[str, dict[str, str]], meaning: GroupNames) -> pl.DataFrame:
    labels = {attribute: labels[attribute] for attribute in _GROUPS if attribute in labels}
    images = list(dict.fromkeys(i for of_image in labels.values() for i in of_image))
    columns = {"image_id": images} | {
        attribute: meaning.apply(attribute, [of_image.get(i) for i in images], labels)
        for attribute, of_image in labels.items()
    }
    return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String()))


def _references_frame(references: dict[str, list[str]]) -> pl.DataFrame:
    rows = [(i, text) for i, texts in references.items() for text in texts]
    return pl.DataFrame(rows, schema=tables.REFERENCES, orient="row")


def _vocabularies(named: dict[str, tuple[str, ...]], systems: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Each system's vocabulary: its own file, or that of the model it is a variant of."""
    found = {}
    for system in systems:
        words = named.get(_base(system).removesuffix("-xe").replace("-", "_"))
        if words is not None:
            found[system] = words
    return found
