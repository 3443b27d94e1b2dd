"""portrayal check-study"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from portrayal.auditing import MetricRun, lexicons_by_attribute, plan
from portrayal.cli.audit_options import audit_options, resolve_settings
from portrayal.cli.console import echo, print_table
from portrayal.cli.options import skip_bad_option, study_argument
from portrayal.cli.study_loading import (
    describe_mapping,
    describe_objects,
    describe_rankings,
    warn_skipped_rows,
)
from portrayal.errors import Problems, counted
from portrayal.metrics import METRICS
from portrayal.metrics.base.cautions import study_cautions
from portrayal.metrics.shared.lexicon_use import lexicon_remarks
from portrayal.study import Study
from portrayal.study.cautions import distinct_sentences
from portrayal.study.folder import read_study_collecting
from portrayal.study.remarks import remarks


@click.command("check-study")
@study_argument
@audit_options
@skip_bad_option
def command(
    study: Path, attribute: str | None, assignments: tuple[str, ...], skip_bad: bool, **general: Any
) -> None:
    """Validate STUDY: print its contents, its problems, and which metrics an audit with the same options runs.

    Exit code 2 if there is a problem.
    """
    settings = resolve_settings(study, attribute, assignments, general)
    problems = Problems(skip_bad)
    loaded = read_study_collecting(study, problems, strict=True)
    planned = plan(
        loaded,
        list(METRICS.values()),
        attribute=settings.attribute,
        options=settings.options,
        **settings.general,
    )
    _print_contents(loaded)
    for line in describe_mapping(loaded):
        echo(line)
    for sentence in distinct_sentences(study_cautions(loaded)):
        echo(f"Caution: {sentence}")
    for remark in (*lexicon_remarks(loaded, lexicons_by_attribute(planned[0])), *remarks(loaded)):
        echo(f"Note: {remark}")
    echo()
    echo("Metrics", style="bold")
    _print_plan(*planned)
    echo()
    problems.settle()
    warn_skipped_rows(problems)
    echo("Nothing is wrong with it." if not problems.rows else "The rest can be used.")


def _print_plan(runs: Sequence[MetricRun], skipped: Sequence[Mapping[str, str | None]]) -> None:
    """Print what `audit` will measure and skip; the same code decides it."""
    rows = []
    for name in METRICS:
        measured = [run.attribute for run in runs if run.metric.name == name]
        if measured:
            rows.append([name, f"yes, by {', '.join(measured)}"])
        for skip in skipped:
            if skip["metric"] == name:
                reason = (
                    f"{skip['attribute']}: {skip['reason']}" if skip["attribute"] else str(skip["reason"])
                )
                rows.append([name if not measured else "", f"no. {reason}"])
    print_table(["metric", "measured by an audit"], rows)


def _print_contents(study: Study) -> None:
    echo(f"{study.name}: {counted(study.image_ids.len(), 'image')}", style="bold")
    rows = []
    for source in study.sources:
        captions = study.captions_of(source)
        words = len(study.vocabularies.get(source, ()))
        rows.append(
            [
                source,
                f"{captions['image_id'].n_unique():,}",
                f"{captions.height:,}",
                f"{words:,}" if words else "–",
            ]
        )
    if rows:
        print_table(["source", "images", "captions", "vocabulary"], rows, {1, 2, 3})
        echo()
    groups = []
    for attribute in study.attribute_names:
        groups += [[attribute, group, f"{n:,}"] for group, n in study.group_counts(attribute).items()]
    if groups:
        print_table(["attribute", "group", "images"], groups, {2})
    if study.objects.height:
        echo(describe_objects(study))
    if study.rankings.height:
        echo(describe_rankings(study))
    if study.images is not None:
        echo(
            f"image files: {len(set(study.image_files) & set(study.image_ids)):,} of {study.image_ids.len():,} images"
        )
