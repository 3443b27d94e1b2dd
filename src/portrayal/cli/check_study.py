"""portrayal check-study"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from portrayal.auditing import Run, lexicons_of, plan
from portrayal.cli.audit_options import asked_settings, audit_options
from portrayal.cli.console import say, show_table
from portrayal.cli.options import skip_bad_option, study_argument
from portrayal.cli.study_loading import tell_skipped, told_mapping, told_objects, told_rankings
from portrayal.errors import Problems, counted
from portrayal.metrics import METRICS
from portrayal.metrics.base.cautions import study_cautions
from portrayal.metrics.shared.lexicon_use import lexicon_remarks
from portrayal.study import Study
from portrayal.study.cautions import distinct
from portrayal.study.folder import read_study_noting
from portrayal.study.remarks import remarks


@click.command("check-study")
@study_argument
@audit_options
@skip_bad_option
def command(
    study: Path, attribute: str | None, assignments: tuple[str, ...], skip_bad: bool, **general: Any
) -> None:
    """Say what is in STUDY, what is wrong with it, and which metrics an audit with the same options runs.

    Exit code 2 when something is wrong.
    """
    asked = asked_settings(study, attribute, assignments, general)
    problems = Problems(skip_bad)
    read = read_study_noting(study, problems, strict=True)
    planned = plan(
        read, list(METRICS.values()), attribute=asked.attribute, options=asked.options, **asked.general
    )
    _show_contents(read)
    for line in told_mapping(read):
        say(line)
    for sentence in distinct(study_cautions(read)):
        say(f"Caution: {sentence}")
    for remark in (*lexicon_remarks(read, lexicons_of(planned[0])), *remarks(read)):
        say(f"Note: {remark}")
    say()
    say("Metrics", style="bold")
    _show_plan(*planned)
    say()
    problems.settle()
    tell_skipped(problems)
    say("Nothing is wrong with it." if not problems.rows else "The rest can be used.")


def _show_plan(runs: Sequence[Run], skipped: Sequence[Mapping[str, str | None]]) -> None:
    """What `audit` will measure and skip, by the same code."""
    rows = []
    for name in METRICS:
        measured = [run.attribute for run in runs if run.metric.name == name]
        if measured:
            rows.append([name, f"yes, by {', '.join(measured)}"])
        for skip in skipped:
            if skip["metric"] == name:
                why = f"{skip['attribute']}: {skip['reason']}" if skip["attribute"] else str(skip["reason"])
                rows.append([name if not measured else "", f"no. {why}"])
    show_table(["metric", "measured by an audit"], rows)


def _show_contents(study: Study) -> None:
    say(f"{study.name}: {counted(study.image_ids.len(), 'image')}", style="bold")
    rows = []
    for source in study.sources:
        spoken = study.spoken(source)
        words = len(study.vocabularies.get(source, ()))
        rows.append(
            [
                source,
                f"{spoken['image_id'].n_unique():,}",
                f"{spoken.height:,}",
                f"{words:,}" if words else "–",
            ]
        )
    if rows:
        show_table(["source", "images", "captions", "vocabulary"], rows, {1, 2, 3})
        say()
    groups = []
    for attribute in study.attribute_names:
        groups += [[attribute, group, f"{n:,}"] for group, n in study.group_counts(attribute).items()]
    if groups:
        show_table(["attribute", "group", "images"], groups, {2})
    if study.objects.height:
        say(told_objects(study))
    if study.rankings.height:
        say(told_rankings(study))
    if study.images is not None:
        say(
            f"pictures: {len(set(study.pictures) & set(study.image_ids)):,} of {study.image_ids.len():,} images"
        )
