"""The measurements of one system's ranked lists, with intervals, chance levels and evidence."""

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
from portrayal.metrics.retrieval.skew.permutations import permute_lists
from portrayal.metrics.retrieval.skew.ranked_lists import UNKNOWN, RankedList, counts_at
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
_NOBODY_LABELLED = "nobody whose group is known"


@dataclass(frozen=True)
class RetrievalSkewMeasurements:
    """One system's ranked lists and their reference shares."""

    study: Study
    system: str
    lists: Sequence[RankedList]
    groups: tuple[str, ...]
    reference: Reference
    cutoffs: tuple[int, ...]
    depth: int | None
    seed: int
    n_resamples: int

    def measure(self, builder: ResultBuilder, k: int) -> None:
        """Add the rows for one cutoff k."""
        settings = {
            "k": k,
            "reference": self.reference.label,
            "depth": "whole list" if self.depth is None else self.depth,
        }
        rows = _AtK(self, replace(builder, settings=settings), k)
        rows.bias()
        rows.skew()
        rows.max_skew()
        rows.ndkl()

    @cached_property
    def references(self) -> Array:
        """(lists, groups)"""
        return np.array([self.reference.of(listed, len(self.groups)) for listed in self.lists])

    @cached_property
    def cumulative(self) -> list[Array]:
        return [listed.cumulative_counts(len(self.groups)) for listed in self.lists]

    @cached_property
    def null(self) -> tuple[dict[int, Array], Array]:
        return permute_lists(
            self.lists,
            self.reference,
            len(self.groups),
            self.cutoffs,
            self.depth,
            self.seed,
            self.n_resamples,
        )

    @cached_property
    def evidence(self) -> list[pl.DataFrame]:
        """The items of each list, best first, as evidence."""
        caption_of: dict[str, str] = {}
        if self.system in self.study.systems:
            captions = self.study.captions_of(self.system).sort("image_id", "sample")
            caption_of = dict(
                captions.unique("image_id", keep="first").select("image_id", "caption").iter_rows()
            )
        frames = []
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
                "caption": [caption_of.get(item, "") for item in listed.items],
                "detail": [json.dumps(detail, ensure_ascii=False) for detail in details],
            }
            frames.append(pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String())))
        return frames


