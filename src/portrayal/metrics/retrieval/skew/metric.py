"""Retrieval skew: how groups are spread over the top of ranked lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from portrayal.errors import PortrayalError
from portrayal.metrics.base.options import Bootstrap
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.retrieval.skew.card import CARD
from portrayal.metrics.retrieval.skew.measurements import RetrievalSkewMeasurements
from portrayal.metrics.retrieval.skew.ranked_lists import read_lists
from portrayal.metrics.retrieval.skew.reference import choose_reference
from portrayal.stats import RESAMPLES
from portrayal.study import Study


@metric(CARD)
def retrieval_skew(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    k: Annotated[tuple[int, ...], "Cutoffs k: numbers separated by commas."] = (10,),
    reference: Annotated[
        str | Mapping[str, float],
        "Reference shares: 'list' (of the query's whole list), 'study' (of the labelled images), 'equal', or shares "
        "such as female=0.5,male=0.5.",
    ] = "list",
    depth: Annotated[int | None, "Ranks that NDKL uses; by default the whole list.", 1] = None,
) -> ResultBuilder:
    """Bias@k, Skew@k, MaxSkew and NDKL of every system with rankings: per group, per query, and over queries.

    >>> import polars as pl, portrayal
    >>> lists = pl.DataFrame({"query": ["a nurse"] * 4, "item": ["a", "b", "c", "d"], "score": [4, 3, 2, 1],
    ...                       "group": ["female", "female", "male", "male"]})
    >>> study = portrayal.Study.from_frames(rankings=lists)
    >>> rows = portrayal.metrics.retrieval_skew(study, k=3, reference="equal").measurements
    >>> {(m.term, m.group): round(m.value, 3) for m in rows if m.item is None and m.value is not None}
    ... # doctest: +NORMALIZE_WHITESPACE
    {('bias@k', None): 0.333, ('bias@k', 'female'): 0.333, ('bias@k', 'male'): -0.333, ('skew@k', 'female'): 0.288,
     ('skew@k', 'male'): -0.405, ('maxskew', None): 0.288, ('ndkl', None): 0.452}
    """
    cutoffs = _cutoffs(k)
    chosen_reference, groups = choose_reference(reference, study, attribute)
    preconditions_met()
    builder = ResultBuilder(CARD, attribute, {})
    for system in sources:
        if system in study.rankers:
            lists = read_lists(study, system, attribute, groups)
            measurements = RetrievalSkewMeasurements(
                study, system, lists, groups, chosen_reference, cutoffs, depth, seed, bootstrap
            )
            for cutoff in cutoffs:
                measurements.measure(builder, cutoff)
    return builder


def _cutoffs(k: int | Sequence[int]) -> tuple[int, ...]:
    cutoffs = tuple(dict.fromkeys((k,) if isinstance(k, int) else k))
    for cutoff in cutoffs:
        if isinstance(cutoff, bool) or not isinstance(cutoff, int) or cutoff < 1:
            raise PortrayalError(f"The option 'k' must hold integers of 1 or more. Got {cutoff!r} instead.")
    if not cutoffs:
        raise PortrayalError("The option 'k' must hold at least one cutoff.")
    return cutoffs
