"""Measurements of the mitigation itself: changed captions, remaining group words, and balance of the images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.mitigate.captions.balancing import Balance
from portrayal.mitigate.captions.evidence import GroupEvidence
from portrayal.mitigate.captions.rewrite import RewrittenCaption
from portrayal.stats import rate, resampler, sorted_clusters

# Image, caption before, caption after.
CaptionPairs = Sequence[tuple[str, str, RewrittenCaption]]


def add_rewrite_rows(
    builder: ResultBuilder,
    system: str,
    captions: CaptionPairs,
    group_evidence: GroupEvidence | None,
    labels: Mapping[str, str],
    seed: int,
    n_resamples: int,
) -> None:
    """Add the changes in the captions of one system, for all images and for each labelled group."""
    for group in (None, *sorted(set(labels.values()))):
        group_captions = [item for item in captions if group is None or labels.get(item[0]) == group]
        changed = [item for item in group_captions if item[2].changed]
        images, image_index = sorted_clusters([image for image, _, _ in group_captions])
        n_changed, n_captions = np.zeros(len(images)), np.zeros(len(images))
        np.add.at(n_captions, image_index, 1.0)
        np.add.at(n_changed, image_index, [float(bool(item.changed)) for _, _, item in group_captions])
        image_resampler = resampler(images, seed, n_resamples)
        builder.add(
            "changed",
            rate(n_changed, n_captions, image_resampler) if group_captions else None,
            system=system,
            group=group,
            n=len(group_captions),
            n_unit="caption",
            support=len(images),
            reason=None if group_captions else "no captioned image of this group",
            evidence=_evidence_rows(changed, group_evidence),
            resampler=image_resampler,
        )
        counts = {
            "words": (sum(len(item.changed) for _, _, item in group_captions), changed),
            "left": (
                sum(len(item.left) for _, _, item in group_captions),
                [item for item in group_captions if item[2].left],
            ),
        }
        for term, (count, evidence_captions) in counts.items():
            builder.add(
                term,
                float(count),
                system=system,
                group=group,
                n=len(group_captions),
                n_unit="caption",
                evidence=_evidence_rows(evidence_captions, group_evidence),
                in_brief=term == "words",
            )


def _evidence_rows(captions: CaptionPairs, group_evidence: GroupEvidence | None) -> pl.DataFrame:
    rows = []
    for image, before, after in captions:
        detail: dict[str, object] = {"before": before, "changed": [list(pair) for pair in after.changed]}
        if after.left:
            detail["left"] = list(after.left)
        if group_evidence is not None:
            detail["evidence"] = group_evidence.describe(image)
        rows.append((image, after.text, json.dumps(detail, ensure_ascii=False)))
    return pl.DataFrame(
        rows, schema=dict.fromkeys(("image_id", "caption", "detail"), pl.String()), orient="row"
    )


def add_balance_rows(builder: ResultBuilder, image_set: Balance, before: str | None, after: str) -> None:
    """Add the balance of the images, before and after the selection."""
    for system, kept in ((before, False), (after, True)):
        if system is None:
            continue
        n_images = len(image_set.images(kept))
        builder.add("kept", float(n_images), system=system, n=len(image_set.groups))
        for group, count in image_set.counts(None, kept).items():
            builder.add("kept", float(count), system=system, group=group, n=len(image_set.groups))
        gaps = {label: image_set.gap(label, kept) for label in image_set.frequent}
        builder.add(
            "groups-apart",
            image_set.gap(None, kept),
            system=system,
            n=n_images,
            reason=None if n_images else "no image can be kept",
        )
        defined = [gap for gap in gaps.values() if gap is not None]
        builder.add(
            "objects-apart",
            float(np.mean(defined)) if defined else None,
            system=system,
            n=n_images,
            reason=None if defined else "no object is labelled in enough images",
        )
        for label, gap in gaps.items():
            n_shown = sum(image_set.counts(label, kept).values())
            reason = None if n_shown else f"no kept image shows '{label}'"
            builder.add("objects-apart", gap, system=system, item=label, n=n_shown, reason=reason)