@dataclass(frozen=True)
class _AtK:
    """The rows for one cutoff k."""

    measured: RetrievalSkewMeasurements
    builder: ResultBuilder
    k: int

    @cached_property
    def share(self) -> Array:
        """Shares of groups in the top k: (lists, groups); nan where nobody in it has a known group."""
        return np.array([shares(counts_at(upto, self.k)) for upto in self.measured.cumulative])

    @cached_property
    def defined(self) -> Mask:
        """The lists whose top k holds somebody with a known group."""
        return np.asarray(~np.isnan(self.share).any(axis=1))

    def bias(self) -> None:
        case, defined, refs = self.measured, self.defined, self.measured.references
        null = distance(case.null[0][self.k], refs)
        self._over_queries("bias@k", distance(self.share, refs), null, defined, self._top())
        self._by_query("bias@k", distance(self.share, refs), null, defined, self._top())
        p_values = self._group_p_values()
        for index, group in enumerate(case.groups):
            group_share = self.share[:, index]
            self._group_over_queries(
                "bias@k",
                group,
                index,
                group_share[:, None],
                lambda totals: bias(_mean(totals)),
                float(bias(_mean_over(refs, defined))[index]),
                p_values,
            )
            self._group_by_query("bias@k", group, index, bias(group_share), bias(refs[:, index]))

    def skew(self) -> None:
        p_values = self._group_p_values()
        for index, group in enumerate(self.measured.groups):
            refs = self.measured.references[:, index]
            share_and_reference = np.column_stack([self.share[:, index], refs])
            self._group_over_queries("skew@k", group, index, share_and_reference, _log_ratio, 0.0, p_values)
            self._group_by_query(
                "skew@k", group, index, skew(self.share[:, index], refs), np.zeros(len(refs))
            )

    def max_skew(self) -> None:
        refs = self.measured.references
        null = max_skew(self.measured.null[0][self.k], refs)
        values = max_skew(self.share, refs)
        self._over_queries("maxskew", values, null, self.defined, self._top())
        self._by_query("maxskew", values, null, self.defined, self._top())

    def ndkl(self) -> None:
        case, depth = self.measured, self.measured.depth
        values = np.array(
            [ndkl(upto[:depth], refs) for upto, refs in zip(case.cumulative, case.references, strict=True)]
        )
        # Ranks down to the depth; items tied with the last one are included.
        selected = [listed.in_top(depth or len(listed.items)) for listed in case.lists]
        self._over_queries("ndkl", values, case.null[1], ~np.isnan(values), selected)
        self._by_query("ndkl", values, case.null[1], ~np.isnan(values), selected)

    def _over_queries(
        self, term: str, values: Array, null: Array, defined: Mask, selected: Sequence[Mask]
    ) -> None:
        """The headline row: the mean over queries."""
        support = self._support(defined, selected)
        estimate, p, ideal, reason = Estimate.of(None), None, None, self._note(defined, support)
        queries = self._resampler(defined)
        if defined.any() and np.isfinite(values[defined]).all():
            upper = 2.0 if term == "bias@k" else np.inf
            estimate = _small_sample_interval(
                bootstrap(_with_count(values[defined, None]), _mean, queries)[0],
                queries,
                0.0,
                upper,
            )
            chance = null[:, defined].mean(axis=1)
            ideal = float(chance.mean())
            p = float(permutation_p(np.array([values[defined].mean()]), chance[:, None])[0])
        elif defined.any():
            reason = f"{np.isinf(values[defined]).sum()} queries show a group to which the reference gives no share"
        self.builder.add(
            term,
            estimate,
            system=self.measured.system,
            n=int(defined.sum()),
            n_unit="query",
            support=support,
            reason=reason,
            p=p,
            ideal=ideal,
            evidence=self._evidence(selected),
            resampler=queries,
            in_brief=term != "bias@k",  # its rows by group hold all of them
        )

    def _by_query(
        self, term: str, values: Array, null: Array, defined_queries: Mask, selected: Sequence[Mask]
    ) -> None:
        """One row per query, for all groups together."""
        p = permutation_p(values, null)
        n_items = [self._n_items(selected, index) for index in range(len(values))]
        p_values = [
            float(p[index])
            if defined_queries[index] and np.isfinite(values[index]) and n_items[index] >= TOO_FEW
            else None
            for index in range(len(values))
        ]
        q = benjamini_hochberg(p_values)
        for index, listed in enumerate(self.measured.lists):
            defined = bool(np.isfinite(values[index]))
            reason = None
            if not defined:
                reason = (
                    "it shows a group to which the reference gives no share"
                    if defined_queries[index]
                    else f"it shows {_NOBODY_LABELLED}"
                )
            self.builder.add(
                term,
                float(values[index]) if defined else None,
                system=self.measured.system,
                item=listed.query,
                n=n_items[index],
                n_unit="item",
                reason=reason,
                p=p_values[index],
                q=q[index],
                ideal=float(null[:, index].mean()) if defined else None,
                evidence=self._evidence(selected, index),
            )

    def _group_over_queries(
        self,
        term: str,
        group: str,
        group_index: int,
        columns: Array,
        statistic: Callable[[Array], Array],
        ideal: float,
        p_values: Array,
    ) -> None:
        """One group over all queries. p: is its mean share farther from the reference than under permutation?"""
        defined, selected = self.defined, self._top()
        support = self._support(defined, selected)
        queries = self._resampler(defined)
        estimate, reason = Estimate.of(None), self._note(defined, support)
        if defined.any():
            lower, upper = (-1.0, 1.0) if term == "bias@k" else (-np.inf, np.inf)
            estimate = _small_sample_interval(
                bootstrap(_with_count(columns[defined]), statistic, queries)[0],
                queries,
                lower,
                upper,
            )
            if estimate.value is None:
                absent = not self.share[defined, group_index].any()
                reason = _undefined_reason(
                    absent, bool(self.measured.references[defined, group_index].any()), "any query"
                )
        self.builder.add(
            term,
            estimate,
            system=self.measured.system,
            group=group,
            n=int(defined.sum()),
            n_unit="query",
            support=support,
            reason=reason,
            p=None if estimate.value is None else float(p_values[group_index]),
            ideal=ideal if estimate.value is not None else None,
            evidence=self._evidence(selected, group=group_index),
            resampler=queries,
        )

    def _group_by_query(self, term: str, group: str, group_index: int, values: Array, ideal: Array) -> None:
        """One row per query for one group."""
        selected = self._top()
        for index, ranked in enumerate(self.measured.lists):
            defined = bool(np.isfinite(values[index]))
            reason = None
            if not self.defined[index]:
                reason = f"the first {self.k} show {_NOBODY_LABELLED}"
            elif not defined:
                share, ref = self.share[index, group_index], self.measured.references[index, group_index]
                reason = _undefined_reason(share == 0, ref > 0, "the query")
            self.builder.add(
                term,
                float(values[index]) if defined else None,
                system=self.measured.system,
                group=group,
                item=ranked.query,
                n=self._n_items(selected, index),
                n_unit="item",
                reason=reason,
                ideal=float(ideal[index]) if defined else None,
                evidence=self._evidence(selected, index, group_index),
            )

    def _group_p_values(self) -> Array:
        """Permutation p of each group's mean share: (groups)."""
        defined = self.defined
        if not defined.any():
            return np.full(len(self.measured.groups), np.nan)
        refs = _mean_over(self.measured.references, defined)
        null = np.abs(self.measured.null[0][self.k][:, defined].mean(axis=1) - refs)
        return permutation_p(np.abs(_mean_over(self.share, defined) - refs), null)

    def _resampler(self, defined: Mask) -> Resampler:
        names = tuple(listed.query for listed, yes in zip(self.measured.lists, defined, strict=True) if yes)
        return resampler(names, self.measured.seed, self.measured.n_resamples)

    def _note(self, defined: Mask, support: int) -> str | None:
        if not defined.any():
            return f"the lists show {_NOBODY_LABELLED}"
        if defined.all() or support < TOO_FEW:
            return None
        return f"over {int(defined.sum())} of {len(defined)} queries; the others show {_NOBODY_LABELLED}"

    def _top(self) -> list[Mask]:
        return [listed.in_top(self.k) for listed in self.measured.lists]

    def _n_items(self, selected: Sequence[Mask], index: int) -> int:
        """How many selected items of a list have a known group."""
        return int(np.sum(selected[index] & (self.measured.lists[index].group != UNKNOWN)))

    def _support(self, defined: Mask, selected: Sequence[Mask]) -> int:
        """How many distinct items a mean over queries is based on."""
        return len(
            {
                item
                for listed, yes, chosen in zip(self.measured.lists, defined, selected, strict=True)
                if yes
                for item, labelled in zip(listed.items, chosen & (listed.group != UNKNOWN), strict=True)
                if labelled
            }
        )

    def _evidence(
        self, selected: Sequence[Mask], index: int | None = None, group: int | None = None
    ) -> pl.DataFrame:
        """Evidence: the selected items of one list or all. For a group, its items, or all where it has none."""
        indices = range(len(selected)) if index is None else [index]
        chosen = {number: selected[number] for number in indices}
        if group is not None:
            of_group = {
                number: chosen[number] & (self.measured.lists[number].group == group) for number in indices
            }
            chosen = of_group if any(mask.any() for mask in of_group.values()) else chosen
        return pl.concat(
            [
                self.measured.evidence[number].filter(pl.Series(mask, dtype=pl.Boolean))
                for number, mask in chosen.items()
            ]
        )


