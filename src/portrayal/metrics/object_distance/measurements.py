"""The rows of object distance: closeness by group, its ratios, and objects one by one."""

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
from portrayal.metrics.shared.language_scores.caption_groups import columns_of, memberships
from portrayal.metrics.shared.language_scores.models import knows, similarities
from portrayal.metrics.shared.language_scores.ratios import largest_share, ratio, shares
from portrayal.metrics.shared.mentions import CaptionMentions
from portrayal.models.sentence_encoders import SentenceEncoder
from portrayal.stats import Estimate, Resampler, bootstrap

Values = NDArray[np.float64]
LISTED = 5  # images an object must be in to be listed
_OUTSIDE = "a cosine is negative, so that this is no part of a whole"


@dataclass(frozen=True)
class Images:
    """The images one speaker describes, by the closeness of their objects to each group."""

    builder: ResultBuilder
    source: str
    mentions: CaptionMentions
    labels: Mapping[str, list[str]]
    table: Mapping[str, Values | None]
    columns: tuple[str, ...]
    draw: Resampler

    @cached_property
    def _seen(self) -> list[list[tuple[str, Values]]]:
        """Per image its objects of which something is known."""
        return [
            [
                (label, row)
                for label in self.labels.get(image, ())
                if (row := self.table.get(label)) is not None
            ]
            for image in self.mentions.images
        ]

    def add(self) -> None:
        seen, size = self._seen, len(self.columns)
        totals = np.zeros((len(seen), 2 * size))  # the mean of an image's objects, and that there are some
        for image, some in enumerate(seen):
            if some:
                totals[image] = [*np.mean([row for _, row in some], axis=0), *[1.0] * size]
        n = [sum(1 for some in seen if some)] * size
        nothing = "no image has an object that is known, or no word for the group is"
        _add_ratios(self.builder, self.source, totals, self.columns, self.draw, nothing, n, self._evidence)
        labels = [label for image in self.mentions.images for label in self.labels.get(image, ())]
        unknown = [label for label in labels if self.table.get(label) is None]
        self.builder.add(
            "unknown", float(len(unknown)), system=self.source, n=len(labels), n_unit="object",
            evidence=self._with(set(unknown)), in_brief=True,
        )  # fmt: skip
        self._add_objects(self._evidence)

    @cached_property
    def _evidence(self) -> pl.DataFrame:
        texts = [", ".join(self.labels.get(self.mentions.images[place], ())) for place in self.mentions.image]
        return self.mentions.described(objects=texts)

    def _with(self, some: set[str]) -> pl.DataFrame:
        """The captions of images that have one of these labels."""
        places = [
            place
            for place, image in enumerate(self.mentions.images)
            if not some.isdisjoint(self.labels.get(image, ()))
        ]
        return self.mentions.evidence(np.isin(self.mentions.image, places), self._evidence)

    def _add_objects(self, told: pl.DataFrame) -> None:
        """Each object's closeness, and in how many images it is the nearest one to each group."""
        often: dict[str, int] = {}
        nearest: dict[tuple[str, int], list[int]] = {}
        for image, some in enumerate(self._seen):
            for label, _ in some:
                often[label] = often.get(label, 0) + 1
            for place in range(len(self.columns) if some else 0):
                if np.isnan(some[0][1][place]):
                    continue
                top = max(some, key=lambda one: (one[1][place], one[0]))[0]
                nearest.setdefault((top, place), []).append(image)
        groups = [place for place, column in enumerate(self.columns) if column != NEUTRAL]
        for label in sorted(label for label, times in often.items() if times >= LISTED):
            row = self.table[label]
            assert row is not None
            parts = dict(zip(groups, shares(row[None, groups])[0].tolist(), strict=True))
            there = self._with({label})
            for place, column in enumerate(self.columns):
                about = {
                    "system": self.source,
                    "group": column,
                    "item": label,
                    "n": often[label],
                    "evidence": there,
                }
                self._add_object(column, float(row[place]), parts.get(place), about)
                images = nearest.get((label, place), [])
                which = np.isin(self.mentions.image, images)
                self.builder.add(
                    "nearest", float(len(images)), system=self.source, group=column, item=label, n=often[label],
                    evidence=self.mentions.evidence(which, told),
                )  # fmt: skip

    def _add_object(self, column: str, close: float, part: float | None, about: dict[str, Any]) -> None:
        why = None if np.isfinite(close) else f"no word for {column} is known"
        self.builder.add("cosine", None if why else close, reason=why, in_brief=True, **about)
        if part is None:
            return
        known = bool(np.isfinite(part))
        why = None if known else "the groups' cosines do not add up to more than 0"
        if known and not 0 <= part <= 1:
            why = _OUTSIDE
        self.builder.add("to-group", part if known else None, reason=why, in_brief=True, **about)


