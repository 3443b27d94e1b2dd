"""The measurements of retrieval recall: text and image retrieval, overall and by group."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.retrieval.recall.search import SearchResult
from portrayal.models.masked_vlm.retrieval.recall import (
    IntArray,
    Mask,
    RankPositions,
    chance_hit_probability,
    hit_probability,
)
from portrayal.results import TOO_FEW, TOO_FEW_REASON
from portrayal.stats import Resampler, rate, resampler

CUTOFFS = (1, 5, 10)
_EVIDENCE_ROWS = 100  # rows of evidence for one number, from the worst rank to the best


@dataclass(frozen=True)
class Direction:
    """One direction of retrieval: images retrieve captions, or captions retrieve images."""

    name: str  # prefix of the terms
    unit: str
    ranks: RankPositions  # one entry per query image or caption
    image: IntArray  # the index of each query's image
    n_relevant: IntArray  # relevant items of each query
    n_candidates: int
    # From the index of a query to its image, its caption and what was retrieved.
    describe: Callable[[int], tuple[str, str, dict[str, object]]]


class RetrievalRecallMeasurements:
    """Recall of one model, overall and by group of the images."""

    def __init__(
        self,
        builder: ResultBuilder,
        searched: SearchResult,
        labels: Mapping[str, str],
        seed: int,
        n_resamples: int,
    ):
        self.builder, self.model, self.pool = builder, searched.model, searched.pool
        self.result = searched.retrieved
        self.images = self.pool.images
        self.group = np.array([labels.get(image, "") for image in self.images])
        self.labelled = np.array([image in labels for image in self.images])
        self.groups = sorted(set(labels.values()))
        self.resampler: Resampler = resampler(self.images, seed, n_resamples)

    def write(self) -> None:
        for direction in (self._text_retrieval, self._image_retrieval):
            for k in CUTOFFS:
                for group in (None, *self.groups):
                    self._row(direction, k, group)

    @cached_property
    def _text_retrieval(self) -> Direction:
        """Text retrieval: images are queries, captions are retrieved."""
        result, pool = self.result, self.pool

        def describe(case: int) -> tuple[str, str, dict[str, object]]:
            top = int(result.top_caption[case])
            detail: dict[str, object] = {"found": pool.captions[top], "of": self.images[pool.owner[top]]}
            return self.images[case], pool.captions[result.caption_positions.first_relevant[case]], detail

        n_relevant = np.bincount(pool.owner, minlength=len(self.images))
        cases = np.arange(len(self.images))
        return Direction(
            "tr", "image", result.caption_positions, cases, n_relevant, len(pool.captions), describe
        )

    @cached_property
    def _image_retrieval(self) -> Direction:
        """Image retrieval: captions are queries, images are retrieved."""
        result, pool = self.result, self.pool

        def describe(case: int) -> tuple[str, str, dict[str, object]]:
            detail: dict[str, object] = {"found": self.images[result.top_image[case]]}
            return self.images[pool.owner[case]], pool.captions[case], detail

        n_relevant = np.ones(len(pool.captions), dtype=np.int64)
        return Direction(
            "ir", "caption", result.image_positions, pool.owner, n_relevant, len(self.images), describe
        )

    def _row(self, direction: Direction, k: int, group: str | None) -> None:
        selected = self._in_group(group)[direction.image]
        support = len(np.unique(direction.image[selected]))
        hits = hit_probability(direction.ranks, k)
        if not selected.any():
            reason = f"none of the searched images is labelled '{group}'"
            self.builder.add(
                f"{direction.name}@{k}",
                None,
                system=self.model,
                group=group,
                n=0,
                n_unit=direction.unit,
                reason=reason,
            )
            return
        trials = np.bincount(direction.image[selected], minlength=len(self.images)).astype(np.float64)
        successes = np.zeros(len(self.images))
        np.add.at(successes, direction.image[selected], hits[selected])
        self.builder.add(
            f"{direction.name}@{k}",
            rate(successes, trials, self.resampler),
            system=self.model,
            group=group,
            n=int(selected.sum()),
            n_unit=direction.unit,
            support=support,
            reason=self._note(direction, selected, support),
            evidence=self._evidence(direction, np.flatnonzero(selected)),
            in_brief=k != CUTOFFS[0],  # all three cutoffs have the same evidence
            resampler=self.resampler,
        )

    def _in_group(self, group: str | None) -> Mask:
        """Which images belong to the group; all of them for None."""
        everyone = np.ones(len(self.images), dtype=bool)
        return everyone if group is None else np.asarray(self.labelled & (self.group == group), dtype=bool)

    def _note(self, direction: Direction, selected: Mask, support: int) -> str:
        """The note beside a recall: the number of candidates (recall is higher with fewer) and the chance level."""
        pool = self.pool
        n_relevant, n_candidates = direction.n_relevant[selected], direction.n_candidates
        by_chance = [f"{chance_hit_probability(n_relevant, n_candidates, k).mean():.3g}" for k in CUTOFFS]
        notes = [
            f"among {len(pool.captions):,} captions of {len(pool.images):,} images",
            f"by chance {', '.join(by_chance[:-1])} and {by_chance[-1]} at {', '.join(map(str, CUTOFFS))}",
        ]
        if pool.unreadable:
            notes.append(f"images left out because they cannot be read: {pool.unreadable:,}")
        if pool.without_file:
            notes.append(f"images left out because they have no file: {pool.without_file:,}")
        if self.result.n_truncated:
            notes.append(f"captions truncated to the length the model reads: {self.result.n_truncated:,}")
        if support < TOO_FEW:
            notes.insert(0, f"{TOO_FEW_REASON}: {support} images, fewer than {TOO_FEW}")
        return "; ".join(notes)

    def _evidence(self, direction: Direction, cases: IntArray) -> pl.DataFrame:
        order = np.lexsort((cases, -direction.ranks.n_tied[cases], -direction.ranks.rank[cases]))
        cases = cases[order]
        if len(cases) > _EVIDENCE_ROWS:
            cases = cases[np.linspace(0, len(cases) - 1, _EVIDENCE_ROWS).astype(np.int64)]
        rows = []
        for case in cases.tolist():
            image, caption, detail = direction.describe(case)
            rank = {"rank": int(direction.ranks.rank[case]), "among": direction.n_candidates}
            if direction.ranks.n_tied[case] > 1:
                rank["tied"] = int(direction.ranks.n_tied[case])
            rows.append((image, caption, json.dumps({**rank, **detail}, ensure_ascii=False)))
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")
