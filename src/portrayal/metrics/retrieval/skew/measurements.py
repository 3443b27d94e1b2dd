"""The numbers of one system's lists, each with its interval, its chance level and the items behind it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.retrieval.skew.formulas import Array, bias, distance, max_skew, ndkl, shares, skew
from portrayal.metrics.retrieval.skew.permutations import deal_lists
from portrayal.metrics.retrieval.skew.ranked_lists import UNKNOWN, RankedList, at
from portrayal.metrics.retrieval.skew.reference import Reference
from portrayal.results import TOO_FEW
from portrayal.stats import (
    LEVEL,
    Estimate,
    Resampler,
    benjamini_hochberg,
    bootstrap,
    permutation_p,
    resampler,
)
from portrayal.study import Study

Mask = NDArray[np.bool_]
_UPPER = (1 + LEVEL) / 2
_NOBODY = "nobody whose group is known"


@dataclass(frozen=True)
class Case:
    """One system, its lists, and what they are held against."""

    study: Study
    system: str
    lists: Sequence[RankedList]
    groups: tuple[str, ...]
    reference: Reference
    tops: tuple[int, ...]
    depth: int | None
    seed: int
    n_resamples: int

    def measure(self, builder: ResultBuilder, k: int) -> None:
        """The rows for one number of places."""
        settings = {
            "k": k,
            "reference": self.reference.label,
            "depth": "whole list" if self.depth is None else self.depth,
        }
        told = _Told(self, replace(builder, settings=settings), k)
        told.bias()
        told.skew()
        told.max_skew()
        told.ndkl()

    @cached_property
    def references(self) -> Array:
        """(lists, groups)"""
        return np.array([self.reference.of(listed, len(self.groups)) for listed in self.lists])

    @cached_property
    def upto(self) -> list[Array]:
        return [listed.counted(len(self.groups)) for listed in self.lists]

    @cached_property
    def chance(self) -> tuple[dict[int, Array], Array]:
        return deal_lists(
            self.lists, self.reference, len(self.groups), self.tops, self.depth, self.seed, self.n_resamples
        )

    @cached_property
    def evidence(self) -> list[pl.DataFrame]:
        """The items of each list, best first."""
        said: dict[str, str] = {}
        if self.system in self.study.systems:
            spoken = self.study.spoken(self.system).sort("image_id", "sample")
            said = dict(spoken.unique("image_id", keep="first").select("image_id", "caption").iter_rows())
        made = []
        for listed in self.lists:
            details = [
                {
                    "query": listed.query,
                    "rank": rank,
                    "score": score,
                    "group": None if group == UNKNOWN else self.groups[group],
                }
                for rank, score, group in zip(
                    listed.ranks.tolist(), listed.scores.tolist(), listed.group, strict=True
                )
            ]
            columns = {
                "image_id": list(listed.items),
                "caption": [said.get(item, "") for item in listed.items],
                "detail": [json.dumps(detail, ensure_ascii=False) for detail in details],
            }
            made.append(pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String())))
        return made


@dataclass(frozen=True)
class _Told:
    """The same for one number of places, on its way into the findings."""

    case: Case
    builder: ResultBuilder
    k: int

    @cached_property
    def share(self) -> Array:
        """(lists, groups); nan where a top shows nobody."""
        return np.array([shares(at(upto, self.k)) for upto in self.case.upto])

    @cached_property
    def shown(self) -> Mask:
        """The lists whose top shows somebody."""
        return np.asarray(~np.isnan(self.share).any(axis=1))

    def bias(self) -> None:
        case, shown, refs = self.case, self.shown, self.case.references
        null = distance(case.chance[0][self.k], refs)
        self._over_queries("bias@k", distance(self.share, refs), null, shown, self._top())
        self._of_queries("bias@k", distance(self.share, refs), null, shown, self._top())
        chances = self._chances()
        for number, group in enumerate(case.groups):
            mine = self.share[:, number]
            self._of_group(
                "bias@k",
                group,
                number,
                mine[:, None],
                lambda totals: bias(_mean(totals)),
                float(bias(_mean_of(refs, shown))[number]),
                chances,
            )
            self._each("bias@k", group, number, bias(mine), bias(refs[:, number]))

    def skew(self) -> None:
        chances = self._chances()
        for number, group in enumerate(self.case.groups):
            refs = self.case.references[:, number]
            both = np.column_stack([self.share[:, number], refs])
            self._of_group("skew@k", group, number, both, _log_ratio, 0.0, chances)
            self._each("skew@k", group, number, skew(self.share[:, number], refs), np.zeros(len(refs)))

    def max_skew(self) -> None:
        refs = self.case.references
        null = max_skew(self.case.chance[0][self.k], refs)
        found = max_skew(self.share, refs)
        self._over_queries("maxskew", found, null, self.shown, self._top())
        self._of_queries("maxskew", found, null, self.shown, self._top())

    def ndkl(self) -> None:
        case, depth = self.case, self.case.depth
        found = np.array(
            [ndkl(upto[:depth], refs) for upto, refs in zip(case.upto, case.references, strict=True)]
        )
        # The places down to the depth; a tied item that has a part in them is one that stands behind the number.
        within = [listed.top(depth or len(listed.items)) for listed in case.lists]
        self._over_queries("ndkl", found, case.chance[1], ~np.isnan(found), within)
        self._of_queries("ndkl", found, case.chance[1], ~np.isnan(found), within)

    def _over_queries(self, term: str, found: Array, null: Array, shown: Mask, which: Sequence[Mask]) -> None:
        """The headline: the mean over queries."""
        support = self._support(shown, which)
        estimate, p, ideal, reason = Estimate.of(None), None, None, self._left_out(shown, support)
        draw = self._resampler(shown)
        if shown.any() and np.isfinite(found[shown]).all():
            most = 2.0 if term == "bias@k" else np.inf
            estimate = _widened(bootstrap(_with_count(found[shown, None]), _mean, draw)[0], draw, 0.0, most)
            chance = null[:, shown].mean(axis=1)
            ideal = float(chance.mean())
            p = float(permutation_p(np.array([found[shown].mean()]), chance[:, None])[0])
        elif shown.any():
            reason = (
                f"{np.isinf(found[shown]).sum()} queries show a group to which the reference gives no share"
            )
        self.builder.add(
            term,
            estimate,
            system=self.case.system,
            n=int(shown.sum()),
            n_unit="query",
            support=support,
            reason=reason,
            p=p,
            ideal=ideal,
            evidence=self._items(which),
            resampler=draw,
            in_brief=term != "bias@k",  # which has them all
        )

    def _of_queries(self, term: str, found: Array, null: Array, shown: Mask, which: Sequence[Mask]) -> None:
        """A row for each query, groups together."""
        p = permutation_p(found, null)
        counted = [self._people(which, place) for place in range(len(found))]
        known = [
            float(p[place])
            if shown[place] and np.isfinite(found[place]) and counted[place] >= TOO_FEW
            else None
            for place in range(len(found))
        ]
        q = benjamini_hochberg(known)
        for place, listed in enumerate(self.case.lists):
            defined = bool(np.isfinite(found[place]))
            reason = None
            if not defined:
                reason = (
                    "it shows a group to which the reference gives no share"
                    if shown[place]
                    else f"it shows {_NOBODY}"
                )
            self.builder.add(
                term,
                float(found[place]) if defined else None,
                system=self.case.system,
                item=listed.query,
                n=counted[place],
                n_unit="item",
                reason=reason,
                p=known[place],
                q=q[place],
                ideal=float(null[:, place].mean()) if defined else None,
                evidence=self._items(which, place),
            )

    def _of_group(
        self,
        term: str,
        group: str,
        number: int,
        columns: Array,
        statistic: Callable[[Array], Array],
        ideal: float,
        chances: Array,
    ) -> None:
        """One group over all queries. Its p: is its mean share farther from the reference than by chance?"""
        shown, which = self.shown, self._top()
        support = self._support(shown, which)
        draw = self._resampler(shown)
        estimate, reason = Estimate.of(None), self._left_out(shown, support)
        if shown.any():
            least, most = (-1.0, 1.0) if term == "bias@k" else (-np.inf, np.inf)
            estimate = _widened(bootstrap(_with_count(columns[shown]), statistic, draw)[0], draw, least, most)
            if estimate.value is None:
                absent = not self.share[shown, number].any()
                reason = _absent(absent, bool(self.case.references[shown, number].any()), "any query")
        self.builder.add(
            term,
            estimate,
            system=self.case.system,
            group=group,
            n=int(shown.sum()),
            n_unit="query",
            support=support,
            reason=reason,
            p=None if estimate.value is None else float(chances[number]),
            ideal=ideal if estimate.value is not None else None,
            evidence=self._items(which, group=number),
            resampler=draw,
        )

    def _each(self, term: str, group: str, number: int, found: Array, ideal: Array) -> None:
        """One group in each query."""
        which = self._top()
        for place, listed in enumerate(self.case.lists):
            defined = bool(np.isfinite(found[place]))
            reason = None
            if not self.shown[place]:
                reason = f"the first {self.k} show {_NOBODY}"
            elif not defined:
                share, ref = self.share[place, number], self.case.references[place, number]
                reason = _absent(share == 0, ref > 0, "the query")
            self.builder.add(
                term,
                float(found[place]) if defined else None,
                system=self.case.system,
                group=group,
                item=listed.query,
                n=self._people(which, place),
                n_unit="item",
                reason=reason,
                ideal=float(ideal[place]) if defined else None,
                evidence=self._items(which, place, number),
            )

    def _chances(self) -> Array:
        """For each group the p of its mean share: (groups)."""
        shown = self.shown
        if not shown.any():
            return np.full(len(self.case.groups), np.nan)
        refs = _mean_of(self.case.references, shown)
        null = np.abs(self.case.chance[0][self.k][:, shown].mean(axis=1) - refs)
        return permutation_p(np.abs(_mean_of(self.share, shown) - refs), null)

    def _resampler(self, shown: Mask) -> Resampler:
        queries = tuple(listed.query for listed, yes in zip(self.case.lists, shown, strict=True) if yes)
        return resampler(queries, self.case.seed, self.case.n_resamples)

    def _left_out(self, shown: Mask, support: int) -> str | None:
        if not shown.any():
            return f"the lists show {_NOBODY}"
        if shown.all() or support < TOO_FEW:
            return None
        return f"over {int(shown.sum())} of {len(shown)} queries; the others show {_NOBODY}"

    def _top(self) -> list[Mask]:
        return [listed.top(self.k) for listed in self.case.lists]

    def _people(self, which: Sequence[Mask], place: int) -> int:
        """The items of a list that count: those selected whose group is known."""
        return int(np.sum(which[place] & (self.case.lists[place].group != UNKNOWN)))

    def _support(self, shown: Mask, which: Sequence[Mask]) -> int:
        """The different items that a mean over queries rests on."""
        return len(
            {
                item
                for listed, yes, chosen in zip(self.case.lists, shown, which, strict=True)
                if yes
                for item, good in zip(listed.items, chosen & (listed.group != UNKNOWN), strict=True)
                if good
            }
        )

    def _items(
        self, which: Sequence[Mask], place: int | None = None, group: int | None = None
    ) -> pl.DataFrame:
        """The selected items of one list or all; of one group, where any is of it: else all, who are why it is low."""
        places = range(len(which)) if place is None else [place]
        chosen = {one: which[one] for one in places}
        if group is not None:
            mine = {one: chosen[one] & (self.case.lists[one].group == group) for one in places}
            chosen = mine if any(mask.any() for mask in mine.values()) else chosen
        return pl.concat(
            [
                self.case.evidence[one].filter(pl.Series(mask, dtype=pl.Boolean))
                for one, mask in chosen.items()
            ]
        )


def _absent(absent: bool, expected: bool, where: str) -> str:
    if not expected:
        return "the reference gives the group no share" + (" and it has none" if absent else "")
    return f"nobody of the group is in the top of {where}: its logarithm is minus infinity"


def _widened(estimate: Estimate, draw: Resampler, least: float, most: float) -> Estimate:
    """The interval as far out as few queries ask for, within what is possible: draws spread less than they should by
    the root of (n - 1) / n, and as the normal distribution where Student's t is wider (Hesterberg 2015).
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    queries = len(draw.names)
    by = math.sqrt(queries / (queries - 1)) * float(stdtrit(queries - 1, _UPPER) / ndtri(_UPPER))
    low = estimate.value - by * (estimate.value - estimate.low)
    high = estimate.value + by * (estimate.high - estimate.value)
    return replace(estimate, low=max(low, least), high=min(high, most))


def _with_count(columns: Array) -> Array:
    return np.column_stack([np.ones(len(columns)), columns])


def _mean(totals: Array) -> Array:
    """Of sums that come after the number of queries."""
    made: Array = totals[:, 1] / totals[:, 0]
    return made


def _mean_of(rows: Array, shown: Mask) -> Array:
    """(lists, groups) to (groups); nan where there is no list."""
    return rows[shown].mean(axis=0) if shown.any() else np.full(rows.shape[1], np.nan)


def _log_ratio(totals: Array) -> Array:
    """ln of the mean share over the mean reference."""
    return skew(totals[:, 1], totals[:, 2])
