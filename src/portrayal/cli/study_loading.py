"""Loading a study for a command, and one-line descriptions of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from portrayal.cli.console import print_warning
from portrayal.errors import Problems, counted
from portrayal.study import Study
from portrayal.study.folder import read_study_collecting
from portrayal.study.formats.raw_table import NO_LABEL
from portrayal.study.truncation import truncation_notes


def load_study(path: Path, skip_bad: bool) -> Study:
    problems = Problems(skip_bad)
    # Skips exactly the rows that check-study skips.
    study = read_study_collecting(path, problems, strict=skip_bad)
    problems.settle()
    warn_skipped_rows(problems)
    for sentence in truncation_notes(study).values():
        print_warning(f"Caution: {sentence}")
    return study


def describe_rankings(study: Study) -> str:
    """Return a one-line summary of the study's rankings."""
    lists = study.rankings.select("system", "query").n_unique()
    attributes = [name for name in study.ranked_attributes if name in study.rankings.columns]
    groups = f", with groups of {', '.join(attributes)}" if attributes else ""
    return (
        f"rankings: {counted(lists, 'list')} of {counted(study.rankings['image_id'].n_unique(), 'item')} for "
        f"{study.rankings['query'].n_unique():,} queries by {', '.join(study.rankers)}{groups}"
    )


def describe_skip(skip: Mapping[str, str | None]) -> str:
    """Return the skipped metric, with the attribute if it was skipped for that one only."""
    return f"{skip['metric']} by {skip['attribute']}" if skip["attribute"] else str(skip["metric"])


def describe_objects(study: Study) -> str:
    """Return a one-line summary of the study's object labels: how many, of how many images, from which source."""
    labels = study.objects.filter(pl.col("label").is_not_null())
    sources = ", ".join(sorted(set(study.objects["source"])))
    text = (
        f"objects: {labels.height:,} labels of {labels['label'].n_unique():,} kinds in "
        f"{labels['image_id'].n_unique():,} images by {sources}"
    )
    empty = study.objects.filter(pl.col("kind") == NO_LABEL)["image_id"].n_unique()
    return f"{text}; nothing in {empty:,} annotated images" if empty else text


def describe_mapping(study: Study) -> list[str]:
    """Return which label values were mapped to which groups, one line per attribute."""
    lines = []
    for attribute, names in study.mapped.items():
        if not study.has_attribute(attribute) and attribute not in study.ranked_attributes:
            continue
        values: dict[str, list[str]] = {}
        for value, group in names.items():
            values.setdefault(group, []).append(value)
        pairs = "; ".join(f"{', '.join(listed)} -> {group}" for group, listed in values.items())
        lines.append(f"Labels of {attribute} were mapped: {pairs}.")
    return lines


def warn_skipped_rows(problems: Problems) -> None:
    """Print how many rows --skip-bad has skipped, and the first one."""
    if problems.rows:
        print_warning(f"{counted(problems.count, 'bad row', 'was')} left out. The first: {problems.rows[0]}")
