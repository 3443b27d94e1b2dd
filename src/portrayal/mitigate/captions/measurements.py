"""Rows about a remedy itself: how many captions changed, which words were left, how balanced images are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import numpy as np
import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.mitigate.captions.balancing import Balance
from portrayal.mitigate.captions.evidence import Evidence
from portrayal.mitigate.captions.rewrite import Rewritten
from portrayal.stats import rate, resampler, sorted_clusters

Captions = Sequence[tuple[str, str, Rewritten]]  # image, caption before, caption after


def rewrite_rows(
    builder: ResultBuilder,
    system: str,
    captions: Captions,
    evident: Evidence | None,
    labels: Mapping[str, str],
    seed: int,
    n_resamples: int,
) -> None:
    """What was rewritten in the captions of one system, of all images and of each group as labelled."""
    for group in (None, *sorted(set(labels.values()))):
        mine = [one for one in captions if group is None or labels.get(one[0]) == group]
        changed = [one for one in mine if one[2].changed]
        images, place = sorted_clusters([image for image, _, _ in mine])
        done, there = np.zeros(len(images)), np.zeros(len(images))
        np.add.at(there, place, 1.0)
        np.add.at(done, place, [float(bool(one.changed)) for _, _, one in mine])
        draw = resampler(images, seed, n_resamples)
        builder.add(
            "changed",
            rate(done, there, draw) if mine else None,
            system=system,
            group=group,
            n=len(mine),
            n_unit="caption",
            support=len(images),
            reason=None if mine else "no captioned image of this group",
            evidence=_told(changed, evident),
            resampler=draw,
        )
        counts = {
            "words": (sum(len(one.changed) for _, _, one in mine), changed),
            "left": (sum(len(one.left) for _, _, one in mine), [one for one in mine if one[2].left]),
        }
        for term, (count, behind) in counts.items():
            builder.add(
                term,
                float(count),
                system=system,
                group=group,
                n=len(mine),
                n_unit="caption",
                evidence=_told(behind, evident),
                in_brief=term == "words",
            )


def _told(captions: Captions, evident: Evidence | None) -> pl.DataFrame:
    rows = []
    for image, before, after in captions:
        detail: dict[str, object] = {"before": before, "changed": [list(pair) for pair in after.changed]}
        if after.left:
            detail["left"] = list(after.left)
        if evident is not None:
            detail["evidence"] = evident.told(image)
        rows.append((image, after.text, json.dumps(detail, ensure_ascii=False)))
    return pl.DataFrame(
        rows, schema=dict.fromkeys(("image_id", "caption", "detail"), pl.String()), orient="row"
    )


def balance_rows(builder: ResultBuilder, made: Balance, before: str | None, after: str) -> None:
    """How balanced images are, before and after some of them were kept."""
    for system, kept in ((before, False), (after, True)):
        if system is None:
            continue
        images = len(made.images(kept))
        builder.add("kept", float(images), system=system, n=len(made.groups))
        for group, count in made.counts(None, kept).items():
            builder.add("kept", float(count), system=system, group=group, n=len(made.groups))
        apart = {label: made.apart(label, kept) for label in made.frequent}
        builder.add(
            "groups-apart",
            made.apart(None, kept),
            system=system,
            n=images,
            reason=None if images else "no image can be kept",
        )
        known = [share for share in apart.values() if share is not None]
        builder.add(
            "objects-apart",
            float(np.mean(known)) if known else None,
            system=system,
            n=images,
            reason=None if known else "no object is labelled in enough images",
        )
        for label, share in apart.items():
            shown = sum(made.counts(label, kept).values())
            reason = None if shown else f"no kept image shows '{label}'"
            builder.add("objects-apart", share, system=system, item=label, n=shown, reason=reason)
