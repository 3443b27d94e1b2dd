"""Counting captions: sums over images that can be added up piece by piece, with some of the captions behind each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from scipy.special import ndtr

from portrayal.metrics.findings import Findings
from portrayal.metrics.harms.scenes import Scene
from portrayal.stats import Estimate, Resampler, resampler, wilson_of_sums

PAIRED = 100_000  # images up to which draws are kept, so that two audits can be compared in pairs
TOP = 20  # words shown of each kind
OF_ITEM = 40  # captions kept behind one word: there are thousands of words, and few are told in the end
OF_KIND = ": "  # between a kind and one of its words ("gender: man")
Caption = tuple[str, Mapping[str, Any]]  # a caption and why it counts

_Key = tuple[str | None, str | None]  # item, group


@dataclass
class Sample:
    """Some captions out of many: which ones depends on nothing but the captions, not on the order they come in."""

    most: int
    kept: list[tuple[int, str, str, str]] = field(default_factory=list)  # rank, image, caption, detail
    seen: int = 0

    def add(self, image: str, caption: str, detail: str) -> None:
        self.seen += 1
        self.kept.append((_rank(image, caption), image, caption, detail))
        if len(self.kept) >= 2 * self.most:
            self._cut()

    def merge(self, other: Sample) -> None:
        self.seen += other.seen
        self.kept += other.kept
        self._cut()

    def frame(self) -> pl.DataFrame:
        self._cut()
        rows = sorted((image, caption, detail) for _, image, caption, detail in self.kept)
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")

    def _cut(self) -> None:
        if len(self.kept) > self.most:
            self.kept = sorted(self.kept)[: self.most]


def kind_of(item: str) -> str:
    """The kind that a word is told under; "" where there is but one.

    >>> kind_of("gender: man"), kind_of("man -> person")
    ('gender', '')
    """
    kind, colon, _ = item.partition(OF_KIND)
    return kind if colon else ""


def _rank(image: str, caption: str) -> int:
    digest = hashlib.blake2b(f"{image}\x1f{caption}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


@dataclass
class Tally:
    """How many captions of how many images count, for all people and for each group, and for each item.

    An image counts for the share of its captions that do. Sums are kept, not images; but up to `PAIRED` of them their
    shares are kept too, for draws.
    """

    evidence: int
    trials: dict[str | None, int] = field(default_factory=dict)
    sums: dict[_Key, float] = field(default_factory=dict)
    squares: dict[_Key, float] = field(default_factory=dict)
    shares: dict[str | None, list[tuple[str, float]]] = field(default_factory=dict)
    behind: dict[_Key, Sample] = field(default_factory=dict)

    def count(
        self, scene: Scene, found: Mapping[str | None, float], captions: Iterable[Caption] = ()
    ) -> None:
        """One image: the share of its captions that count, in all (item None) and for each item."""
        groups = (None,) if scene.group is None else (None, scene.group)
        whole = found.get(None, 0.0)
        written = [(caption, json.dumps(detail, ensure_ascii=False)) for caption, detail in captions]
        for group in groups:
            self.trials[group] = self.trials.get(group, 0) + 1
            if self.trials[None] <= PAIRED:  # for all people comes first
                self.shares.setdefault(group, []).append((scene.image, whole))
            for item, share in found.items():
                if share:
                    self._add((item, group), share, scene.image, written)

    def _add(self, key: _Key, share: float, image: str, captions: Sequence[tuple[str, str]]) -> None:
        self.sums[key] = self.sums.get(key, 0.0) + share
        self.squares[key] = self.squares.get(key, 0.0) + share * share
        most = self.evidence if key[0] is None else min(self.evidence, OF_ITEM)
        sample = self.behind.get(key)
        if sample is None:
            sample = self.behind[key] = Sample(most)
        for caption, detail in captions:
            sample.add(image, caption, detail)

    def merge(self, other: Tally) -> None:
        """Add what was counted over other images."""
        for group, trials in other.trials.items():
            self.trials[group] = self.trials.get(group, 0) + trials
        for mine, theirs in ((self.sums, other.sums), (self.squares, other.squares)):
            for key, number in theirs.items():
                mine[key] = mine.get(key, 0.0) + number
        for group, shares in other.shares.items():
            self.shares.setdefault(group, []).extend(shares)
        if self.trials.get(None, 0) > PAIRED:
            self.shares.clear()
        for key, sample in other.behind.items():
            if key in self.behind:
                self.behind[key].merge(sample)
            else:
                self.behind[key] = sample

    def words(self, top: int = TOP, but: Sequence[str] = ()) -> list[str]:
        """The items there are, by how often they are said, the most usual ones of each kind."""
        found = {item for item, group in self.sums if item is not None and group is None} - set(but)
        ranked = sorted(found, key=lambda item: (-self.sums[item, None], item))
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
        findings: Findings,
        term: str,
        speaker: str,
        *,
        items: Sequence[str] = (),
        seed: int,
        draws: int,
        top: int = TOP,
        nothing: str,
        n_unit: str = "image",
    ) -> None:
        """The rows: share and count, for all people and for each group; of `items` also where none was counted.

        `nothing` says why there is no number where no image could count.
        """
        if not self.trials.get(None):
            findings.add(term, None, system=speaker, n=0, reason=nothing)
            return
        groups = [None, *sorted(group for group in self.trials if group is not None)]
        draw = self._resampler(seed, draws)
        for item in (None, *items, *self.words(top, items)):
            for group in groups:
                self._row(findings, term, speaker, item, group, draw, n_unit)

    def _row(
        self,
        findings: Findings,
        term: str,
        speaker: str,
        item: str | None,
        group: str | None,
        draw: Resampler | None,
        n_unit: str,
    ) -> None:
        key, n = (item, group), self.trials[group]
        total, squares = self.sums.get(key, 0.0), self.squares.get(key, 0.0)
        low, high = wilson_of_sums(total, squares, n)
        share = min(total / n, 1.0)
        se = float(np.sqrt(max(squares / n - share * share, 0.0) / n))
        share_draws = self._draws(group, draw) if item is None and draw is not None else np.empty(0)
        sample = self.behind.get(key)
        evidence = None if sample is None else sample.frame()
        p = None if group is None else self._against_others(item, group)
        for unit, scale in (("share", 1.0), ("count", float(n))):
            value = share if unit == "share" else total
            estimate = Estimate(value, low * scale, high * scale, se * scale, share_draws * scale)
            findings.add(
                term, estimate, system=speaker, group=group, item=item, n=n, n_unit=n_unit, unit=unit,
                p=p if unit == "share" else None, evidence=evidence, in_brief=unit == "count",
                resampler=draw if unit == "share" else None,
            )  # fmt: skip

    def _resampler(self, seed: int, draws: int) -> Resampler | None:
        shares = self.shares.get(None, [])
        if len(shares) != self.trials[None] or len(shares) < 2:
            return None
        return resampler(tuple(sorted(image for image, _ in shares)), seed, draws)

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
            total = sum(self.sums.get((item, name), 0.0) for name in names)
            squares = sum(self.squares.get((item, name), 0.0) for name in names)
            # One more on either side: where nothing was found its spread would be 0, and any difference certain.
            mean = (total + 0.5) / (n + 1)
            means.append(mean)
            errors.append(max((squares + 0.5) / (n + 1) - mean * mean, 0.0) / n)
        spread = float(np.sqrt(sum(errors)))
        return float(2 * ndtr(-abs(means[0] - means[1]) / spread)) if spread > 0 else None
