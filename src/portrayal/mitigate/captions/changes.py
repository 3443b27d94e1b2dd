"""Paired differences of measurements: after mitigation minus before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from portrayal.comparing import compare
from portrayal.errors import PortrayalError
from portrayal.mitigate.captions.card import CARD
from portrayal.mitigate.captions.compared_metrics import is_compared
from portrayal.results import Measurement, Results

_NOT_PAIRED = "not paired: the images were not resampled together"


def changes(
    results: Results, before: Mapping[str, str], settings: Mapping[str, Mapping[str, Any]], term: str
) -> Results:
    """Return the difference for each headline and group row that a mitigated system and its original share.

    `before` maps each mitigated system to the system to compare with. The item of a row is the metric and the term.
    """
    has_splits = _metrics_with_splits(results)
    measurements: list[Measurement] = []
    for system, original in before.items():
        first, second = (_comparable_results(results, name) for name in (original, system))
        try:
            compared = compare(first, second, (original, system))
        except PortrayalError:
            # Nothing was measured for both.
            continue
        for row in compared.measurements:
            split = f" ({row.settings['split']})" if row.metric in has_splits else ""
            unpaired = row.value is not None and row.settings["paired"] is False
            measurements.append(
                Measurement(
                    CARD.name,
                    term,
                    system=system,
                    attribute=row.attribute,
                    group=row.group,
                    item=f"{row.metric}: {row.term}{split}",
                    value=row.value,
                    low=row.low,
                    high=row.high,
                    se_data=row.se_data,
                    n=row.n,
                    n_unit=row.n_unit,
                    p=row.p,
                    q=row.q,
                    better=row.better,
                    unit=row.unit,
                    caution=row.caution,
                    reason=row.reason or (_NOT_PAIRED if unpaired else None),
                    settings=dict(settings[system]),
                )
            )
    return Results(tuple(measurements))


def _metrics_with_splits(results: Results) -> set[str]:
    """The metrics that were measured under several data splits, which the item of a row then names."""
    splits = {(m.metric, str(m.settings["split"])) for m in results.measurements if "split" in m.settings}
    counts = Counter(metric for metric, _ in splits)
    return {metric for metric, count in counts.items() if count > 1}


def _comparable_results(results: Results, system: str) -> Results:
    """Return the measurements of one system that are compared, with evidence and replicates for pairing.

    The system gets a name that no system has, since human captions are compared with human captions here.
    """
    candidates = [
        m
        for m in results.measurements
        if m.system == system and m.item is None and is_compared(m.metric, m.term)
    ]
    # A count says nothing beyond its share.
    shares = {(m.metric, m.term) for m in candidates if m.unit == "share"}
    kept = [m for m in candidates if m.unit != "count" or (m.metric, m.term) not in shares]
    ids = [m.id for m in kept]
    return Results(
        tuple(replace(m, system=f"({system})") for m in kept),
        results.evidence.filter(pl.col("id").is_in(ids)),
        results.replicates.filter(pl.col("id").is_in(ids)),
        {"cards": results.provenance.get("cards", {})},
    )
