"""Count captions: sums over images that can be merged across parts, with a sample of captions as evidence for each."""

from __future__ import annotations

import json
import sys
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.harms.image_records import ImageRecord
from portrayal.stats import Estimate, Resampler, normal_p, resampler, wilson_of_sums

# Studies of more images keep no bootstrap resamples, so that two audits of them cannot be compared in pairs.
MAX_PAIRED_IMAGES = 100_000
DEFAULT_TOP = 20  # words reported of each kind
KEEP_ALL = sys.maxsize  # evidence limit: keep every caption
# Captions kept as evidence of one word. There are thousands of words, and few are reported in the end.
MAX_ITEM_CAPTIONS = 40
KIND_SEPARATOR = ": "  # between a kind and one of its words ("gender: man")
CountedCaption = tuple[str, frozenset[str | None], Mapping[str, Any]]  # caption, items it counts for, detail

_RankedCaption = tuple[str, frozenset[str | None], Mapping[str, Any], int]
_MAX_RANK = 2**32
_Key = tuple[str | None, str | None]  # item, group


def item_evidence_limit(evidence: int) -> int:
    """The number of captions to keep as evidence of one item, given the limit for a row."""
    return evidence if evidence == KEEP_ALL else min(evidence, MAX_ITEM_CAPTIONS)


@dataclass
class CaptionSample:
    """A sample of captions that depends on the captions only, not on their order."""

    size: int
    rows: list[tuple[int, str, str, Mapping[str, Any]]] = field(
        default_factory=list
    )  # rank, image, caption, detail
    max_rank: int = _MAX_RANK  # captions with a higher rank are not sampled

    def add(self, image: str, caption: str, detail: Mapping[str, Any], rank: int | None = None) -> None:
        rank = stable_rank(image, caption) if rank is None else rank
        if rank <= self.max_rank:
            self.rows.append((rank, image, caption, detail))
            if len(self.rows) >= 2 * self.size:
                self._trim()

    def merge(self, other: CaptionSample) -> None:
        self.rows += other.rows
        self._trim()

    def frame(self) -> pl.DataFrame:
        """The sample as an evidence frame."""
        self._trim()
        rows = sorted(
            (image, caption, json.dumps(detail, ensure_ascii=False))
            for _, image, caption, detail in self.rows
        )
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")

    def _trim(self) -> None:
        if len(self.rows) > self.size:
            self.rows = sorted(self.rows, key=lambda row: row[:3])[: self.size]
            self.max_rank = self.rows[-1][0]


class CaptionSamples(dict[Any, CaptionSample]):
    """A caption sample for each of many keys."""

    def __init__(self, evidence: int):
        super().__init__()
        self.size = item_evidence_limit(evidence)

    def __missing__(self, key: Any) -> CaptionSample:
        self[key] = CaptionSample(self.size)
        return self[key]

    def merge(self, other: CaptionSamples) -> None:
        for key, sample in other.items():
            self[key].merge(sample)

    def merged_frame(self, keys: Iterable[Any], size: int) -> pl.DataFrame:
        """One evidence frame of the samples of several keys."""
        merged = CaptionSample(size)
        for key in keys:
            merged.merge(self[key])
        return merged.frame()


def kind_of(item: str) -> str:
    """The kind that a word is reported under; "" if it has none.

    >>> kind_of("gender: man"), kind_of("man -> person")
    ('gender', '')
    """
    kind, colon, _ = item.partition(KIND_SEPARATOR)
    return kind if colon else ""


def stable_rank(image: str, caption: str) -> int:
    """A pseudo-random rank of a caption, the same in every run."""
    return zlib.crc32(f"{image}\x1f{caption}".encode("utf-8", "surrogatepass"))


@dataclass
class _ItemSums:
    """Sums over images of one item and group."""

    sample: CaptionSample
    total: float = 0.0
    squares: float = 0.0

    def merge(self, other: _ItemSums) -> None:
        self.total += other.total
        self.squares += other.squares
        self.sample.merge(other.sample)


