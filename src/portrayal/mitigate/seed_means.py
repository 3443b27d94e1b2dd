"""Means over training seeds, their differences and ratios, with confidence intervals."""

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
class SeedMean:
    """One number of a method: an estimate for each seed, all from the same bootstrap resamples of images."""

    seeds: tuple[Estimate, ...]
    seed: int
    # For a rate: the estimate pooled over seeds, whose interval has a width at 0 and 1.
    rate: Estimate | None = None

    @property
    def defined(self) -> bool:
        return all(estimate.value is not None for estimate in self.seeds)

    @cached_property
    def points(self) -> Array:
        return np.array([estimate.value for estimate in self.seeds], dtype=np.float64)

    @cached_property
    def replicates(self) -> Array:
        """Bootstrap replicates of shape (seeds, n_resamples)."""
        return np.stack([estimate.replicates for estimate in self.seeds])

    @property
    def std(self) -> float | None:
        """Standard deviation over seeds, or None."""
        return float(self.points.std(ddof=1)) if len(self.seeds) > 1 and self.defined else None

    def mean(self) -> Estimate:
        """Return the mean over seeds, with an interval over seeds and images."""
        if not self.defined:
            return Estimate.of(None)
        estimate = _estimate(
            float(self.points.mean()), replicates_over_seeds(self.replicates, self.points, self.seed)
        )
        if self.rate is None:
            return estimate
        estimates = (estimate, self.rate)
        low = min((item.low for item in estimates if item.low is not None), default=None)
        high = max((item.high for item in estimates if item.high is not None), default=None)
        return replace(
            estimate,
            low=None if low is None else max(low, 0.0),
            high=None if high is None else min(high, 1.0),
        )

    def minus(self, other: SeedMean) -> SeedMean:
        """Return the difference, paired by seed and by resample."""
        differences = [
            Estimate(a.value - b.value, None, None, None, a.replicates - b.replicates)
            if a.value is not None and b.value is not None
            else Estimate.of(None)
            for a, b in zip(self.seeds, other.seeds, strict=True)
        ]
        return SeedMean(tuple(differences), self.seed)

    def ratio_to(self, other: SeedMean) -> Estimate:
        """Return the ratio of the means, paired by resample."""
        if not self.defined or not other.defined or other.points.mean() <= 0:
            return Estimate.of(None)
        numerator = replicates_over_seeds(self.replicates, self.points, self.seed)
        denominator = replicates_over_seeds(other.replicates, other.points, self.seed)
        ratios = np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0)
        return _estimate(float(self.points.mean() / other.points.mean()), ratios)


def _estimate(value: float, replicates: Array) -> Estimate:
    """Return an estimate, without an interval where too few replicates are defined."""
    low, high = (float(end[0]) for end in percentile_interval(replicates[:, None]))
    finite = replicates[np.isfinite(replicates)]
    if not np.isfinite(low) or len(finite) < 2:
        return Estimate(value, None, None, None, replicates)
    return Estimate(value, low, high, float(finite.std(ddof=1)), replicates)
