"""Counting captions: sums over images that can be added up piece by piece, with some of the captions behind each."""

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
from portrayal.metrics.harms.image_records import Scene
from portrayal.stats import Estimate, Resampler, normal_p, resampler, wilson_of_sums

PAIRED = 100_000  # images up to which draws are kept, so that two audits can be compared in pairs
TOP = 20  # words shown of each kind
ALL = sys.maxsize  # captions: every one is kept
OF_ITEM = 40  # captions kept behind one word: there are thousands of words, and few are told in the end
OF_KIND = ": "  # between a kind and one of its words ("gender: man")
Caption = tuple[str, frozenset[str | None], Mapping[str, Any]]  # a caption, what it counts for, and why

_Ranked = tuple[str, frozenset[str | None], Mapping[str, Any], int]
_HIGHEST = 2**32
_Key = tuple[str | None, str | None]  # item, group


def of_item(evidence: int) -> int:
    """Captions kept behind one item, where so many are kept behind a number."""
    return evidence if evidence == ALL else min(evidence, OF_ITEM)


@dataclass
class Sample:
    """Some captions out of many: which ones depends on nothing but the captions, not on the order they come in."""

    most: int
    kept: list[tuple[int, str, str, Mapping[str, Any]]] = field(
        default_factory=list
    )  # rank, image, caption, why
    bar: int = _HIGHEST  # a caption that ranks behind it is not among those that stay

    def add(self, image: str, caption: str, why: Mapping[str, Any], rank: int | None = None) -> None:
        rank = rank_of(image, caption) if rank is None else rank
        if rank <= self.bar:
            self.kept.append((rank, image, caption, why))
            if len(self.kept) >= 2 * self.most:
                self._cut()

    def merge(self, other: Sample) -> None:
        self.kept += other.kept
        self._cut()

    def frame(self) -> pl.DataFrame:
        """As evidence has it."""
        self._cut()
        rows = sorted(
            (image, caption, json.dumps(why, ensure_ascii=False)) for _, image, caption, why in self.kept
        )
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")

    def _cut(self) -> None:
        if len(self.kept) > self.most:
            self.kept = sorted(self.kept, key=lambda row: row[:3])[: self.most]
            self.bar = self.kept[-1][0]


class Samples(dict[Any, Sample]):
    """Some captions behind each of many things."""

    def __init__(self, evidence: int):
        super().__init__()
        self.most = of_item(evidence)

    def __missing__(self, key: Any) -> Sample:
        self[key] = Sample(self.most)
        return self[key]

    def merge(self, other: Samples) -> None:
        for key, sample in other.items():
            self[key].merge(sample)

    def of(self, keys: Iterable[Any], most: int) -> pl.DataFrame:
        """The captions behind several of them together."""
        together = Sample(most)
        for key in keys:
            together.merge(self[key])
        return together.frame()


def kind_of(item: str) -> str:
    """The kind that a word is told under; "" where there is but one.

    >>> kind_of("gender: man"), kind_of("man -> person")
    ('gender', '')
    """
    kind, colon, _ = item.partition(OF_KIND)
    return kind if colon else ""


def rank_of(image: str, caption: str) -> int:
    """A number that looks random and is always the same."""
    return zlib.crc32(f"{image}\x1f{caption}".encode("utf-8", "surrogatepass"))


@dataclass
class _Sums:
    """What was counted for one item and group."""

    sample: Sample
    total: float = 0.0
    squares: float = 0.0

    def merge(self, other: _Sums) -> None:
        self.total += other.total
        self.squares += other.squares
        self.sample.merge(other.sample)


