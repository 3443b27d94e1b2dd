"""A study on disk: a folder with `study.toml`, which names the files of its tables."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.documents import Unreadable, is_unicode, parse_json, read_toml, writable
from portrayal.errors import InputError, PortrayalError, Problem, Problems, shown
from portrayal.files import replacing, write_text
from portrayal.study import consistency, tables
from portrayal.study.formats import read_raw
from portrayal.study.formats.raw_table import read_text
from portrayal.study.group_names import GroupNames, check_mapping
from portrayal.study.study import TABLES, Study
from portrayal.study.truncation import shortened

STUDY_FILE = "study.toml"
SCHEMA = "portrayal.study/1"
_FILES = {table: f"{table}.{'csv' if table in ('attributes', 'people') else 'parquet'}" for table in TABLES}
_VOCABULARIES = "vocabularies"
_FREE_TEXT = "leave the column out of the file"
_KEYS = {"schema", "name", "images", "left_out", "vocabularies", "mapped", *TABLES}


def read_study(path: Path | str, *, skip_bad: bool = False, strict: bool = False) -> Study:
    """Read a study's folder (or its `study.toml`).

    Every file is read to its end before an error is raised, so that one run tells all that is wrong.
    `skip_bad` leaves bad rows out instead. `strict` also refuses groups that hold a single image.
    """
    problems = Problems(skip_bad)
    study = read_study_noting(Path(path), problems, strict=strict)
    problems.settle()
    return study


def read_part(path: Path | str, part: int) -> Study:
    """One part of a study that is too large to be held at once, counted from 0."""
    problems = Problems()
    study = read_study_noting(Path(path), problems, part=part)
    problems.settle()
    return study


def count_parts(path: Path | str) -> int:
    """In how many parts a study can be read: as many as there are files in its list of captions.

    The first file of each table belongs to the first part, and so on; a table with one file belongs to every part. All
    that is said of an image is in one part.
    """
    path = Path(path)
    path = path if path.name == STUDY_FILE and path.is_file() else path / STUDY_FILE
    settings = _settings(path)
    listed = {
        table: len(_files(path, table, settings[table]))
        for table in TABLES
        if isinstance(settings.get(table), list)
    }
    listed.pop("rankings", None)  # a list is about images of all parts, so it belongs to none
    parts = listed.get("captions", 1)
    for table, files in listed.items():
        if files not in (1, parts):
            expected = f"one file of {table}, or as many as of captions ({parts})"
            raise InputError([Problem(str(path), expected, str(files))])
    return parts


def read_study_noting(
    path: Path, problems: Problems, *, strict: bool = False, part: int | None = None
) -> Study:
    """Like `read_study`, leaving it to the caller to settle what was noted; with `part`, that part of it."""
    path = path if path.name == STUDY_FILE and path.is_file() else path / STUDY_FILE
    settings = _settings(path)
    folder = path.parent
    mapped = _mapped(path, settings.get("mapped", {}))
    meaning = GroupNames.recorded(mapped)
    readers: dict[str, Callable[[Path, str | None], pl.DataFrame]] = {
        "captions": lambda file, system: tables.captions(read_raw(file, problems), system, problems),
        "references": lambda file, _: tables.references(read_raw(file, problems), problems),
        "attributes": lambda file, _: tables.attributes(read_raw(file, problems), problems, meaning=meaning),
        "people": lambda file, _: tables.people(read_raw(file, problems), problems),
        "objects": lambda file, _: tables.objects(read_raw(file, problems), problems),
        "rankings": lambda file, system: tables.rankings(
            read_raw(file, problems), system, problems, meaning=meaning
        ),
    }
    if part is not None:
        del readers["rankings"]
    made: dict[str, pl.DataFrame] = {}
    for table, read in readers.items():
        files = _files(path, table, settings.get(table))
        if part is not None and isinstance(settings.get(table), list) and len(files) > 1:
            files = [files[part]]
        if files:
            parts = [read(folder / file, system) for system, file in files]
            sources = [folder / file for _, file in files]
            if table in ("attributes", "rankings"):
                parts = consistency.one_spelling(parts, sources, problems, _mapped_here)
            if table == "attributes":
                made[table] = consistency.joined_attributes(parts, sources, problems)
            else:
                made[table] = pl.concat(parts, how="diagonal")
    for table in ("captions", "rankings"):
        if table in made:
            consistency.refuse_repeats(made[table], path, problems)
    if "rankings" in made:
        labels = made.get("attributes")
        made["rankings"] = consistency.one_label_an_item(made["rankings"], labels, path, problems)
    captioned = (
        made["captions"].get_column("image_id").unique(maintain_order=True) if "captions" in made else None
    )
    if part is not None and captioned is not None:  # a table with one file has rows of other parts too
        made = {
            table: frame.filter(pl.col("image_id").is_in(captioned.implode()))
            for table, frame in made.items()
        }
    about = [made[table].select("image_id") for table in ("captions", "rankings") if table in made]
    for table in ("references", "attributes", "objects"):
        if table in made and captioned is not None and part is None:
            source = folder / _files(path, table, settings[table])[0][1]
            known = pl.concat(about).get_column("image_id").unique(maintain_order=True)
            consistency.must_share_images(made[table], known, source, table, problems)
    if strict and "attributes" in made and captioned is not None:
        sources = [folder / file for _, file in _files(path, "attributes", settings["attributes"])]
        # Read again for its lines, which several files would not share; what is wrong with it was noted before.
        raw = read_raw(sources[0], Problems(skip_bad=True)) if len(sources) == 1 else None
        labels = tables.without_singletons(
            made["attributes"], captioned, raw, sources[0], problems, _FREE_TEXT
        )
        made["attributes"] = labels if problems.skip_bad else made["attributes"]
    images = settings.get("images")
    if images is not None and not (folder / images).is_dir():
        raise PortrayalError(f"{path}: expected images to name a folder, found {shown(images)}.")
    return shortened(
        Study(
            name=settings.get("name", writable(folder.resolve().name)),
            vocabularies=_read_vocabularies(path, settings.get("vocabularies", {}), problems),
            images=folder / images if images is not None else None,
            left_out=settings.get("left_out", 0) + problems.count,
            mapped=mapped,
            shortened={},
            **made,
        )
    )


def write_study(study: Study, folder: Path | str) -> Path:
    """Write a study's folder: Parquet for the long tables, CSV for the labels people like to look at.

    All of it is written to a temporary folder and then moved: when something goes wrong, a study that was there is
    still whole, and a new folder is still not there. Else nothing stays of the old study; other files of the folder do.
    """
    folder = Path(folder)
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    # What is moved must come from the same disk, which only the folder itself is sure to be on. A new one does not
    # exist before it is whole: killed at any time, this leaves nothing that the next attempt would have to refuse.
    place = folder.parent if missing else folder
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{STUDY_FILE}.", dir=place) as made:
            _write(study, Path(made) / "new", home=folder)
            _swap(Path(made) / "new", Path(made) / "old", folder)
    except BaseException:
        for one in missing:
            with contextlib.suppress(OSError):  # not made yet, or in use by now
                one.rmdir()
        raise
    return folder / STUDY_FILE


def _write(study: Study, folder: Path, home: Path) -> None:
    """The files of a study that will be moved to `home`."""
    lines = [f'schema = "{SCHEMA}"', f"name = {_toml_text(study.name)}"]
    for table in TABLES:
        frame: pl.DataFrame = getattr(study, table)
        if frame.height == 0:
            continue
        name = _FILES[table]
        with replacing(folder / name) as temporary:
            try:
                (frame.write_csv if name.endswith(".csv") else frame.write_parquet)(temporary)
            except (OSError, pl.exceptions.ComputeError) as error:  # either may say that a disk is full
                raise PortrayalError(f"{home / name} cannot be written: {error}.") from None
        lines.append(f'{table} = "{name}"')
    if study.left_out:
        lines.append(f"left_out = {study.left_out}")
    if study.images is not None:
        lines.append(f"images = {_toml_text(_as_seen_from(home, study.images))}")
    if study.vocabularies:
        lines.append("\n[vocabularies]")
        for number, (system, words) in enumerate(study.vocabularies.items()):
            name = f"{_VOCABULARIES}/{number:02}.json"  # numbered: a system's name may not be a file's name
            write_text(folder / name, json.dumps(list(words), ensure_ascii=False, indent=0) + "\n")
            lines.append(f'{_toml_text(system)} = "{name}"')
    for attribute, names in study.mapped.items():
        lines.append(f"\n[mapped.{_toml_text(attribute)}]")
        lines += [f"{_toml_text(value)} = {_toml_text(group)}" for value, group in names.items()]
    write_text(folder / STUDY_FILE, "\n".join(lines) + "\n")


def _swap(new: Path, old: Path, folder: Path) -> None:
    """Move a study's files to `old` and those of `new` in their place; if that fails, all back again."""
    coming = {path.relative_to(new) for path in new.rglob("*") if path.is_file()}
    moved: list[tuple[Path, Path]] = []

    def move(source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        moved.append((source, target))
        source.replace(target)

    kept = (folder / name for name in coming - _files_of_study(folder) if (folder / name).exists())
    if yours := next(kept, None):
        raise PortrayalError(
            f"{yours} is no file of the study in this folder, and would be replaced; move it away."
        )
    described = Path(STUDY_FILE)
    try:
        # What names the others goes first and comes last: killed in between, no study has files of two.
        for name in sorted(_files_of_study(folder), key=lambda name: name != described):
            if (folder / name).is_file():
                move(folder / name, old / name)
        for name in sorted(coming, key=lambda name: name == described):
            move(new / name, folder / name)
    except BaseException:
        for source, target in reversed(moved):
            if not source.exists():  # the one that could not be moved is where it was
                target.replace(source)
        raise
    finally:
        with contextlib.suppress(OSError):  # not there, or in use
            (folder / _VOCABULARIES).rmdir()


def _files_of_study(folder: Path) -> set[Path]:
    """What `write_study` wrote where a study is, as seen from its folder: files of ours that the study names."""
    try:
        named = (folder / STUDY_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    words = (folder / _VOCABULARIES).glob("*.json")
    numbered = (path.relative_to(folder) for path in words if path.stem.isdigit())
    ours = {*map(Path, _FILES.values()), *numbered}
    return {Path(STUDY_FILE), *(name for name in ours if f'"{name.as_posix()}"' in named)}


def refuse_to_overwrite(folder: Path) -> None:
    """A new study may replace an old one, but nothing else that a user keeps in a folder."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STUDY_FILE).exists():
        raise PortrayalError(f"{folder} holds files but no {STUDY_FILE}; choose a new folder for the study.")
    if folder.exists() and not folder.is_dir():
        raise PortrayalError(f"{folder} is a file; choose a folder for the study.")


def _settings(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        where = path.parent if path.name == STUDY_FILE else path
        raise PortrayalError(f"There is no study at {where}: a study is a folder with a {STUDY_FILE}.")
    settings = read_toml(path)
    unknown = sorted(set(settings) - _KEYS)
    if unknown:
        raise InputError([Problem(str(path), f"the keys {', '.join(sorted(_KEYS))}", f"{unknown[0]!r}")])
    if settings.get("schema", SCHEMA) != SCHEMA:
        raise InputError([Problem(str(path), f"schema {SCHEMA!r}", shown(settings["schema"]))])
    for key in ("name", "images"):
        if not isinstance(settings.get(key), str | None):
            raise InputError([Problem(str(path), f"{key} as text", shown(settings[key]))])
    left_out = settings.get("left_out", 0)
    if isinstance(left_out, bool) or not isinstance(left_out, int) or not 0 <= left_out < 2**63:
        raise InputError([Problem(str(path), "left_out as a number of rows", shown(settings["left_out"]))])
    if not isinstance(settings.get("vocabularies", {}), dict):
        raise InputError([Problem(str(path), "a table [vocabularies]", shown(settings["vocabularies"]))])
    return settings


def _mapped(path: Path, tables_of: object) -> dict[str, dict[str, str]]:
    """Which values of label columns stand for which groups: `[mapped.gender]` with `M = "male"`."""
    if not isinstance(tables_of, dict):
        raise InputError([Problem(str(path), "tables [mapped.ATTRIBUTE] of value = group", shown(tables_of))])
    for attribute, names in tables_of.items():
        sound = isinstance(names, dict) and all(isinstance(group, str) and group for group in names.values())
        if not sound:
            expected = f"a table [mapped.{attribute}] of value = group"
            raise InputError([Problem(str(path), expected, shown(names))])
        check_mapping(names, f"{path}, [mapped.{attribute}]")
    return {attribute: dict(names) for attribute, names in tables_of.items()}


def _mapped_here(attribute: str, value: str, group: str) -> str:
    """What to do about a group that two files spell differently: an import may not be where they come from."""
    table, line = f"[mapped.{_toml_text(attribute)}]", f"{_toml_text(value)} = {_toml_text(group)}"
    return f"in {STUDY_FILE}, {table} with the line {line} makes them one"


def _files(path: Path, table: str, named: object) -> list[tuple[str | None, str]]:
    """(system, file) for what `study.toml` names: a file, a list of files, or a table system = file."""
    if named is None:
        return []
    if isinstance(named, str):
        return [(None, named)]
    if isinstance(named, list) and all(isinstance(file, str) for file in named):
        return [(None, file) for file in named]
    if (
        isinstance(named, dict)
        and table in ("captions", "rankings")
        and all(isinstance(file, str) for file in named.values())
    ):
        return list(named.items())
    raise InputError([Problem(str(path), f"{table} as the name of a file, or a list of names", shown(named))])


def _read_vocabularies(
    path: Path, named: Mapping[str, Any], problems: Problems
) -> dict[str, tuple[str, ...]]:
    vocabularies = {}
    for system, file in named.items():
        if not isinstance(file, str):
            raise problems.stop(path, f"the vocabulary of '{system}' as the name of a file", shown(file))
        source = path.parent / file
        if not source.is_file():
            raise PortrayalError(f"There is no file {source}, which {path} names.")
        text = read_text(source, problems)
        if source.suffix == ".json":
            words = _json_words(source, text, problems)
        else:
            words = [line.strip() for line in text.splitlines() if line.strip()]
        vocabularies[system] = tuple(words)
    return vocabularies


def _json_words(source: Path, text: str, problems: Problems) -> list[str]:
    try:
        words = parse_json(text)
    except Unreadable as error:
        raise problems.stop(source, "JSON", error.found, error.place) from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise problems.stop(source, "a list of words", shown(words))
    for word in words:
        if not is_unicode(word):
            raise problems.stop(source, "words in Unicode", f"half of a character in {shown(word)}")
    return words


def _as_seen_from(folder: Path, images: Path) -> str:
    """Pictures inside the study's folder move with it; others stay where they are."""
    absolute, home = images.resolve(), folder.resolve()
    return str(absolute.relative_to(home) if absolute.is_relative_to(home) else absolute)


def _toml_text(text: str) -> str:
    """TOML's basic strings are JSON's, but for the DEL character, which JSON leaves as it is."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