@dataclass
class CaptionCounts:
    """Sums of the shares of captions that count, over all images and by group, in all (item None) and by item.

    An image contributes the share of its captions that count. Only sums are kept, unless `paired`: then the share of
    each image is kept too, for bootstrap resamples.
    """

    evidence: int
    paired: bool = True
    items_by_group: frozenset[str] = frozenset()  # items that are reported for each group
    n_images: dict[str | None, int] = field(default_factory=dict)
    sums: dict[_Key, _ItemSums] = field(default_factory=dict)
    shares: dict[str | None, list[tuple[str, float]]] = field(default_factory=dict)

    def add(
        self,
        record: ImageRecord,
        item_shares: Mapping[str | None, float],
        captions: Iterable[CountedCaption] = (),
    ) -> None:
        """Add one image: the share of its captions that count, in all (item None) and for each item."""
        n_images, group = self.n_images, record.group
        n_images[None] = n_images.get(None, 0) + 1
        if group is not None:
            n_images[group] = n_images.get(group, 0) + 1
        if self.paired:
            overall = (record.image_id, item_shares.get(None, 0.0))
            for group_key in (None,) if group is None else (None, group):
                self.shares.setdefault(group_key, []).append(overall)
        if not item_shares:
            return
        ranked = [
            (caption, items, detail, stable_rank(record.image_id, caption))
            for caption, items, detail in captions
        ]
        for item, share in item_shares.items():
            if share:
                self._add((item, None), share, record.image_id, ranked)
                if group is not None and (item is None or item in self.items_by_group):
                    self._add((item, group), share, record.image_id, ranked)

    def _add(self, key: _Key, share: float, image: str, captions: Sequence[_RankedCaption]) -> None:
        sums = self.sums.get(key)
        if sums is None:
            size = self.evidence if key[0] is None else item_evidence_limit(self.evidence)
            sums = self.sums[key] = _ItemSums(CaptionSample(size))
        sums.total += share
        sums.squares += share * share
        for caption, items, detail, rank in captions:
            if rank <= sums.sample.max_rank and key[0] in items:
                sums.sample.add(image, caption, detail, rank)

    def merge(self, other: CaptionCounts) -> None:
        """Add the counts of other images."""
        for group, n_images in other.n_images.items():
            self.n_images[group] = self.n_images.get(group, 0) + n_images
        for key, other_sums in other.sums.items():
            sums = self.sums.get(key)
            if sums is None:
                self.sums[key] = other_sums
            else:
                sums.merge(other_sums)
        for group, shares in other.shares.items():
            self.shares.setdefault(group, []).extend(shares)

    def evidence_frame(self, item: str | None, group: str | None = None) -> pl.DataFrame | None:
        """The evidence frame of an item and group; None if no caption counted."""
        sums = self.sums.get((item, group))
        return None if sums is None else sums.sample.frame()

    def top_items(self, top: int = DEFAULT_TOP, exclude: Sequence[str] = ()) -> list[str]:
        """The `top` most frequent items of each kind, other than those in `exclude`."""
        counted = {item for item, group in self.sums if item is not None and group is None} - set(exclude)
        ranked = sorted(counted, key=lambda item: (-self.sums[item, None].total, item))
        selected: list[str] = []
        per_kind: dict[str, int] = {}
        for item in ranked:
            kind = kind_of(item)
            per_kind[kind] = per_kind.get(kind, 0) + 1
            if per_kind[kind] <= top:
                selected.append(item)
        return sorted(selected, key=kind_of)  # a stable sort keeps the ranks within a kind

    def write(
        self,
        builder: ResultBuilder,
        term: str,
        source: str,
        *,
        items: Sequence[str] = (),
        seed: int,
        n_resamples: int,
        top: int = DEFAULT_TOP,
        empty_reason: str,
        overall: bool = True,
    ) -> None:
        """Add the rows: share and count, over all images and by group, in all and for each item.

        Parameters
        ----------
        items
            Items that have rows by group, and also where no caption counted. Other items have rows over all images
            only, the `top` of each kind: by group there would be more words than anybody reads.
        empty_reason
            Why the number is undefined if no image could count.
        overall
            Whether to write rows for all items together (item None).
        """
        if not self.n_images.get(None):
            builder.add(term, None, system=source, n=0, reason=empty_reason)
            return
        groups = [None, *sorted(group for group in self.n_images if group is not None)]
        resampling = self._resampler(seed, n_resamples)
        for item in (*((None,) if overall else ()), *items):
            for group in groups:
                self._add_row(builder, term, source, item, group, resampling)
        for item in self.top_items(top, items):
            self._add_row(builder, term, source, item, None, resampling)

    def _add_row(
        self,
        builder: ResultBuilder,
        term: str,
        source: str,
        item: str | None,
        group: str | None,
        resampling: Resampler | None,
    ) -> None:
        n = self.n_images[group]
        total, squares = self._share_sums(item, (group,))
        low, high = wilson_of_sums(total, squares, n)
        share = min(total / n, 1.0)
        se = float(np.sqrt(max(squares / n - share * share, 0.0) / n))
        replicates = (
            self._resampled_shares(group, resampling)
            if item is None and resampling is not None
            else np.empty(0)
        )
        evidence = self.evidence_frame(item, group)
        p = None if group is None else self._p_against_others(item, group)
        for unit, scale in (("share", 1.0), ("count", float(n))):
            value = share if unit == "share" else total
            estimate = Estimate(value, low * scale, high * scale, se * scale, replicates * scale)
            builder.add(
                term, estimate, system=source, group=group, item=item, n=n, unit=unit,
                p=p if unit == "share" else None, evidence=evidence, in_brief=unit == "count",
                resampler=resampling if unit == "share" else None,
            )  # fmt: skip

    def _share_sums(self, item: str | None, groups: Sequence[str | None]) -> tuple[float, float]:
        """Sums over images of shares and of squared shares."""
        counted = [self.sums[item, group] for group in groups if (item, group) in self.sums]
        return sum(sums.total for sums in counted), sum(sums.squares for sums in counted)

    def _resampler(self, seed: int, n_resamples: int) -> Resampler | None:
        shares = self.shares.get(None, [])
        if len(shares) < 2:
            return None
        return resampler(tuple(sorted(image for image, _ in shares)), seed, n_resamples)

    def _resampled_shares(self, group: str | None, resampling: Resampler) -> np.ndarray:
        """The share of a group in each bootstrap resample of the images."""
        of_group = dict(self.shares[group])
        counts = np.array([[of_group.get(name, 0.0), name in of_group] for name in resampling.names])
        totals = resampling.totals(counts)
        shares: np.ndarray = np.divide(
            totals[:, 0], totals[:, 1], out=np.full(len(totals), np.nan), where=totals[:, 1] > 0
        )
        return shares

    def _p_against_others(self, item: str | None, group: str) -> float | None:
        """p of the difference between the group's share and that of the other groups (two means, unequal variances)."""
        others = [name for name in self.n_images if name is not None and name != group]
        if not others:
            return None
        means, errors = [], []
        for names in ((group,), others):
            n = sum(self.n_images[name] for name in names)
            total, squares = self._share_sums(item, names)
            # Half a hit and half a miss more: without hits the variance would be 0, and any difference certain.
            mean = (total + 0.5) / (n + 1)
            means.append(mean)
            errors.append(max((squares + 0.5) / (n + 1) - mean * mean, 0.0) / n)
        spread = float(np.sqrt(sum(errors)))
        return normal_p((means[0] - means[1]) / spread) if spread > 0 else None
