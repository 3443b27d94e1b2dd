"""Read and write a study's folder: `study.toml` and the files of its tables."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl

from portrayal.documents import DocumentError, is_unicode, parse_json, read_toml, writable
from portrayal.errors import InputError, PortrayalError, Problem, Problems, shown
from portrayal.files import replacing, write_text
from portrayal.study import consistency, tables
from portrayal.study.formats import read_raw
from portrayal.study.formats.raw_table import read_text
from portrayal.study.group_names import GroupNames, check_mapping
from portrayal.study.study import TABLES, Study
from portrayal.study.truncation import truncate_captions

STUDY_FILE = "study.toml"
SCHEMA = "portrayal.study/1"
_FILES = {table: f"{table}.{'csv' if table in ('attributes', 'people') else 'parquet'}" for table in TABLES}
_VOCABULARIES = "vocabularies"
_DROP_COLUMN = "leave the column out of the file"
_KEYS = {"schema", "name", "images", "left_out", "vocabularies", "mapped", *TABLES}


def read_study(path: Path | str, *, skip_bad: bool = False, strict: bool = False) -> Study:
    """Read a study from its folder.

    Parameters
    ----------
    path : Path or str
        The study's folder or its `study.toml`.
    skip_bad : bool
        Leave out bad rows. By default all files are read to the end and one error reports all problems.
    strict : bool
        Also treat groups with a single image as problems.

    Returns
    -------
    Study

    Examples
    --------
    >>> import tempfile
    >>> from portrayal.lab import make_study
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_study(make_study(scenes=20, seed=1), Path(folder))
    ...     read_study(folder).systems
    ('faithful', 'stereotyping', 'cautious')
    """
    problems = Problems(skip_bad)
    study = read_study_collecting(Path(path), problems, strict=strict)
    problems.settle()
    return study


def read_part(path: Path | str, part: int) -> Study:
    """Read one part of a study that is too large for memory. Parts are counted from 0."""
    problems = Problems()
    study = read_study_collecting(Path(path), problems, part=part)
    problems.settle()
    return study


def count_parts(path: Path | str) -> int:
    """Number of parts in which a study can be read: the number of files in its list of captions.

    The first file of each table belongs to the first part, and so on. A table with one file belongs to every part. All
    rows of an image must be in one part.
    """
    path = Path(path)
    path = path if path.name == STUDY_FILE and path.is_file() else path / STUDY_FILE
    settings = _read_settings(path)
    listed = {
        table: len(_listed_files(path, table, settings[table]))
        for table in TABLES
        if isinstance(settings.get(table), list)
    }
    listed.pop("rankings", None)  # rankings are of images of all parts, so they belong to none
    parts = listed.get("captions", 1)
    for table, files in listed.items():
        if files not in (1, parts):
            expected = f"one file of {table}, or as many as of captions ({parts})"
            raise InputError([Problem(str(path), expected, str(files))])
    return parts


def read_study_collecting(
    path: Path, problems: Problems, *, strict: bool = False, part: int | None = None
) -> Study:
    """Read a study or one part of it, collecting problems for the caller to settle."""
    path = path if path.name == STUDY_FILE and path.is_file() else path / STUDY_FILE
    settings = _read_settings(path)
    folder = path.parent
    mapped = _check_mapped(path, settings.get("mapped", {}))
    group_names = GroupNames.from_recorded(mapped)
    readers: dict[str, Callable[[Path, str | None], pl.DataFrame]] = {
        "captions": lambda file, system: tables.parse_captions(read_raw(file, problems), system, problems),
        "references": lambda file, _: tables.parse_references(read_raw(file, problems), problems),
        "attributes": lambda file, _: tables.parse_attributes(
            read_raw(file, problems), problems, group_names=group_names
        ),
        "people": lambda file, _: tables.parse_people(read_raw(file, problems), problems),
        "objects": lambda file, _: tables.parse_objects(read_raw(file, problems), problems),
        "rankings": lambda file, system: tables.parse_rankings(
            read_raw(file, problems), system, problems, group_names=group_names
        ),
    }
    if part is not None:
        del readers["rankings"]
    frames: dict[str, pl.DataFrame] = {}
    for table, read in readers.items():
        files = _listed_files(path, table, settings.get(table))
        if part is not None and isinstance(settings.get(table), list) and len(files) > 1:
            files = [files[part]]
        if files:
            parts = [read(folder / file, system) for system, file in files]
            sources = [folder / file for _, file in files]
            if table in ("attributes", "rankings"):
                parts = consistency.drop_inconsistent_spellings(
                    parts, sources, problems, _suggest_mapped_table
                )
            if table == "attributes":
                frames[table] = consistency.join_attributes(parts, sources, problems)
            else:
                frames[table] = pl.concat(parts, how="diagonal")
    for table in ("captions", "rankings"):
        if table in frames:
            consistency.refuse_duplicates(frames[table], path, problems)
    if "rankings" in frames:
        labels = frames.get("attributes")
        frames["rankings"] = consistency.drop_conflicting_labels(frames["rankings"], labels, path, problems)
    captioned = (
        frames["captions"].get_column("image_id").unique(maintain_order=True)
        if "captions" in frames
        else None
    )
    if part is not None and captioned is not None:  # a table with one file also has rows of other parts
        frames = {
            table: frame.filter(pl.col("image_id").is_in(captioned.implode()))
            for table, frame in frames.items()
        }
    image_columns = [
        frames[table].select("image_id") for table in ("captions", "rankings") if table in frames
    ]
    for table in ("references", "attributes", "objects"):
        if table in frames and captioned is not None and part is None:
            source = folder / _listed_files(path, table, settings[table])[0][1]
            study_images = pl.concat(image_columns).get_column("image_id").unique(maintain_order=True)
            consistency.require_shared_images(frames[table], study_images, source, table, problems)
    if strict and "attributes" in frames and captioned is not None:
        sources = [folder / file for _, file in _listed_files(path, "attributes", settings["attributes"])]
        # Read again for line numbers, which exist for a single file only. Its problems were collected before.
        raw = read_raw(sources[0], Problems(skip_bad=True)) if len(sources) == 1 else None
        labels = tables.drop_singleton_groups(
            frames["attributes"], captioned, raw, sources[0], problems, _DROP_COLUMN
        )
        frames["attributes"] = labels if problems.skip_bad else frames["attributes"]
    images = settings.get("images")
    if images is not None and not (folder / images).is_dir():
        raise PortrayalError(f"{path}: expected images to name a folder, found {shown(images)}.")
    return truncate_captions(
        Study(
            name=settings.get("name", writable(folder.resolve().name)),
            vocabularies=_read_vocabularies(path, settings.get("vocabularies", {}), problems),
            images=folder / images if images is not None else None,
            left_out=settings.get("left_out", 0) + problems.count,
            mapped=mapped,
            truncated={},
            **frames,
        )
    )


def write_study(study: Study, folder: Path | str) -> Path:
    """Write a study's folder: Parquet for long tables, CSV for attributes, which users like to open.

    The files are written to a temporary folder and then moved, so that an error leaves an old study intact and no new
    folder behind. On success all files of the old study are replaced; other files of the folder stay.

    Parameters
    ----------
    study : Study
        The study.
    folder : Path or str
        Its folder.

    Returns
    -------
    Path
        The path of `study.toml`.
    """
    folder = Path(folder)
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    # Files must be moved within one disk, which only the folder itself guarantees. A new folder is created as a whole:
    # if the process is killed, it leaves nothing that the next attempt would refuse.
    temporary_parent = folder.parent if missing else folder
    try:
        temporary_parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{STUDY_FILE}.", dir=temporary_parent) as temporary:
            _write_files(study, Path(temporary) / "new", home=folder)
            _swap_files(Path(temporary) / "new", Path(temporary) / "old", folder)
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):  # not created yet, or in use
                parent.rmdir()
        raise
    return folder / STUDY_FILE


def _write_files(study: Study, folder: Path, home: Path) -> None:
    """Write the files of a study that will be moved to `home`."""
    lines = [f'schema = "{SCHEMA}"', f"name = {_toml_text(study.name)}"]
    for table in TABLES:
        frame: pl.DataFrame = getattr(study, table)
        if frame.height == 0:
            continue
        name = _FILES[table]
        with replacing(folder / name) as temporary:
            try:
                (frame.write_csv if name.endswith(".csv") else frame.write_parquet)(temporary)
            except (OSError, pl.exceptions.ComputeError) as error:  # either is raised if the disk is full
                raise PortrayalError(f"{home / name} cannot be written: {error}.") from None
        lines.append(f'{table} = "{name}"')
    if study.left_out:
        lines.append(f"left_out = {study.left_out}")
    if study.images is not None:
        lines.append(f"images = {_toml_text(_relative_to_study(home, study.images))}")
    if study.vocabularies:
        lines.append("\n[vocabularies]")
        for number, (system, words) in enumerate(study.vocabularies.items()):
            name = (
                f"{_VOCABULARIES}/{number:02}.json"  # numbered: a system's name may not be a valid file name
            )
            write_text(folder / name, json.dumps(list(words), ensure_ascii=False, indent=0) + "\n")
            lines.append(f'{_toml_text(system)} = "{name}"')
    for attribute, names in study.mapped.items():
        lines.append(f"\n[mapped.{_toml_text(attribute)}]")
        lines += [f"{_toml_text(value)} = {_toml_text(group)}" for value, group in names.items()]
    write_text(folder / STUDY_FILE, "\n".join(lines) + "\n")


def _swap_files(new: Path, old: Path, folder: Path) -> None:
    """Move a study's files to `old` and replace them with those of `new`. An error moves all files back."""
    new_files = {path.relative_to(new) for path in new.rglob("*") if path.is_file()}
    moved: list[tuple[Path, Path]] = []

    def move(source: Path, target: Path) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        moved.append((source, target))
        source.replace(target)

    foreign = (folder / name for name in new_files - _files_of_study(folder) if (folder / name).exists())
    if conflict := next(foreign, None):
        raise PortrayalError(
            f"{conflict} is no file of the study in this folder, and would be replaced; move it away."
        )
    study_file = Path(STUDY_FILE)
    try:
        # study.toml is removed first and written last: if the process is killed in between, no study mixes both.
        for name in sorted(_files_of_study(folder), key=lambda name: name != study_file):
            if (folder / name).is_file():
                move(folder / name, old / name)
        for name in sorted(new_files, key=lambda name: name == study_file):
            move(new / name, folder / name)
    except BaseException:
        for source, target in reversed(moved):
            if not source.exists():  # a file that could not be moved is still in its place
                target.replace(source)
        raise
    finally:
        with contextlib.suppress(OSError):  # missing or in use
            (folder / _VOCABULARIES).rmdir()


