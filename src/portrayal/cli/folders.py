"""Folders that commands write to: what lies there of another study is not replaced unless a user says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from portrayal.cli.options import F
from portrayal.documents import json_object
from portrayal.errors import PortrayalError
from portrayal.results import (
    EVIDENCE_FILE,
    PICTURES_FILE,
    REPLICATES_FILE,
    RESULTS_FILE,
    Results,
    open_results,
)
from portrayal.study.folder import STUDY_FILE

OWNER_FILE = ".of.json"  # in a folder of checkpoints: whose they are
_FILES = (
    RESULTS_FILE,
    EVIDENCE_FILE,
    REPLICATES_FILE,
    PICTURES_FILE,
    "index.html",
    "results.csv",
    "results.md",
)
_EXPORTS = {
    "tables": (".csv", ".md", ".tex"),
    "charts": (".svg", ".png", ".json"),
    "captions": (".jsonl",),
    "images": (".csv",),
}
_WHAT = ("kind", "digest", "first", "second", "systems")


def force_option(command: F) -> F:
    return click.option(
        "--force",
        is_flag=True,
        help="Replace what the folder holds of another study; files of yours are kept.",
    )(command)


def subject(provenance: Mapping[str, Any], *, with_systems: bool = False) -> dict[str, Any]:
    """What results are about: a comparison, a mitigation or an audit, of which study."""
    study = provenance.get("study")
    about = dict(study) if isinstance(study, Mapping) else {}
    kind = next((kind for key, kind in _KINDS.items() if key in provenance), "audit")
    kept = {name: about[name] for name in _WHAT if name in about and (name != "systems" or with_systems)}
    return {"kind": kind, **kept}


_KINDS = {"compared": "comparison", "remedied": "mitigation", "methods": "comparison of mitigations"}


def claim(
    out: Path,
    asked: Mapping[str, Any],
    force: bool,
    *,
    checkpoint: Path | None = None,
    beside: Iterable[str] = (),
) -> list[Path]:
    """The files that are to be removed once the new results are written; an error where the folder is not ours to use.

    A folder may be new, empty, or hold the same results (`asked` is their subject) or their checkpoint. Another
    study's are replaced with `force` only. Files that no command of ours wrote are never removed.
    """
    if not out.is_dir() or not any(out.iterdir()):
        return []
    held = _held(out, asked) or (_checkpointed(checkpoint) if checkpoint else None)
    if held is None:
        if checkpoint is not None and checkpoint.is_dir():
            return []
        # Files of ours without results are what a command left that was killed while it wrote them.
        others = sorted(path.name for path in out.iterdir() if path.name not in (*beside, *_FILES))
        if others:
            raise PortrayalError(
                f"{out} holds files ({others[0]}) but no {RESULTS_FILE}; choose a new folder."
            )
        return []
    if held == dict(asked):
        return []
    if not force:
        raise PortrayalError(
            f"{out} holds {_told(held)} of another study; choose a new folder, or replace it with --force."
        )
    return [path for path in _ours(out) if path.is_file()]


def stale_exports(out: Path, results: Results) -> list[Path]:
    """Tables and charts of an earlier audit of the same study, where its numbers are others than the new ones."""
    try:
        before = open_results(out).measurements
    except (PortrayalError, ValueError, RecursionError, OSError):
        return []
    return [] if before == results.measurements else [path for path in _ours(out) if path.is_file()]


def clear(old: Iterable[Path], written: Iterable[Path]) -> None:
    """Remove what is left of results that were replaced."""
    new = {path.resolve() for path in written}
    for path in old:
        if path.resolve() not in new:
            path.unlink(missing_ok=True)
            if path.parent.name in _EXPORTS and not any(path.parent.iterdir()):
                path.parent.rmdir()


def results_files(out: Path, *, pictures: bool = False, more: Iterable[Path] = ()) -> list[Path]:
    """What a command has just written: the page, the results and the files beside them."""
    names = (
        RESULTS_FILE,
        EVIDENCE_FILE,
        REPLICATES_FILE,
        "index.html",
        *((PICTURES_FILE,) if pictures else ()),
    )
    return [*(out / name for name in names), *more]


def own_checkpoint(folder: Path, asked: Mapping[str, Any]) -> None:
    """Note whose checkpoints a folder will hold, before the first of them is written."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OWNER_FILE).write_text(json.dumps(dict(asked)), encoding="utf-8")


def drop_empty_checkpoint(folder: Path) -> None:
    """Where work ended before anything was finished, leave no trace of it."""
    if not _entries(folder):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()


def _entries(folder: Path) -> bool:
    return folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir())


def refuse_study(out: Path, force: bool) -> None:
    """A study is written to a new or empty folder; over another study with `force`, over anything else never."""
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not (out / STUDY_FILE).exists():
        raise PortrayalError(f"{out} holds files but no {STUDY_FILE}; choose a new folder for the study.")
    if not force:
        raise PortrayalError(f"{out} holds a study already; choose a new folder, or replace it with --force.")


def _held(out: Path, asked: Mapping[str, Any]) -> dict[str, Any] | None:
    if not (out / RESULTS_FILE).is_file():
        return None
    try:
        return subject(open_results(out).provenance, with_systems="systems" in asked)
    except (PortrayalError, ValueError, RecursionError):
        return {"kind": "results"}


def _checkpointed(folder: Path) -> dict[str, Any] | None:
    if not _entries(folder):
        return None
    try:
        return json_object((folder / OWNER_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _told(held: Mapping[str, Any]) -> str:
    kind = str(
        held.get("kind") or "results"
    )  # a checkpoint's owner is read from a file, which may say anything
    return kind if kind == "results" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _ours(out: Path) -> list[Path]:
    exported = [
        path
        for name, endings in _EXPORTS.items()
        if (out / name).is_dir()
        for path in sorted((out / name).iterdir())
        if path.suffix in endings
    ]
    return [*(out / name for name in _FILES), *exported]
