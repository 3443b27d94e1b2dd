"""What a metric finds while it runs: measurements, each with its interval and the captions behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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

EVIDENCE_IN_BRIEF = 20  # behind a number where another one has them all
EVIDENCE_OF_ITEM = 100  # captions kept behind one word or object; a scan has thousands of them


@dataclass
class ResultBuilder:
    """Collects rows for one metric and one attribute; units and directions come from the card."""

    card: Card
    attribute: str | None
    settings: Mapping[str, Any]
    measurements: list[Measurement] = field(default_factory=list)
    evidence: list[tuple[str, str, pl.DataFrame]] = field(
        default_factory=list
    )  # measurement, system, captions
    replicates: list[tuple[str, str, list[float]]] = field(default_factory=list)
    keep_all: bool = False  # all captions behind every number, however many there are
    caution: str | None = None  # of every row, beside its own

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
        """One number. `evidence` has the columns image_id, caption, detail; `in_brief` keeps some of it, where another
        number has it all. A term that comes in several units, or
        is better in either direction, says in which this one is.

        `support` is the number of images it rests on, where `n` counts something else; with fewer than enough it is
        said to be too few, and neither p nor q is given. With the `resampler` its draws came from, a headline's
        draws are kept for paired comparisons.
        """
        described = self.card.term(term)
        if not isinstance(estimate, Estimate):
            estimate = Estimate.of(estimate)
        if estimate.value is None and reason is None:
            raise ValueError(f"{self.card.name}:{term} is undefined for '{system}' and no reason is given.")
        images = n if support is None else support
        unit = unit or described.unit
        if reason is None and images < TOO_FEW and unit != "count":
            reason = f"{TOO_FEW_REASON}: {images} images, fewer than {TOO_FEW}"
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
            ideal=described.ideal if ideal is None else ideal,
            better=better or described.better,
            unit=unit,
            reason=reason,
            caution=" ".join(filter(None, (self.caution, caution))) or None,
            settings=dict(self.settings),
        )
        self.measurements.append(measurement)
        if resampler is not None and item is None and len(estimate.replicates):
            self.replicates.append((measurement.id, resampler.sample, estimate.replicates.tolist()))
        if evidence is not None and evidence.height:
            most = (
                EVIDENCE_IN_BRIEF if in_brief else EVIDENCE_OF_ITEM if item is not None else evidence.height
            )
            if evidence.height > most and not self.keep_all:
                evidence = evidence.gather_every(-(-evidence.height // most))
            self.evidence.append((measurement.id, system, evidence))

    def extend(self, other: ResultBuilder) -> None:
        """Add what was found under other settings."""
        self.measurements += other.measurements
        self.evidence += other.evidence
        self.replicates += other.replicates

    def results(self) -> Results:
        return Results(
            tuple(self.measurements),
            self._evidence(),
            pl.DataFrame(self.replicates, schema=REPLICATES_SCHEMA, orient="row"),
        )

    def _evidence(self) -> pl.DataFrame:
        """All captions with the number each stands behind: put together once, since there are thousands of numbers."""
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
        told = captions.with_columns(pl.Series("id", ids, pl.String), pl.Series("system", systems, pl.String))
        return told.select(list(EVIDENCE_SCHEMA))
