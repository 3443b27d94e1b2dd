"""Collection of result rows while a metric runs: measurements, with intervals and evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from portrayal.metrics.base.card import Card
from portrayal.results import (
    EVIDENCE_SCHEMA,
    REPLICATES_SCHEMA,
    TOO_FEW,
    TOO_FEW_REASON,
    Measurement,
    Results,
)
from portrayal.stats import Estimate, Resampler

# Captions kept for a number where another number keeps them all.
BRIEF_EVIDENCE_ROWS = 20
# Captions kept for one word or object, of which there are thousands.
ITEM_EVIDENCE_ROWS = 100


@dataclass
class ResultBuilder:
    """Collects the measurements of one metric and one attribute; units and directions come from the card."""

    card: Card
    attribute: str | None
    settings: Mapping[str, Any]
    measurements: list[Measurement] = field(default_factory=list)
    # (measurement id, system, captions)
    evidence: list[tuple[str, str, pl.DataFrame]] = field(default_factory=list)
    replicates: list[tuple[str, str, list[float]]] = field(default_factory=list)
    # Whether all captions are kept as evidence of every number.
    keep_all: bool = False
    # A caution that is added to every row.
    caution: str | None = None

    def add(
        self,
        term: str,
        estimate: Estimate | float | None,
        *,
        system: str,
        n: int,
        n_unit: str = "image",
        group: str | None = None,
        item: str | None = None,
        reason: str | None = None,
        caution: str | None = None,
        support: int | None = None,
        std_seed: float | None = None,
        p: float | None = None,
        q: float | None = None,
        ideal: float | None = None,
        unit: str | None = None,
        better: str | None = None,
        evidence: pl.DataFrame | None = None,
        resampler: Resampler | None = None,
        in_brief: bool = False,
    ) -> None:
        """Add one measurement.

        Parameters
        ----------
        term, estimate
            The term of the card, and its value (None where it is undefined, which needs a `reason`).
        n, n_unit
            The number of units that the value is computed from.
        support
            The number of images behind it, where `n` counts something else. Below the minimum the row is marked as too
            few, without p and q.
        unit, better
            Override the card, for terms that have several units or directions.
        evidence
            The captions behind the number: columns image_id, caption, detail.
        resampler
            The resampler of the replicates, which are then kept for paired comparisons (headline rows only).
        in_brief
            Keep only a sample of the evidence, where another measurement keeps it all.
        """
        card_term = self.card.term(term)
        if not isinstance(estimate, Estimate):
            estimate = Estimate.of(estimate)
        if estimate.value is None and reason is None:
            raise ValueError(f"{self.card.name}:{term} is undefined for '{system}' and no reason is given.")
        support_images = n if support is None else support
        unit = unit or card_term.unit
        if reason is None and support_images < TOO_FEW and unit != "count":
            reason = f"{TOO_FEW_REASON}: {support_images} images, fewer than {TOO_FEW}"
            p = q = None
        measurement = Measurement(
            metric=self.card.name,
            term=term,
            system=system,
            attribute=self.attribute,
            group=group,
            item=item,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            std_seed=std_seed,
            se_data=estimate.se,
            n=n,
            n_unit=n_unit,
            p=p,
            q=q,
            ideal=card_term.ideal if ideal is None else ideal,
            better=better or card_term.better,
            unit=unit,
            reason=reason,
            caution=" ".join(filter(None, (self.caution, caution))) or None,
            settings=dict(self.settings),
        )
        self.measurements.append(measurement)
        if resampler is not None and item is None and len(estimate.replicates):
            self.replicates.append((measurement.id, resampler.sample, estimate.replicates.tolist()))
        if evidence is not None and evidence.height:
            limit = (
                BRIEF_EVIDENCE_ROWS
                if in_brief
                else ITEM_EVIDENCE_ROWS
                if item is not None
                else evidence.height
            )
            if evidence.height > limit and not self.keep_all:
                evidence = evidence.gather_every(-(-evidence.height // limit))
            self.evidence.append((measurement.id, system, evidence))

    def extend(self, other: ResultBuilder) -> None:
        """Add the measurements of another builder."""
        self.measurements += other.measurements
        self.evidence += other.evidence
        self.replicates += other.replicates

    def with_settings(self, settings: Mapping[str, Any]) -> ResultBuilder:
        """A builder that adds to the same lists of rows, under other settings."""
        return replace(self, settings=dict(settings))

    def results(self) -> Results:
        """The rows collected so far as Results."""
        return Results(
            tuple(self.measurements),
            self._evidence(),
            pl.DataFrame(self.replicates, schema=REPLICATES_SCHEMA, orient="row"),
        )

    def _evidence(self) -> pl.DataFrame:
        """The evidence of all measurements, concatenated once, since there are thousands of measurements."""
        if not self.evidence:
            return pl.DataFrame(schema=EVIDENCE_SCHEMA)
        columns = ("image_id", "caption", "detail")
        captions = pl.concat(
            [
                frame if tuple(frame.columns) == columns else frame.select(columns)
                for _, _, frame in self.evidence
            ]
        )
        heights = [frame.height for _, _, frame in self.evidence]
        ids = [
            name for (name, _, _), height in zip(self.evidence, heights, strict=True) for _ in range(height)
        ]
        systems = [
            name for (_, name, _), height in zip(self.evidence, heights, strict=True) for _ in range(height)
        ]
        with_ids = captions.with_columns(
            pl.Series("id", ids, pl.String), pl.Series("system", systems, pl.String)
        )
        return with_ids.select(list(EVIDENCE_SCHEMA))
