"""A number over seeds: its mean, how far it is from another's, and how sure both are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from portrayal.stats import Estimate
from portrayal.stats.bootstrap import percentile_interval
from portrayal.stats.seeds import replicates_over_seeds

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Number:
    """One number of a method: an estimate for each seed, all from the same draws of pictures."""

    seeds: tuple[Estimate, ...]
    seed: int
    # Of a rate: as if all seeds were one, with an interval that has a width at 0 and 1.
    rate: Estimate | None = None

    @property
    def defined(self) -> bool:
        return all(one.value is not None for one in self.seeds)

    @cached_property
    def points(self) -> Array:
        return np.array([one.value for one in self.seeds], dtype=np.float64)

    @cached_property
    def draws(self) -> Array:
        """(seeds, draws)"""
        return np.stack([one.replicates for one in self.seeds])

    @property
    def spread(self) -> float | None:
        """Over seeds."""
        return float(self.points.std(ddof=1)) if len(self.seeds) > 1 and self.defined else None

    def mean(self) -> Estimate:
        if not self.defined:
            return Estimate.of(None)
        made = _estimate(float(self.points.mean()), replicates_over_seeds(self.draws, self.points, self.seed))
        if self.rate is None:
            return made
        both = (made, self.rate)
        low = min((one.low for one in both if one.low is not None), default=None)
        high = max((one.high for one in both if one.high is not None), default=None)
        return replace(
            made, low=None if low is None else max(low, 0.0), high=None if high is None else min(high, 1.0)
        )

    def less(self, other: Number) -> Number:
        """Seed by seed, draw by draw."""
        made = [
            Estimate(a.value - b.value, None, None, None, a.replicates - b.replicates)
            if a.value is not None and b.value is not None
            else Estimate.of(None)
            for a, b in zip(self.seeds, other.seeds, strict=True)
        ]
        return Number(tuple(made), self.seed)

    def share_of(self, other: Number) -> Estimate:
        """The mean of this over the mean of the other, with what both have in common in every draw."""
        if not self.defined or not other.defined or other.points.mean() <= 0:
            return Estimate.of(None)
        above = replicates_over_seeds(self.draws, self.points, self.seed)
        below = replicates_over_seeds(other.draws, other.points, self.seed)
        draws = np.divide(above, below, out=np.full_like(above, np.nan), where=below > 0)
        return _estimate(float(self.points.mean() / other.points.mean()), draws)


def _estimate(value: float, draws: Array) -> Estimate:
    """Without an interval where too few draws are defined."""
    low, high = (float(end[0]) for end in percentile_interval(draws[:, None]))
    known = draws[np.isfinite(draws)]
    if not np.isfinite(low) or len(known) < 2:
        return Estimate(value, None, None, None, draws)
    return Estimate(value, low, high, float(known.std(ddof=1)), draws)