def _undefined_reason(absent: bool, expected: bool, where: str) -> str:
    if not expected:
        return "the reference gives the group no share" + (" and it has none" if absent else "")
    return f"nobody of the group is in the top of {where}: its logarithm is minus infinity"


def _small_sample_interval(estimate: Estimate, queries: Resampler, lower: float, upper: float) -> Estimate:
    """The interval corrected for few queries (Hesterberg 2015), clipped to the possible range.

    Bootstrap replicates are too narrow by the root of (n - 1) / n, and follow a normal instead of Student's t.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return estimate
    n = len(queries.names)
    factor = math.sqrt(n / (n - 1)) * float(stdtrit(n - 1, _UPPER) / ndtri(_UPPER))
    low = estimate.value - factor * (estimate.value - estimate.low)
    high = estimate.value + factor * (estimate.high - estimate.value)
    return replace(estimate, low=max(low, lower), high=min(high, upper))


def _with_count(columns: Array) -> Array:
    return np.column_stack([np.ones(len(columns)), columns])


def _mean(totals: Array) -> Array:
    """Mean of sums; the first column holds the number of queries."""
    mean: Array = totals[:, 1] / totals[:, 0]
    return mean


def _mean_over(rows: Array, defined: Mask) -> Array:
    """Mean over the defined lists: (lists, groups) to (groups); nan where there are none."""
    return rows[defined].mean(axis=0) if defined.any() else np.full(rows.shape[1], np.nan)


def _log_ratio(totals: Array) -> Array:
    """Log of mean share over mean reference."""
    return skew(totals[:, 1], totals[:, 2])
