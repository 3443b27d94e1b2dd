"""Cluster bootstrap: how far a number would move had other images been drawn.

The unit of resampling is the cluster, most often an image: five captions of one image are one cluster.
A metric hands over counts per cluster and a function from summed counts to its value; nothing here knows
what is counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

Array = NDArray[np.float64]
Counts: TypeAlias = Any  # an array or a sparse array of scipy: (clusters, columns)
Statistic = Callable[[Array], Array]  # (draws, counts) summed counts -> (draws,) or (draws, values)

DRAWS = 1000
LEVEL = 0.95
_CHUNK = 64  # draws held in memory at once
_ENOUGH_DEFINED = 0.95  # with fewer draws defined than this, an interval would describe the others only


@dataclass(frozen=True)
class Resampler:
    """The draws for one set of clusters; equal names, strata and seed give equal draws, in any process.

    `names` are sorted, so that the order of a study's rows changes nothing, and two systems measured on the
    same images are drawn alike, which makes their difference a paired one. With `strata`, every draw keeps
    the number of clusters of each stratum: for terms conditional on the group.
    """

    names: tuple[str, ...]
    strata: tuple[int, ...] | None = None
    seed: int = 0
    draws: int = DRAWS

    def __post_init__(self) -> None:
        if any(a >= b for a, b in zip(self.names, self.names[1:], strict=False)):
            raise ValueError("The names of clusters must be sorted and unique.")
        if self.strata is not None and len(self.strata) != len(self.names):
            raise ValueError("There must be one stratum per cluster.")

    @cached_property
    def digest(self) -> str:
        """Equal for two measurements whose draws can be paired."""
        parts = [*self.names, "strata", *map(str, self.strata or ()), "seed", str(self.seed), str(self.draws)]
        return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]

    def totals(self, counts: Counts) -> Array:
        """Summed counts of every draw: (draws, columns). Counts have one row per cluster."""
        if counts.shape[0] != len(self.names):
            raise ValueError(f"There are {len(self.names)} clusters but {counts.shape[0]} rows of counts.")
        parts = [np.asarray(weights @ counts, dtype=np.float64) for weights in self._weights()]
        return np.concatenate(parts) if parts else np.empty((0, counts.shape[1]))

    def _weights(self) -> Iterator[Array]:
        """How often each cluster is drawn, some draws at a time."""
        for start in range(0, self.draws, _CHUNK):
            size = min(_CHUNK, self.draws - start)
            yield self._multiplicities[start : start + size].astype(np.float64)

    @cached_property
    def _multiplicities(self) -> NDArray[np.uint8]:
        """(draws, clusters); a cluster is never drawn 256 times in practice, so a byte is enough."""
        made = np.empty((self.draws, len(self.names)), dtype=np.uint8)
        strata = np.zeros(len(self.names), dtype=np.int64) if self.strata is None else np.array(self.strata)
        members = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
        for draw in range(self.draws):
            rng = np.random.default_rng([self.seed, draw])
            for places in members:
                drawn = rng.integers(0, len(places), size=len(places))
                made[draw, places] = np.bincount(drawn, minlength=len(places))
        return made


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, its standard error over data, and the draws they come from."""

    value: float | None
    low: float | None
    high: float | None
    se: float | None
    replicates: Array

    @classmethod
    def of(cls, value: float | None) -> Estimate:
        """A value alone, or an undefined one."""
        return cls(value, None, None, None, np.empty(0))

    def at_least(self, least: float) -> Estimate:
        """The same estimate of a number that cannot be smaller than this."""
        return replace(self, low=None if self.low is None else max(self.low, least))

    def moved(self, by: float) -> Estimate:
        """The same estimate with a known number added."""

        def add(number: float | None) -> float | None:
            return None if number is None else number + by

        return Estimate(add(self.value), add(self.low), add(self.high), self.se, self.replicates + by)


def divide_columns(totals: Array) -> Array:
    """The statistic of a ratio of two counts: the first column over the second, undefined where that is 0."""
    made: Array = np.divide(
        totals[:, 0], totals[:, 1], out=np.full(len(totals), np.nan), where=totals[:, 1] != 0
    )
    return made


def column_sums(counts: Counts) -> Array:
    return np.asarray(counts.sum(axis=0), dtype=np.float64).reshape(-1)


