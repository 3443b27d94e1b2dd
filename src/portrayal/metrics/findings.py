"""What a metric finds while it runs: measurements, each with the captions behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from portrayal.metrics.card import Card
from portrayal.results import EVIDENCE_SCHEMA, Measurement, Results, empty_evidence


@dataclass
class Findings:
    """Collects rows for one metric and one attribute; units and directions come from the card."""

    card: Card
    attribute: str | None
    settings: Mapping[str, Any]
    measurements: list[Measurement] = field(default_factory=list)
    evidence: list[pl.DataFrame] = field(default_factory=list)

    def add(
        self,
        term: str,
        *,
        system: str,
        value: float | None,
        n: int,
        n_unit: str,
        group: str | None = None,
        item: str | None = None,
        reason: str | None = None,
        ideal: float | None = None,
        evidence: pl.DataFrame | None = None,
    ) -> None:
        """One number. `evidence` has the columns image_id, caption, detail."""
        described = self.card.term(term)
        if value is None and reason is None:
            raise ValueError(f"{self.card.name}:{term} is undefined for '{system}' and no reason is given.")
        measurement = Measurement(
            metric=self.card.name,
            term=term,
            system=system,
            attribute=self.attribute,
            group=group,
            item=item,
            value=value,
            n=n,
            n_unit=n_unit,
            ideal=described.ideal if ideal is None else ideal,
            better=described.better,
            unit=described.unit,
            reason=reason,
            settings=dict(self.settings),
        )
        self.measurements.append(measurement)
        if evidence is not None and evidence.height:
            named = evidence.with_columns(pl.lit(measurement.id).alias("id"), pl.lit(system).alias("system"))
            self.evidence.append(named.select(list(EVIDENCE_SCHEMA)))

    def results(self) -> Results:
        return Results(tuple(self.measurements), pl.concat([empty_evidence(), *self.evidence]))
