"""What a reader of a study should know before trusting a number made from it."""

from __future__ import annotations

import polars as pl

from portrayal.errors import counted
from portrayal.study.cautions import MANY
from portrayal.study.study import Study

_NO_TEXT = ("nan", "null", "none", "n/a", "na")  # what programs write where nothing is


def remarks(study: Study) -> list[str]:
    """Things that are not errors but change what the numbers mean, one sentence each."""
    found: list[str] = []
    if not study.captions.height and not study.rankings.height:
        found.append("the study has no captions of a system.")
    if study.left_out:
        found.append(f"{counted(study.left_out, 'bad row', 'was')} left out when it was read.")
    for system in study.vocabularies:
        if system not in study.systems:
            found.append(f"a vocabulary is named for '{system}', which is no system of the study.")
    empty = (
        study.captions.filter(pl.col("caption").str.strip_chars() == "")
        .group_by("system", maintain_order=True)
        .len()
    )
    for system, n in empty.iter_rows():
        found.append(
            f"{counted(n, 'empty caption')} of '{system}', which {'names' if n == 1 else 'name'} nobody."
        )
    blank = study.captions.filter(pl.col("caption").str.strip_chars().str.to_lowercase().is_in(_NO_TEXT))
    for system, n in blank.group_by("system", maintain_order=True).len().iter_rows():
        found.append(
            f"{counted(n, 'caption')} of '{system}' {'is' if n == 1 else 'are'} one of {', '.join(_NO_TEXT)}, which "
            "may stand for a missing caption; it is read as text that names nobody."
        )
    for attribute in study.attribute_names:
        blank_groups = [group for group in study.groups(attribute) if group.casefold() in _NO_TEXT]
        for group in blank_groups:
            found.append(
                f"{attribute} has a group called '{group}'; where that stands for a missing label, leave the cell "
                "empty."
            )
        unlabelled = study.captions.join(study.labels(attribute), on="image_id", how="anti")[
            "image_id"
        ].n_unique()
        if 0 < unlabelled <= MANY * study.captions["image_id"].n_unique():  # more of them are a caution
            found.append(
                f"{counted(unlabelled, 'captioned image', 'has')} no label for {attribute}; they count nowhere in it."
            )
        if len(study.groups(attribute)) == 1:
            found.append(f"{attribute} has one group only, so nothing can be compared.")
    for attribute in study.ranked_attributes:
        lists = study.ranked(attribute)
        unknown = lists.filter(pl.col(attribute).is_null())["image_id"].n_unique()
        if unknown:
            found.append(
                f"{counted(unknown, 'ranked item', 'has')} no label for {attribute}; "
                "such items keep their places and count nowhere."
            )
    if study.references.height:
        missing = study.captions.join(study.references, on="image_id", how="anti")["image_id"].n_unique()
        if 0 < missing <= MANY * study.captions["image_id"].n_unique():
            found.append(f"{counted(missing, 'captioned image', 'has')} no reference.")
    return found