def add_captions(
    builder: ResultBuilder,
    source: str,
    mentions: CaptionMentions,
    lexicon: Lexicon,
    labels: Mapping[str, list[str]],
    reader: SentenceEncoder,
    both: str,
    draw: Resampler,
) -> None:
    """Captions held against the objects of their images, by the group they name."""
    of_image = [labels.get(image, ()) for image in mentions.images]
    known_of = [" ".join(label for label in some if knows(reader, label)) for some in of_image]
    texts = [known_of[place] for place in mentions.image]
    close = np.where([bool(text) for text in texts], similarities(reader, mentions.captions, texts), np.nan)
    known = np.isfinite(close)
    counted = memberships(mentions, lexicon, both) * known[:, None]
    columns = columns_of(lexicon)
    sums = mentions.share_per_image(np.hstack([counted * np.where(known, close, 0.0)[:, None], counted]))
    n = [len(set(mentions.image[counted[:, place] > 0].tolist())) for place in range(len(columns))]
    nothing = "no caption of an image with a known object names"
    told = mentions.described(
        objects=texts, similarity=[round(float(c), 6) if np.isfinite(c) else None for c in close]
    )
    _add_ratios(builder, source, sums, columns, draw, nothing, n, told, counted)
    seen = np.array([bool(of_image[place]) for place in mentions.image], dtype=bool)
    unknown = set(mentions.image[seen & ~known].tolist())
    builder.add("unknown", float(len(unknown)), system=source, n=len(set(mentions.image[seen].tolist())))


def _add_ratios(
    builder: ResultBuilder,
    source: str,
    totals: Values,
    columns: Sequence[str],
    draw: Resampler,
    nothing: str,
    n: Sequence[int],
    told: pl.DataFrame,
    counted: Values | None = None,
) -> None:
    """Means per column (sums stand before counts in `totals`), their shares over groups, and ratios to neutral."""
    size = len(columns)
    groups = [place for place, column in enumerate(columns) if column != NEUTRAL]

    def means(t: Values) -> Values:
        return ratio(t[:, :size], t[:, size:])

    def with_all(t: Values) -> Values:
        found = means(t)
        return np.hstack([found, found[:, groups].mean(axis=1, keepdims=True)])

    mean = bootstrap(totals, with_all, draw)
    part = bootstrap(totals, lambda t: shares(means(t)[:, groups]), draw)
    _, most = largest_share(totals, lambda t: shares(means(t)[:, groups]), draw, len(groups))

    def put(term: str, estimate: Estimate, group: str | None, why: str) -> None:
        place = None if group is None else list(columns).index(group)
        if counted is None:
            captions = told
        else:
            which = counted[:, groups if place is None else [place]].sum(axis=1) > 0
            captions = told.filter(pl.Series(which, dtype=pl.Boolean))
        images = captions["image_id"].n_unique() if counted is not None and place is None else n[place or 0]
        builder.add(
            term, estimate, system=source, group=group, n=images, evidence=captions, resampler=draw,
            reason=why if estimate.value is None else outside(term, estimate.value),
            in_brief=term != "cosine" or (counted is None and place is not None),
        )  # fmt: skip

    def outside(term: str, value: float) -> str | None:
        return _OUTSIDE if term == "to-group" and not 0 <= value <= 1 else None

    put("cosine", mean[size], None, f"{nothing} one of the groups" if counted is not None else nothing)
    for place, column in enumerate(columns):
        put("cosine", mean[place], column, f"{nothing} {column}" if counted is not None else nothing)
    negative = "the cosines do not add up to more than 0, or one is undefined"
    put("to-group", most or Estimate.of(None), None, negative)
    for place, group in zip(groups, part, strict=True):
        put("to-group", group, columns[place], negative)
    if NEUTRAL in columns:
        neutral = list(columns).index(NEUTRAL)
        found = bootstrap(totals, lambda t: ratio(with_all(t), with_all(t)[:, [neutral]]), draw)
        why = "the cosine to a neutral word is not more than 0, or one is undefined"
        put("to-neutral", found[size], None, why)
        for place in groups:
            put("to-neutral", found[place], columns[place], why)