@dataclass
class Tally:
    """How many captions of how many images count, for all people and for each group, and for each item.

    An image counts for the share of its captions that do. Sums are kept, not images, unless they are to be `paired`:
    then their shares are kept too, for draws.
    """

    evidence: int
    paired: bool = True
    split: frozenset[str] = frozenset()  # items that are told for each group
    trials: dict[str | None, int] = field(default_factory=dict)
    sums: dict[_Key, _Sums] = field(default_factory=dict)
    shares: dict[str | None, list[tuple[str, float]]] = field(default_factory=dict)

    def count(
        self, scene: Scene, found: Mapping[str | None, float], captions: Iterable[Caption] = ()
    ) -> None:
        """One image: the share of its captions that count, in all (item None) and for each item."""
        trials, group = self.trials, scene.group
        trials[None] = trials.get(None, 0) + 1
        if group is not None:
            trials[group] = trials.get(group, 0) + 1
        if self.paired:
            whole = (scene.image, found.get(None, 0.0))
            for whom in (None,) if group is None else (None, group):
                self.shares.setdefault(whom, []).append(whole)
        if not found:
            return
        ranked = [(caption, items, why, rank_of(scene.image, caption)) for caption, items, why in captions]
        for item, share in found.items():
            if share:
                self._add((item, None), share, scene.image, ranked)
                if group is not None and (item is None or item in self.split):
                    self._add((item, group), share, scene.image, ranked)

    def _add(self, key: _Key, share: float, image: str, captions: Sequence[_Ranked]) -> None:
        sums = self.sums.get(key)
        if sums is None:
            most = self.evidence if key[0] is None else of_item(self.evidence)
            sums = self.sums[key] = _Sums(Sample(most))
        sums.total += share
        sums.squares += share * share
        for caption, items, why, rank in captions:
            if rank <= sums.sample.bar and key[0] in items:
                sums.sample.add(image, caption, why, rank)

    def merge(self, other: Tally) -> None:
        """Add what was counted over other images."""
        for group, trials in other.trials.items():
            self.trials[group] = self.trials.get(group, 0) + trials
        for key, theirs in other.sums.items():
            mine = self.sums.get(key)
            if mine is None:
                self.sums[key] = theirs
            else:
                mine.merge(theirs)
        for group, shares in other.shares.items():
            self.shares.setdefault(group, []).extend(shares)

    def behind(self, item: str | None, group: str | None = None) -> pl.DataFrame | None:
        """The captions behind a number, as evidence has them."""
        sums = self.sums.get((item, group))
        return None if sums is None else sums.sample.frame()

    def words(self, top: int = TOP, but: Sequence[str] = ()) -> list[str]:
        """The items there are, by how often they are said, the most usual ones of each kind."""
        found = {item for item, group in self.sums if item is not None and group is None} - set(but)
        ranked = sorted(found, key=lambda item: (-self.sums[item, None].total, item))
        shown: list[str] = []
        per_kind: dict[str, int] = {}
        for item in ranked:
            kind = kind_of(item)
            per_kind[kind] = per_kind.get(kind, 0) + 1
            if per_kind[kind] <= top:
                shown.append(item)
        return sorted(shown, key=kind_of)  # stable: ranks stay within a kind

    def write(
        self,
        builder: ResultBuilder,
        term: str,
        source: str,
        *,
        items: Sequence[str] = (),
        seed: int,
        n_resamples: int,
        top: int = TOP,
        nothing: str,
        whole: bool = True,
    ) -> None:
        """The rows: share and count, for all people and for each group; of `items` also where none was counted, and of
        other words for all people.

        `nothing` says why there is no number where no image could count. Without `whole`, items alone are told.
        """
        if not self.trials.get(None):
            builder.add(term, None, system=source, n=0, reason=nothing)
            return
        groups = [None, *sorted(group for group in self.trials if group is not None)]
        draw = self._resampler(seed, n_resamples)
        for item in (*((None,) if whole else ()), *items):
            for group in groups:
                self._row(builder, term, source, item, group, draw)
        for item in self.words(
            top, items
        ):  # of all people: by group there would be more words than anybody reads
            self._row(builder, term, source, item, None, draw)

    def _row(
        self,
        builder: ResultBuilder,
        term: str,
        source: str,
        item: str | None,
        group: str | None,
        draw: Resampler | None,
    ) -> None:
        n = self.trials[group]
        total, squares = self._totals(item, (group,))
        low, high = wilson_of_sums(total, squares, n)
        share = min(total / n, 1.0)
        se = float(np.sqrt(max(squares / n - share * share, 0.0) / n))
        share_draws = self._draws(group, draw) if item is None and draw is not None else np.empty(0)
        evidence = self.behind(item, group)
        p = None if group is None else self._against_others(item, group)
        for unit, scale in (("share", 1.0), ("count", float(n))):
            value = share if unit == "share" else total
            estimate = Estimate(value, low * scale, high * scale, se * scale, share_draws * scale)
            builder.add(
                term, estimate, system=source, group=group, item=item, n=n, unit=unit,
                p=p if unit == "share" else None, evidence=evidence, in_brief=unit == "count",
                resampler=draw if unit == "share" else None,
            )  # fmt: skip

    def _totals(self, item: str | None, groups: Sequence[str | None]) -> tuple[float, float]:
        """Sums over images of shares and of their squares."""
        found = [self.sums[item, group] for group in groups if (item, group) in self.sums]
        return sum(sums.total for sums in found), sum(sums.squares for sums in found)

    def _resampler(self, seed: int, n_resamples: int) -> Resampler | None:
        shares = self.shares.get(None, [])
        if len(shares) < 2:
            return None
        return resampler(tuple(sorted(image for image, _ in shares)), seed, n_resamples)

    def _draws(self, group: str | None, draw: Resampler) -> np.ndarray:
        """The share in every draw of the images."""
        of_group = dict(self.shares[group])
        counts = np.array([[of_group.get(name, 0.0), name in of_group] for name in draw.names])
        totals = draw.totals(counts)
        made: np.ndarray = np.divide(
            totals[:, 0], totals[:, 1], out=np.full(len(totals), np.nan), where=totals[:, 1] > 0
        )
        return made

    def _against_others(self, item: str | None, group: str) -> float | None:
        """Does the group's share differ from that of the other groups? Two means, each with its own spread."""
        others = [name for name in self.trials if name is not None and name != group]
        if not others:
            return None
        means, errors = [], []
        for names in ((group,), others):
            n = sum(self.trials[name] for name in names)
            total, squares = self._totals(item, names)
            # One more on either side: where nothing was found its spread would be 0, and any difference certain.
            mean = (total + 0.5) / (n + 1)
            means.append(mean)
            errors.append(max((squares + 0.5) / (n + 1) - mean * mean, 0.0) / n)
        spread = float(np.sqrt(sum(errors)))
        return normal_p((means[0] - means[1]) / spread) if spread > 0 else None