def bootstrap(
    counts: Counts,
    statistic: Statistic,
    resampler: Resampler,
    method: str = "percentile",
    level: float = LEVEL,
) -> list[Estimate]:
    """Estimates of everything `statistic` gives.

    Methods: "percentile"; "bca" for skewed statistics; "centred" for those that noise pushes one way, such as
    means of absolute values or maxima, whose draws all lie above the value they are drawn around: the draws are
    moved back before the interval is read off.
    """
    point = _columns(statistic(column_sums(counts)[None, :]))[0]
    draws = _columns(statistic(resampler.totals(counts)))
    lows, highs = percentile_interval(draws, level)
    if method == "bca":
        lows, highs = bca_interval(point, draws, _columns(statistic(_leave_one_out(counts))), level)
    elif method == "centred":
        draws = draws - (_medians(draws) - point)
        lows, highs = percentile_interval(draws, level)
    elif method != "percentile":
        raise ValueError(f"The method must be 'percentile', 'bca' or 'centred'. Got {method!r} instead.")
    errors = _standard_errors(draws)
    return [
        Estimate(_defined(point[i]), _defined(lows[i]), _defined(highs[i]), _defined(errors[i]), draws[:, i])
        if np.isfinite(point[i])
        else Estimate.of(None)
        for i in range(len(point))
    ]


def percentile_interval(draws: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """Between which values the middle of the draws lies; per column, nan where too few draws are defined."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    bounds = np.full((2, draws.shape[1]), np.nan)
    usable = (
        np.isfinite(draws).mean(axis=0) >= _ENOUGH_DEFINED if len(draws) else np.zeros(draws.shape[1], bool)
    )
    if usable.any():
        bounds[:, usable] = np.nanquantile(
            np.where(np.isfinite(draws), draws, np.nan)[:, usable], tails, axis=0
        )
    return bounds[0], bounds[1]


def bca_interval(point: Array, draws: Array, left_out: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """Bias-corrected and accelerated bounds (Efron 1987); `left_out` holds the value without each cluster."""
    lows, highs = np.full(len(point), np.nan), np.full(len(point), np.nan)
    normal = stats.norm.ppf([(1 - level) / 2, (1 + level) / 2])
    for i, value in enumerate(point):
        column = draws[np.isfinite(draws[:, i]), i]
        jackknife = left_out[np.isfinite(left_out[:, i]), i]
        if not np.isfinite(value) or len(column) < _ENOUGH_DEFINED * len(draws) or not len(column):
            continue
        if np.ptp(column) == 0:
            lows[i] = highs[i] = column[0]
            continue
        below = np.mean(column < value) + np.mean(column == value) / 2
        shift = stats.norm.ppf(np.clip(below, 0.5 / len(column), 1 - 0.5 / len(column)))
        spread = jackknife.mean() - jackknife
        scale = np.sum(spread**2) ** 1.5
        acceleration = np.sum(spread**3) / (6 * scale) if scale > 0 else 0.0
        moved = stats.norm.cdf(shift + (shift + normal) / (1 - acceleration * (shift + normal)))
        lows[i], highs[i] = np.quantile(column, moved)
    return lows, highs


@lru_cache(maxsize=8)
def resampler(names: tuple[str, ...], seed: int, draws: int) -> Resampler:
    """Draws of these clusters; kept, since several measurements rest on the same images."""
    return Resampler(names, seed=seed, draws=draws)


def sorted_clusters(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct names in order, and for each entry which of them it is."""
    distinct, places = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)
    return tuple(distinct.tolist()), places.astype(np.int64)


def _leave_one_out(counts: Counts) -> Array:
    dense = counts.toarray() if sparse.issparse(counts) else np.asarray(counts)
    left: Array = column_sums(counts)[None, :] - dense
    return left


def _columns(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def _medians(draws: Array) -> Array:
    columns = [draws[np.isfinite(draws[:, i]), i] for i in range(draws.shape[1])]
    return np.array([np.median(column) if len(column) else np.nan for column in columns])


def _standard_errors(draws: Array) -> Array:
    errors = np.full(draws.shape[1], np.nan)
    for i in range(draws.shape[1]):
        column = draws[np.isfinite(draws[:, i]), i]
        if len(column) > 1 and len(column) >= _ENOUGH_DEFINED * len(draws):
            errors[i] = column.std(ddof=1)
    return errors


def _defined(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
