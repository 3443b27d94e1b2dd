"""Reading a study for a command, and telling what was left out of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from portrayal.cli.console import warn
from portrayal.errors import Problems, counted
from portrayal.study import Study
from portrayal.study.folder import read_study_noting
from portrayal.study.formats.raw_table import NOTHING
from portrayal.study.truncation import shortenings


def load_study(path: Path, skip_bad: bool) -> Study:
    problems = Problems(skip_bad)
    study = read_study_noting(
        path, problems, strict=skip_bad
    )  # what check-study would leave out, and no more
    problems.settle()
    tell_skipped(problems)
    for sentence in shortenings(study).values():
        warn(f"Caution: {sentence}")
    return study


def told_rankings(study: Study) -> str:
    """What the study's rankings are, in a few words."""
    lists = study.rankings.select("system", "query").n_unique()
    own = [name for name in study.ranked_attributes if name in study.rankings.columns]
    groups = f", with groups of {', '.join(own)}" if own else ""
    return (
        f"rankings: {counted(lists, 'list')} of {counted(study.rankings['image_id'].n_unique(), 'item')} for "
        f"{study.rankings['query'].n_unique():,} queries by {', '.join(study.rankers)}{groups}"
    )


def told_skip(skip: Mapping[str, str | None]) -> str:
    """The metric that was skipped, and the attribute where it was skipped for one."""
    return f"{skip['metric']} by {skip['attribute']}" if skip["attribute"] else str(skip["metric"])


def told_objects(study: Study) -> str:
    """What the study's object labels are: how many, of how many images, and from which source."""
    labels = study.objects.filter(pl.col("label").is_not_null())
    sources = ", ".join(sorted(set(study.objects["source"])))
    told = (
        f"objects: {labels.height:,} labels of {labels['label'].n_unique():,} kinds in "
        f"{labels['image_id'].n_unique():,} images by {sources}"
    )
    empty = study.objects.filter(pl.col("kind") == NOTHING)["image_id"].n_unique()
    return f"{told}; nothing in {empty:,} annotated images" if empty else told


def told_mapping(study: Study) -> list[str]:
    """Which values of labels were mapped to which groups, a line for each attribute."""
    lines = []
    for attribute, names in study.mapped.items():
        if not study.has_attribute(attribute) and attribute not in study.ranked_attributes:
            continue
        values: dict[str, list[str]] = {}
        for value, group in names.items():
            values.setdefault(group, []).append(value)
        pairs = "; ".join(f"{', '.join(some)} -> {group}" for group, some in values.items())
        lines.append(f"Labels of {attribute} were mapped: {pairs}.")
    return lines


def tell_skipped(problems: Problems) -> None:
    """Under --skip-bad nothing is lost in silence."""
    if problems.rows:
        warn(f"{counted(problems.count, 'bad row', 'was')} left out. The first: {problems.rows[0]}")
