"""The rows of retrieval recall: pictures that find a caption, captions that find their picture, by group."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.retrieval.recall.search import Searched
from portrayal.models.masked_vlm.retrieval.recall import Mask, Standing, Whole, chance, hits
from portrayal.results import TOO_FEW, TOO_FEW_REASON
from portrayal.stats import Resampler, rate, resampler

TOPS = (1, 5, 10)
_KEPT = 100  # cases behind a number, from the worst placed to the best


@dataclass(frozen=True)
class Way:
    """One way to search: what is searched for, by whom, and how each case is told."""

    name: str  # as terms begin
    unit: str
    standing: Standing  # a case for each picture or caption
    image: Whole  # of each case
    own: Whole  # how many there are to be found
    among: int
    report_progress: Callable[
        [int], tuple[str, str, dict[str, object]]
    ]  # a case: its image, its caption, what was found


class Rows:
    """One model's search, of pictures that fall into groups."""

    def __init__(
        self,
        builder: ResultBuilder,
        searched: Searched,
        labels: Mapping[str, str],
        seed: int,
        n_resamples: int,
    ):
        self.builder, self.model, self.pool = builder, searched.model, searched.pool
        self.found = searched.found
        self.images = self.pool.images
        self.group = np.array([labels.get(image, "") for image in self.images])
        self.known = np.array([image in labels for image in self.images])
        self.groups = sorted(set(labels.values()))
        self.draw: Resampler = resampler(self.images, seed, n_resamples)

    def write(self) -> None:
        for way in (self._captions, self._pictures):
            for k in TOPS:
                for group in (None, *self.groups):
                    self._row(way, k, group)

    @cached_property
    def _captions(self) -> Way:
        """Pictures search captions: text retrieval."""
        found, pool = self.found, self.pool

        def told(case: int) -> tuple[str, str, dict[str, object]]:
            top = int(found.first_caption[case])
            detail: dict[str, object] = {"found": pool.captions[top], "of": self.images[pool.owner[top]]}
            return self.images[case], pool.captions[found.captions.column[case]], detail

        own = np.bincount(pool.owner, minlength=len(self.images))
        cases = np.arange(len(self.images))
        return Way("tr", "image", found.captions, cases, own, len(pool.captions), told)

    @cached_property
    def _pictures(self) -> Way:
        """Captions search pictures: image retrieval."""
        found, pool = self.found, self.pool

        def told(case: int) -> tuple[str, str, dict[str, object]]:
            detail: dict[str, object] = {"found": self.images[found.first_picture[case]]}
            return self.images[pool.owner[case]], pool.captions[case], detail

        own = np.ones(len(pool.captions), dtype=np.int64)
        return Way("ir", "caption", found.pictures, pool.owner, own, len(self.images), told)

    def _row(self, way: Way, k: int, group: str | None) -> None:
        here = self._of(group)[way.image]
        support = len(np.unique(way.image[here]))
        found = hits(way.standing, k)
        if not here.any():
            reason = f"no picture that is searched is of '{group}'"
            self.builder.add(
                f"{way.name}@{k}",
                None,
                system=self.model,
                group=group,
                n=0,
                n_unit=way.unit,
                reason=reason,
            )
            return
        trials = np.bincount(way.image[here], minlength=len(self.images)).astype(np.float64)
        successes = np.zeros(len(self.images))
        np.add.at(successes, way.image[here], found[here])
        self.builder.add(
            f"{way.name}@{k}",
            rate(successes, trials, self.draw),
            system=self.model,
            group=group,
            n=int(here.sum()),
            n_unit=way.unit,
            support=support,
            reason=self._note(way, here, support),
            evidence=self._cases(way, np.flatnonzero(here)),
            in_brief=k != TOPS[0],  # the same cases stand behind all three
            resampler=self.draw,
        )

    def _of(self, group: str | None) -> Mask:
        """The pictures of a group; all of them where none is named."""
        everyone = np.ones(len(self.images), dtype=bool)
        return everyone if group is None else np.asarray(self.known & (self.group == group), dtype=bool)

    def _note(self, way: Way, here: Mask, support: int) -> str:
        """What a recall must be read with: it is higher where there is less to choose from."""
        pool = self.pool
        by_chance = [f"{chance(way.own[here], way.among, k).mean():.3g}" for k in TOPS]
        told = [
            f"among {len(pool.captions):,} captions of {len(pool.images):,} pictures",
            f"by chance {', '.join(by_chance[:-1])} and {by_chance[-1]} at {', '.join(map(str, TOPS))}",
        ]
        if pool.unreadable:
            told.append(f"pictures left out because they cannot be read: {pool.unreadable:,}")
        if pool.without_file:
            told.append(f"images left out because they have no picture: {pool.without_file:,}")
        if self.found.cut:
            told.append(f"captions cut because the model reads no more: {self.found.cut:,}")
        if support < TOO_FEW:
            told.insert(0, f"{TOO_FEW_REASON}: {support} images, fewer than {TOO_FEW}")
        return "; ".join(told)

    def _cases(self, way: Way, cases: Whole) -> pl.DataFrame:
        order = np.lexsort((cases, -way.standing.tied[cases], -way.standing.rank[cases]))
        cases = cases[order]
        if len(cases) > _KEPT:
            cases = cases[np.linspace(0, len(cases) - 1, _KEPT).astype(np.int64)]
        rows = []
        for case in cases.tolist():
            image, caption, detail = way.report_progress(case)
            place = {"rank": int(way.standing.rank[case]), "among": way.among}
            if way.standing.tied[case] > 1:
                place["tied"] = int(way.standing.tied[case])
            rows.append((image, caption, json.dumps({**place, **detail}, ensure_ascii=False)))
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")
