"""portrayal audit"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from portrayal.auditing import audit
from portrayal.cli.audit_options import audit_options, resolve_settings
from portrayal.cli.console import clear_interrupt_message, echo, progress
from portrayal.cli.folders import (
    claim_folder,
    force_option,
    remove_empty_checkpoint,
    remove_stale,
    results_files,
    results_subject,
    stale_exports,
    write_checkpoint_owner,
)
from portrayal.cli.options import (
    comma_separated,
    out_option,
    seed_option,
    skip_bad_option,
    study_argument,
    systems_option,
    workers_option,
)
from portrayal.cli.study_loading import describe_skip, load_study
from portrayal.cli.tables import print_cautions, print_findings, print_results
from portrayal.errors import PortrayalError, counted
from portrayal.metrics.base.audit_settings import AuditSettings
from portrayal.report import thumbnail_images, write_page
from portrayal.results import RESULTS_FILE, Results
from portrayal.study import Study
from portrayal.study.thumbnails import thumbnails

CHECKPOINT = ".checkpoint"


@click.command("audit")
@study_argument
@out_option
@click.option(
    "--metrics",
    callback=comma_separated,
    metavar="A,B",
    help="Only these metrics, separated by commas. [default: all that STUDY allows]",
)
@systems_option
@audit_options
@workers_option
@click.option(
    "--quick",
    is_flag=True,
    help="Use fewer bootstrap resamples and repeats: faster, with less precise intervals.",
)
@seed_option
@skip_bad_option
@force_option
def command(
    study: Path,
    out: Path,
    metrics: list[str] | None,
    systems: list[str] | None,
    attribute: str | None,
    assignments: tuple[str, ...],
    workers: int,
    quick: bool,
    seed: int,
    skip_bad: bool,
    force: bool,
    **general: Any,
) -> None:
    """Run every metric that STUDY allows; write index.html, results.json and evidence.parquet.

    Progress is checkpointed; run the same command again to resume.
    """
    settings = resolve_settings(study, attribute, assignments, general)
    loaded = load_study(study, skip_bad)
    run_audit(loaded, out, metrics, systems, seed, quick, workers, settings, force)


def run_audit(
    study: Study,
    out: Path,
    metrics: list[str] | None = None,
    systems: list[str] | None = None,
    seed: int = 0,
    quick: bool = False,
    workers: int = 1,
    settings: AuditSettings | None = None,
    force: bool = False,
    allowed: tuple[str, ...] = (),
) -> Results:
    """Audit a study into `out` and print a summary; `allowed` names other files that may be in the folder."""
    settings = settings or AuditSettings()
    subject = results_subject(
        {"study": {"digest": (study.select_systems(systems) if systems else study).digest}}
    )
    checkpoint = out / CHECKPOINT
    stale = claim_folder(out, subject, force, checkpoint=checkpoint, allowed=allowed)
    write_checkpoint_owner(checkpoint, subject)
    try:
        with progress("audit", unit="tasks") as report_progress:
            results = audit(
                study,
                metrics=metrics,
                systems=systems,
                attribute=settings.attribute,
                options=settings.options,
                seed=seed,
                quick=quick,
                workers=workers,
                checkpoint=checkpoint,
                progress=report_progress,
                **settings.general,
            )
    except BaseException:
        remove_empty_checkpoint(checkpoint)
        raise
    if not results.measurements:
        remove_empty_checkpoint(checkpoint)
        reasons = "; ".join(
            f"{describe_skip(skip)}: {skip['reason']}" for skip in results.provenance["skipped"]
        )
        raise PortrayalError(f"Nothing was measured. {reasons}")
    stale = stale or stale_exports(out, results)
    if study.image_files:
        results = replace(results, thumbnails=thumbnails(study.image_files, thumbnail_images(results)))
    results.save(out)
    page = write_page(results, out)
    remove_stale(stale, results_files(out, with_images=bool(results.thumbnails.height)))
    # Only after the results are written, so that a kill before this point loses nothing.
    shutil.rmtree(checkpoint, ignore_errors=True)
    clear_interrupt_message()
    print_results(results, items=0, rest=f"{out / RESULTS_FILE} has it")
    echo()
    print_findings(results)
    print_cautions(results)
    for skip in results.provenance["skipped"]:
        echo(f"Not measured: {describe_skip(skip)}. {skip['reason']}", "dim")
    echo(
        f"{counted(len(results.measurements), 'measurement')}, {counted(results.evidence.height, 'row')} of evidence."
    )
    echo(f"The page, where every number opens its evidence: {page}")
    return results
