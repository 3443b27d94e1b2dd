"""What becomes of a number: after the remedy less before, in pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from portrayal.comparing import compare
from portrayal.errors import PortrayalError
from portrayal.mitigate.captions.card import CARD
from portrayal.results import Measurement, Results

# Of metrics with many terms, those that a remedy is for and those that it costs; of others all.
TERMS = {
    "lic": ("lic_m", "lic_d", "lic", "lic_excess"),
    "quality": ("cider", "cider-gap", "bleu-4"),
    "harms": ("erasure.group-not-mentioned",),
}
_NOT_PAIRED = "not paired: the images were not drawn together"


def changes(
    results: Results, before: Mapping[str, str], settings: Mapping[str, Mapping[str, Any]], term: str
) -> Results:
    """A row for each headline and group row that a remedied system and the one it was made from share.

    `before` has the system to compare with for each; the item of a row is the metric and term that it is about.
    """
    splits = {str(m.settings.get("split")) for m in results.measurements if m.metric == "lic"}
    made: list[Measurement] = []
    for system, original in before.items():
        first, second = (_of(results, name) for name in (original, system))
        try:
            found = compare(first, second, (original, system))
        except PortrayalError:  # nothing was measured of both
            continue
        for row in found.measurements:
            which = f" ({row.settings['split']})" if row.metric == "lic" and len(splits) > 1 else ""
            unpaired = row.value is not None and row.settings["paired"] is False
            made.append(
                Measurement(
                    CARD.name,
                    term,
                    system=system,
                    attribute=row.attribute,
                    group=row.group,
                    item=f"{row.metric}: {row.term}{which}",
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
    return Results(tuple(made))


def _of(results: Results, system: str) -> Results:
    """One system's numbers that are compared, and what pairing them needs. It is called what nobody is called, since
    people's captions are compared with themselves here."""
    kept = [
        m for m in results.measurements
        if m.system == system and m.item is None and m.term in TERMS.get(m.metric, (m.term,))
        and not (m.metric == "harms" and m.unit == "count")
    ]  # fmt: skip
    ids = [m.id for m in kept]
    return Results(
        tuple(replace(m, system=f"({system})") for m in kept),
        results.evidence.filter(pl.col("id").is_in(ids)),
        results.replicates.filter(pl.col("id").is_in(ids)),
        {"cards": results.provenance.get("cards", {})},
    )
