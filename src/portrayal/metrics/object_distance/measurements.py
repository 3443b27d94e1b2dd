"""Measurements of object distance: cosines by group, their ratios, and single objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.lexicon import NEUTRAL, Lexicon
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import CaptionMentions
from portrayal.metrics.shared.language_scores.caption_groups import group_columns, memberships
from portrayal.metrics.shared.language_scores.models import in_vocabulary, similarities
from portrayal.metrics.shared.language_scores.ratios import largest_share, ratio, shares
from portrayal.models.sentence_encoders import SentenceEncoder
from portrayal.stats import Estimate, Resampler, bootstrap

Values = NDArray[np.float64]
# Minimum number of images of an object to be listed.
MIN_IMAGES_LISTED = 5
_NOT_A_SHARE = "a cosine is negative, so that this is no part of a whole"


@dataclass(frozen=True)
class ObjectDistanceMeasurements:
    """Measurements of one source at the levels word and template: cosines of objects of its images and groups."""

    builder: ResultBuilder
    source: str
    mentions: CaptionMentions
    labels: Mapping[str, list[str]]
    cosines: Mapping[str, Values | None]
    columns: tuple[str, ...]
    resamples: Resampler

    @cached_property
    def _known_objects(self) -> list[list[tuple[str, Values]]]:
        """The objects of each image that have a cosine, with their cosines to each column."""
        return [
            [
                (label, row)
                for label in self.labels.get(image, ())
                if (row := self.cosines.get(label)) is not None
            ]
            for image in self.mentions.images
        ]

    def add(self) -> None:
        """Add all rows of the source."""
        known_objects, size = self._known_objects, len(self.columns)
        totals = np.zeros(
            (len(known_objects), 2 * size)
        )  # mean over the objects, and an indicator of having any
        for image, objects in enumerate(known_objects):
            if objects:
                totals[image] = [*np.mean([row for _, row in objects], axis=0), *[1.0] * size]
        n = [sum(1 for objects in known_objects if objects)] * size
        undefined_reason = "no image has an object that is known, or no word for the group is"
        _add_ratios(
            self.builder,
            self.source,
            totals,
            self.columns,
            self.resamples,
            undefined_reason,
            n,
            self._evidence,
        )
        labels = [label for image in self.mentions.images for label in self.labels.get(image, ())]
        unknown = [label for label in labels if self.cosines.get(label) is None]
        self.builder.add(
            "unknown", float(len(unknown)), system=self.source, n=len(labels), n_unit="object",
            evidence=self._evidence_with(set(unknown)), in_brief=True,
        )  # fmt: skip
        self._add_objects(self._evidence)

    @cached_property
    def _evidence(self) -> pl.DataFrame:
        texts = [
            ", ".join(self.labels.get(self.mentions.images[index], ())) for index in self.mentions.image_index
        ]
        return self.mentions.evidence_table(objects=texts)

    def _evidence_with(self, wanted: set[str]) -> pl.DataFrame:
        """Evidence: captions of images with one of these labels."""
        indices = [
            index
            for index, image in enumerate(self.mentions.images)
            if not wanted.isdisjoint(self.labels.get(image, ()))
        ]
        return self.mentions.evidence(np.isin(self.mentions.image_index, indices), self._evidence)

    def _add_objects(self, evidence_table: pl.DataFrame) -> None:
        """Add the cosines of each object, and the number of images in which it is the nearest to each group."""
        image_counts: dict[str, int] = {}
        nearest: dict[tuple[str, int], list[int]] = {}
        for image, objects in enumerate(self._known_objects):
            for label, _ in objects:
                image_counts[label] = image_counts.get(label, 0) + 1
            for column_index in range(len(self.columns) if objects else 0):
                if np.isnan(objects[0][1][column_index]):
                    continue
                top = max(objects, key=lambda item: (item[1][column_index], item[0]))[0]
                nearest.setdefault((top, column_index), []).append(image)
        groups = [column_index for column_index, column in enumerate(self.columns) if column != NEUTRAL]
        for label in sorted(
            label for label, n_images in image_counts.items() if n_images >= MIN_IMAGES_LISTED
        ):
            row = self.cosines[label]
            assert row is not None
            group_shares = dict(zip(groups, shares(row[None, groups])[0].tolist(), strict=True))
            captions = self._evidence_with({label})
            for column_index, column in enumerate(self.columns):
                common = {
                    "system": self.source,
                    "group": column,
                    "item": label,
                    "n": image_counts[label],
                    "evidence": captions,
                }
                self._add_object(column, float(row[column_index]), group_shares.get(column_index), common)
                images = nearest.get((label, column_index), [])
                mask = np.isin(self.mentions.image_index, images)
                self.builder.add(
                    "nearest", float(len(images)), system=self.source, group=column, item=label, n=image_counts[label],
                    evidence=self.mentions.evidence(mask, evidence_table),
                )  # fmt: skip

    def _add_object(self, column: str, cosine: float, share: float | None, common: dict[str, Any]) -> None:
        reason = None if np.isfinite(cosine) else f"no word for {column} is known"
        self.builder.add("cosine", None if reason else cosine, reason=reason, in_brief=True, **common)
        if share is None:
            return
        known = bool(np.isfinite(share))
        reason = None if known else "the groups' cosines do not add up to more than 0"
        if known and not 0 <= share <= 1:
            reason = _NOT_A_SHARE
        self.builder.add("to-group", share if known else None, reason=reason, in_brief=True, **common)


def add_caption_measurements(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    lexicon: Lexicon,
    labels: Mapping[str, list[str]],
    encoder: SentenceEncoder,
    both: str,
    resamples: Resampler,
) -> None:
    """Measurements at the level caption: cosines of captions and the objects of their images, by group named."""
    image_labels = [labels.get(image, ()) for image in mentions.images]
    known_labels = [
        " ".join(label for label in caption_labels if in_vocabulary(encoder, label))
        for caption_labels in image_labels
    ]
    texts = [known_labels[index] for index in mentions.image_index]
    cosine = np.where([bool(text) for text in texts], similarities(encoder, mentions.captions, texts), np.nan)
    known = np.isfinite(cosine)
    membership = memberships(mentions, lexicon, both) * known[:, None]
    columns = group_columns(lexicon)
    sums = mentions.mean_per_image(
        np.hstack([membership * np.where(known, cosine, 0.0)[:, None], membership])
    )
    n = [len(set(mentions.image_index[membership[:, index] > 0].tolist())) for index in range(len(columns))]
    undefined_reason = "no caption of an image with a known object names"
    evidence_table = mentions.evidence_table(
        objects=texts, similarity=[round(float(c), 6) if np.isfinite(c) else None for c in cosine]
    )
    _add_ratios(builder, source, sums, columns, resamples, undefined_reason, n, evidence_table, membership)
    has_objects = np.array([bool(image_labels[index]) for index in mentions.image_index], dtype=bool)
    unknown = set(mentions.image_index[has_objects & ~known].tolist())
    builder.add(
        "unknown", float(len(unknown)), system=source, n=len(set(mentions.image_index[has_objects].tolist()))
    )


def _add_ratios(
    builder: ResultBuilder,
    source: str,
    totals: Values,
    columns: Sequence[str],
    resamples: Resampler,
    undefined_reason: str,
    n: Sequence[int],
    evidence_table: pl.DataFrame,
    membership: Values | None = None,
) -> None:
    """Add means per column (`totals`: sums, then counts), their shares over groups, and ratios to neutral."""
    size = len(columns)
    groups = [index for index, column in enumerate(columns) if column != NEUTRAL]

    def means(t: Values) -> Values:
        return ratio(t[:, :size], t[:, size:])

    def with_all(t: Values) -> Values:
        ratio_estimates = means(t)
        return np.hstack([ratio_estimates, ratio_estimates[:, groups].mean(axis=1, keepdims=True)])

    mean_estimates = bootstrap(totals, with_all, resamples)
    group_shares = bootstrap(totals, lambda t: shares(means(t)[:, groups]), resamples)
    _, largest = largest_share(totals, lambda t: shares(means(t)[:, groups]), resamples, len(groups))

    def add(term: str, estimate: Estimate, group: str | None, reason: str) -> None:
        index = None if group is None else list(columns).index(group)
        if membership is None:
            captions = evidence_table
        else:
            mask = membership[:, groups if index is None else [index]].sum(axis=1) > 0
            captions = evidence_table.filter(pl.Series(mask, dtype=pl.Boolean))
        images = (
            captions["image_id"].n_unique() if membership is not None and index is None else n[index or 0]
        )
        builder.add(
            term, estimate, system=source, group=group, n=images, evidence=captions, resampler=resamples,
            reason=reason if estimate.value is None else outside(term, estimate.value),
            in_brief=term != "cosine" or (membership is None and index is not None),
        )  # fmt: skip

    def outside(term: str, value: float) -> str | None:
        return _NOT_A_SHARE if term == "to-group" and not 0 <= value <= 1 else None

    add(
        "cosine",
        mean_estimates[size],
        None,
        f"{undefined_reason} one of the groups" if membership is not None else undefined_reason,
    )
    for index, column in enumerate(columns):
        add(
            "cosine",
            mean_estimates[index],
            column,
            f"{undefined_reason} {column}" if membership is not None else undefined_reason,
        )
    negative = "the cosines do not add up to more than 0, or one is undefined"
    add("to-group", largest or Estimate.of(None), None, negative)
    for index, group in zip(groups, group_shares, strict=True):
        add("to-group", group, columns[index], negative)
    if NEUTRAL in columns:
        neutral = list(columns).index(NEUTRAL)
        ratio_estimates = bootstrap(
            totals, lambda t: ratio(with_all(t), with_all(t)[:, [neutral]]), resamples
        )
        reason = "the cosine to a neutral word is not more than 0, or one is undefined"
        add("to-neutral", ratio_estimates[size], None, reason)
        for index in groups:
            add("to-neutral", ratio_estimates[index], columns[index], reason)
