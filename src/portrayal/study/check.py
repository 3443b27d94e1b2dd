"""What a reader of a study should know before trusting a number made from it."""

from __future__ import annotations

import polars as pl

from portrayal.study.study import Study

SMALL_GROUP = 30  # images; a smaller group is shown with its n and is not ranked


def remarks(study: Study) -> list[str]:
    """Things that are not errors but change what the numbers mean, one sentence each."""
    found: list[str] = []
    captioned = study.captions.group_by("system").agg(pl.col("image_id").n_unique().alias("images"))
    if captioned.height > 1 and captioned["images"].n_unique() > 1:
        found.append(
            "the systems caption different numbers of images; compare them on the images they share."
        )
    for attribute in study.attribute_names:
        if attribute not in study.attributes.columns:
            continue
        labels = study.labels(attribute)
        unlabelled = study.captions.join(labels, on="image_id", how="anti")["image_id"].n_unique()
        if unlabelled:
            found.append(
                f"{unlabelled:,} captioned images have no label for {attribute}; they count nowhere in it."
            )
        counts = labels.group_by(attribute).len().sort(attribute)
        if counts.height == 1:
            found.append(f"{attribute} has one group only, so nothing can be compared.")
        for group, n in counts.iter_rows():
            if n < SMALL_GROUP:
                found.append(f"the group '{group}' of {attribute} has {n:,} images, too few to rank.")
    if study.references.height:
        missing = study.captions.join(study.references, on="image_id", how="anti")["image_id"].n_unique()
        if missing:
            found.append(f"{missing:,} captioned images have no reference.")
    return found
