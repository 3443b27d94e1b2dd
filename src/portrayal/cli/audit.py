"""portrayal audit"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from portrayal.auditing import audit
from portrayal.cli.audit_options import asked_settings, audit_options
from portrayal.cli.console import finished, progress, say
from portrayal.cli.folders import (
    claim,
    clear,
    drop_empty_checkpoint,
    force_option,
    own_checkpoint,
    results_files,
    stale_exports,
    subject,
)
from portrayal.cli.options import (
    names,
    out_option,
    seed_option,
    skip_bad_option,
    study_argument,
    systems_option,
    workers_option,
)
from portrayal.cli.study_loading import load_study, told_skip
from portrayal.cli.tables import show_cautions, show_findings, show_results
from portrayal.errors import PortrayalError, counted
from portrayal.metrics.base.audit_settings import AuditSettings
from portrayal.report import pictured_images, write_page
from portrayal.results import RESULTS_FILE, Results
from portrayal.study import Study
from portrayal.study.thumbnails import thumbnails

JOURNAL = ".journal"


@click.command("audit")
@study_argument
@out_option
@click.option("--metrics", callback=names, metavar="A,B", help="Only these metrics.")
@systems_option
@audit_options
@workers_option
@click.option(
    "--engine", type=click.Choice(["local"]), default="local", show_default=True, help="Where to run."
)
@click.option("--quick", is_flag=True, help="Fewer draws: rougher intervals, sooner.")
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
    engine: str,  # noqa: ARG001  # one place so far
    quick: bool,
    seed: int,
    skip_bad: bool,
    force: bool,
    **general: Any,
) -> None:
    """Run every metric that STUDY allows; write index.html, results.json and evidence.parquet.

    What is finished is kept when the command is interrupted; the same command goes on from there.
    """
    asked = asked_settings(study, attribute, assignments, general)
    read = load_study(study, skip_bad)
    run_audit(read, out, metrics, systems, seed, quick, workers, asked, force)


def run_audit(
    study: Study,
    out: Path,
    metrics: list[str] | None = None,
    systems: list[str] | None = None,
    seed: int = 0,
    quick: bool = False,
    workers: int = 1,
    asked: AuditSettings | None = None,
    force: bool = False,
    beside: tuple[str, ...] = (),
) -> Results:
    asked = asked or AuditSettings()
    about = subject({"study": {"digest": (study.only(systems) if systems else study).digest}})
    checkpoint = out / JOURNAL
    old = claim(out, about, force, checkpoint=checkpoint, beside=beside)
    own_checkpoint(checkpoint, about)
    try:
        with progress("audit", kept="tasks") as report_progress:
            results = audit(
                study,
                metrics=metrics,
                systems=systems,
                attribute=asked.attribute,
                options=asked.options,
                seed=seed,
                quick=quick,
                workers=workers,
                checkpoint=checkpoint,
                progress=report_progress,
                **asked.general,
            )
    except BaseException:
        drop_empty_checkpoint(checkpoint)
        raise
    if not results.measurements:
        drop_empty_checkpoint(checkpoint)
        reasons = "; ".join(f"{told_skip(skip)}: {skip['reason']}" for skip in results.provenance["skipped"])
        raise PortrayalError(f"Nothing was measured. {reasons}")
    old = old or stale_exports(out, results)
    if study.pictures:
        results = replace(results, pictures=thumbnails(study.pictures, pictured_images(results)))
    results.save(out)
    page = write_page(results, out)
    clear(old, results_files(out, pictures=bool(results.pictures.height)))
    shutil.rmtree(checkpoint, ignore_errors=True)  # only now: until here a kill must lose nothing
    finished()
    show_results(results, items=0, rest=f"{out / RESULTS_FILE} has it")
    say()
    show_findings(results)
    show_cautions(results)
    for skip in results.provenance["skipped"]:
        say(f"Not measured: {told_skip(skip)}. {skip['reason']}", "dim")
    say(
        f"{counted(len(results.measurements), 'measurement')}, {counted(results.evidence.height, 'row')} of evidence."
    )
    say(f"The page, where every number opens its evidence: {page}")
    return results
