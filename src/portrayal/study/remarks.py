"""Remarks: properties of a study that a user should know before using its numbers."""

from __future__ import annotations

import polars as pl

from portrayal.errors import counted
from portrayal.study.cautions import MISSING_SHARE
from portrayal.study.study import Study

_NO_TEXT = ("nan", "null", "none", "n/a", "na")  # how programs write missing values


def remarks(study: Study) -> list[str]:
    """Sentences about properties that are not errors but affect the interpretation of results."""
    sentences: list[str] = []
    if not study.captions.height and not study.rankings.height:
        sentences.append("the study has no captions of a system.")
    if study.left_out:
        sentences.append(f"{counted(study.left_out, 'bad row', 'was')} left out when it was read.")
    for system in study.vocabularies:
        if system not in study.systems:
            sentences.append(f"a vocabulary is named for '{system}', which is no system of the study.")
    empty = (
        study.captions.filter(pl.col("caption").str.strip_chars() == "")
        .group_by("system", maintain_order=True)
        .len()
    )
    for system, n in empty.iter_rows():
        sentences.append(
            f"{counted(n, 'empty caption')} of '{system}', which {'names' if n == 1 else 'name'} nobody."
        )
    blank = study.captions.filter(pl.col("caption").str.strip_chars().str.to_lowercase().is_in(_NO_TEXT))
    for system, n in blank.group_by("system", maintain_order=True).len().iter_rows():
        sentences.append(
            f"{counted(n, 'caption')} of '{system}' {'is' if n == 1 else 'are'} one of {', '.join(_NO_TEXT)}, which "
            "may stand for a missing caption; it is read as text that names nobody."
        )
    for attribute in study.attribute_names:
        blank_groups = [group for group in study.groups(attribute) if group.casefold() in _NO_TEXT]
        for group in blank_groups:
            sentences.append(
                f"{attribute} has a group called '{group}'; where that stands for a missing label, leave the cell "
                "empty."
            )
        unlabelled = study.captions.join(study.labels(attribute), on="image_id", how="anti")[
            "image_id"
        ].n_unique()
        if (
            0 < unlabelled <= MISSING_SHARE * study.captions["image_id"].n_unique()
        ):  # a larger share is a caution
            sentences.append(
                f"{counted(unlabelled, 'captioned image', 'has')} no label for {attribute}; they count nowhere in it."
            )
        if len(study.groups(attribute)) == 1:
            sentences.append(f"{attribute} has one group only, so nothing can be compared.")
    for attribute in study.ranked_attributes:
        ranked_items = study.ranked_items(attribute)
        unknown = ranked_items.filter(pl.col(attribute).is_null())["image_id"].n_unique()
        if unknown:
            sentences.append(
                f"{counted(unknown, 'ranked item', 'has')} no label for {attribute}; "
                "such items keep their places and count nowhere."
            )
    if study.references.height:
        missing = study.captions.join(study.references, on="image_id", how="anti")["image_id"].n_unique()
        if 0 < missing <= MISSING_SHARE * study.captions["image_id"].n_unique():
            sentences.append(f"{counted(missing, 'captioned image', 'has')} no reference.")
    return sentences