def _files_of_study(folder: Path) -> set[Path]:
    """Relative paths of the files that `write_study` wrote to a folder and that its `study.toml` names."""
    try:
        text = (folder / STUDY_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return set()
    vocabularies = (folder / _VOCABULARIES).glob("*.json")
    numbered = (path.relative_to(folder) for path in vocabularies if path.stem.isdigit())
    possible = {*map(Path, _FILES.values()), *numbered}
    return {Path(STUDY_FILE), *(name for name in possible if f'"{name.as_posix()}"' in text)}


def refuse_to_overwrite(folder: Path) -> None:
    """Raise an error if a folder has files but no study. A new study may only replace an old one."""
    if folder.is_dir() and any(folder.iterdir()) and not (folder / STUDY_FILE).exists():
        raise PortrayalError(f"{folder} holds files but no {STUDY_FILE}; choose a new folder for the study.")
    if folder.exists() and not folder.is_dir():
        raise PortrayalError(f"{folder} is a file; choose a folder for the study.")


def _read_settings(path: Path) -> Mapping[str, Any]:
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


def _check_mapped(path: Path, tables_of: object) -> dict[str, dict[str, str]]:
    """Check the maps of label values to groups: `[mapped.gender]` with `M = "male"`."""
    if not isinstance(tables_of, dict):
        raise InputError([Problem(str(path), "tables [mapped.ATTRIBUTE] of value = group", shown(tables_of))])
    for attribute, names in tables_of.items():
        valid = isinstance(names, dict) and all(isinstance(group, str) and group for group in names.values())
        if not valid:
            expected = f"a table [mapped.{attribute}] of value = group"
            raise InputError([Problem(str(path), expected, shown(names))])
        check_mapping(names, f"{path}, [mapped.{attribute}]")
    return {attribute: dict(names) for attribute, names in tables_of.items()}


def _suggest_mapped_table(attribute: str, value: str, group: str) -> str:
    """The line of study.toml that unifies two spellings of a group, for files that no import wrote."""
    table, line = f"[mapped.{_toml_text(attribute)}]", f"{_toml_text(value)} = {_toml_text(group)}"
    return f"in {STUDY_FILE}, {table} with the line {line} makes them one"


def _listed_files(path: Path, table: str, value: object) -> list[tuple[str | None, str]]:
    """(system, file) pairs from `study.toml`: a file, a list of files, or a table system = file."""
    if value is None:
        return []
    if isinstance(value, str):
        return [(None, value)]
    if isinstance(value, list) and all(isinstance(file, str) for file in value):
        return [(None, file) for file in value]
    if (
        isinstance(value, dict)
        and table in ("captions", "rankings")
        and all(isinstance(file, str) for file in value.values())
    ):
        return list(value.items())
    raise InputError([Problem(str(path), f"{table} as the name of a file, or a list of names", shown(value))])


def _read_vocabularies(
    path: Path, files: Mapping[str, Any], problems: Problems
) -> dict[str, tuple[str, ...]]:
    vocabularies = {}
    for system, file in files.items():
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
    except DocumentError as error:
        raise problems.stop(source, "JSON", error.found, error.location) from None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise problems.stop(source, "a list of words", shown(words))
    for word in words:
        if not is_unicode(word):
            raise problems.stop(source, "words in Unicode", f"half of a character in {shown(word)}")
    return words


def _relative_to_study(folder: Path, images: Path) -> str:
    """The image folder relative to the study's folder if it is inside, so that they move together; else absolute."""
    absolute, study_folder = images.resolve(), folder.resolve()
    return str(absolute.relative_to(study_folder) if absolute.is_relative_to(study_folder) else absolute)


def _toml_text(text: str) -> str:
    """A TOML basic string. It is equal to JSON except for the DEL character, which JSON does not escape."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
