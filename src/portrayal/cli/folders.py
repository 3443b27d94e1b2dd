"""Output folders: results of another study are not replaced without --force."""

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
    REPLICATES_FILE,
    RESULTS_FILE,
    THUMBNAILS_FILE,
    Results,
    open_results,
)
from portrayal.study.folder import STUDY_FILE

OWNER_FILE = ".of.json"  # in a checkpoint folder: the subject of its results
_RESULT_FILES = (
    RESULTS_FILE,
    EVIDENCE_FILE,
    REPLICATES_FILE,
    THUMBNAILS_FILE,
    "index.html",
    "results.csv",
    "results.md",
)
_EXPORT_ENDINGS = {
    "tables": (".csv", ".md", ".tex"),
    "charts": (".svg", ".png", ".json"),
    "captions": (".jsonl",),
    "images": (".csv",),
}
_SUBJECT_KEYS = ("kind", "digest", "first", "second", "systems")


def force_option(command: F) -> F:
    return click.option(
        "--force",
        is_flag=True,
        help="Overwrite results of another study in the output folder; your own files are kept.",
    )(command)


def results_subject(provenance: Mapping[str, Any], *, with_systems: bool = False) -> dict[str, Any]:
    """Return what results are about: the kind (audit, comparison, mitigation) and the study."""
    study = provenance.get("study")
    fields = dict(study) if isinstance(study, Mapping) else {}
    kind = next((kind for key, kind in _KINDS.items() if key in provenance), "audit")
    keys = [name for name in _SUBJECT_KEYS if name in fields and (name != "systems" or with_systems)]
    return {"kind": kind, **{name: fields[name] for name in keys}}


_KINDS = {
    "compared": "comparison",
    "mitigated": "mitigation of captions",
    "methods": "comparison of mitigations",
}


def claim_folder(
    out: Path,
    subject: Mapping[str, Any],
    force: bool,
    *,
    checkpoint: Path | None = None,
    allowed: Iterable[str] = (),
) -> list[Path]:
    """Return the files to remove once the new results are written; raise an error if the folder cannot be used.

    A folder may be new, empty, or hold results or a checkpoint of the same `subject`. Results of another study are
    replaced only with `force`. Files that no command of ours wrote are never removed; `allowed` names such files
    that may be in the folder.
    """
    if not out.is_dir() or not any(out.iterdir()):
        return []
    existing = _existing_subject(out, subject) or (_checkpoint_owner(checkpoint) if checkpoint else None)
    if existing is None:
        if checkpoint is not None and checkpoint.is_dir():
            return []
        # Our files without a results file: a command was killed while it wrote them.
        others = sorted(path.name for path in out.iterdir() if path.name not in (*allowed, *_RESULT_FILES))
        if others:
            raise PortrayalError(
                f"{out} holds files ({others[0]}) but no {RESULTS_FILE}; choose a new folder."
            )
        return []
    if existing == dict(subject):
        return []
    if not force:
        raise PortrayalError(
            f"{out} holds {_with_article(existing)} of another study; choose a new folder, or replace it with --force."
        )
    return [path for path in _written_files(out) if path.is_file()]


def stale_exports(out: Path, results: Results) -> list[Path]:
    """Return tables and charts of an earlier audit of the same study if its numbers differ from the new ones."""
    try:
        before = open_results(out).measurements
    except (PortrayalError, ValueError, RecursionError, OSError):
        return []
    return [] if before == results.measurements else [path for path in _written_files(out) if path.is_file()]


def remove_stale(stale: Iterable[Path], written: Iterable[Path]) -> None:
    """Remove files of replaced results that the new results did not overwrite."""
    keep = {path.resolve() for path in written}
    for path in stale:
        if path.resolve() not in keep:
            path.unlink(missing_ok=True)
            if path.parent.name in _EXPORT_ENDINGS and not any(path.parent.iterdir()):
                path.parent.rmdir()


def results_files(out: Path, *, with_images: bool = False, more: Iterable[Path] = ()) -> list[Path]:
    """Return the paths that a command has just written: page, results, evidence and more."""
    names = (
        RESULTS_FILE,
        EVIDENCE_FILE,
        REPLICATES_FILE,
        "index.html",
        *((THUMBNAILS_FILE,) if with_images else ()),
    )
    return [*(out / name for name in names), *more]


def write_checkpoint_owner(folder: Path, subject: Mapping[str, Any]) -> None:
    """Record the subject of a checkpoint folder, before the first checkpoint is written."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / OWNER_FILE).write_text(json.dumps(dict(subject)), encoding="utf-8")


def remove_empty_checkpoint(folder: Path) -> None:
    """Remove a checkpoint folder without entries, and its parent if that is empty then."""
    if not _has_entries(folder):
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent.is_dir() and not any(folder.parent.iterdir()):
            folder.parent.rmdir()


def _has_entries(folder: Path) -> bool:
    return folder.is_dir() and any(not path.name.startswith(".") for path in folder.iterdir())


def refuse_study(out: Path, force: bool) -> None:
    """Raise an error unless `out` is new or empty, or holds a study and `force` is given."""
    if not out.is_dir() or not any(out.iterdir()):
        return
    if not (out / STUDY_FILE).exists():
        raise PortrayalError(f"{out} holds files but no {STUDY_FILE}; choose a new folder for the study.")
    if not force:
        raise PortrayalError(f"{out} holds a study already; choose a new folder, or replace it with --force.")


def _existing_subject(out: Path, subject: Mapping[str, Any]) -> dict[str, Any] | None:
    if not (out / RESULTS_FILE).is_file():
        return None
    try:
        return results_subject(open_results(out).provenance, with_systems="systems" in subject)
    except (PortrayalError, ValueError, RecursionError):
        return {"kind": "results"}


def _checkpoint_owner(folder: Path) -> dict[str, Any] | None:
    if not _has_entries(folder):
        return None
    try:
        return json_object((folder / OWNER_FILE).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _with_article(subject: Mapping[str, Any]) -> str:
    # The subject of a checkpoint is read from a file, which may hold anything.
    kind = str(subject.get("kind") or "results")
    return kind if kind == "results" else f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _written_files(out: Path) -> list[Path]:
    exported = [
        path
        for name, endings in _EXPORT_ENDINGS.items()
        if (out / name).is_dir()
        for path in sorted((out / name).iterdir())
        if path.suffix in endings
    ]
    return [*(out / name for name in _RESULT_FILES), *exported]
