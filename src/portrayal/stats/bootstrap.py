"""Cluster bootstrap: how far a number would move had other images been drawn.

The unit of resampling is the cluster, most often an image: five captions of one image are one cluster.
A metric hands over counts per cluster and a function from summed counts to its value; nothing here knows
what is counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import ndtr, ndtri, pdtr

Array = NDArray[np.float64]
Counts: TypeAlias = Any  # an array or a sparse array of scipy: (clusters, columns)
Statistic = Callable[[Array], Array]  # (draws, counts) summed counts -> (draws,) or (draws, values)

RESAMPLES = 1000
LEVEL = 0.95
_CHUNK = 64  # draws whose weights are held as floats at once
_ENOUGH_DEFINED = 0.95  # with fewer draws defined than this, an interval would describe the others only

# P(weight <= k) of a Poisson variable of mean 1, as whole numbers of 64 bits, for k = 0, 1, 2, ...
_POISSON = np.array([int(share * 2.0**53) << 11 for share in pdtr(np.arange(17), 1)], dtype=np.uint64)


@dataclass(frozen=True)
class Resampler:
    """The draws for one set of clusters, the same in any process.

    How often draw k takes a cluster depends on the cluster's name, k and the seed, and on nothing else (a Poisson
    bootstrap). So the order of a study's rows changes nothing, and two measurements that share clusters share
    their draws, which makes their difference a paired one, even where each has clusters of its own. Every draw
    is scaled to the number of clusters; with `strata`, to the number of each stratum: for terms conditional on
    the group.
    """

    names: tuple[str, ...]
    strata: tuple[int, ...] | None = None
    seed: int = 0
    n_resamples: int = RESAMPLES

    def __post_init__(self) -> None:
        if any(a >= b for a, b in zip(self.names, self.names[1:], strict=False)):
            raise ValueError("The names of clusters must be sorted and unique.")
        if self.strata is not None and len(self.strata) != len(self.names):
            raise ValueError("There must be one stratum per cluster.")

    @property
    def sample(self) -> str:
        """Equal for two measurements whose draws can be paired."""
        return f"poisson seed {self.seed} draws {self.n_resamples}"

    def totals(self, counts: Counts) -> Array:
        """Summed counts of every draw: (draws, columns). Counts have one row per cluster."""
        if counts.shape[0] != len(self.names):
            raise ValueError(f"There are {len(self.names)} clusters but {counts.shape[0]} rows of counts.")
        parts = [
            np.asarray(self._scaled(self._multiplicities[start : start + _CHUNK].astype(np.float64)) @ counts)
            for start in range(0, self.n_resamples, _CHUNK)
        ]
        return np.concatenate(parts) if parts else np.empty((0, counts.shape[1]))

    def _scaled(self, weights: Array) -> Array:
        for places in self._members:
            drawn = weights[:, places].sum(axis=1, keepdims=True)
            weights[:, places] *= np.divide(
                len(places), drawn, out=np.full_like(drawn, np.nan), where=drawn > 0
            )
        return weights

    @cached_property
    def _members(self) -> list[NDArray[np.int64]]:
        strata = np.zeros(len(self.names), dtype=np.int64) if self.strata is None else np.array(self.strata)
        return [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]

    @cached_property
    def _multiplicities(self) -> NDArray[np.uint8]:
        """(draws, clusters): how often each draw takes each cluster."""
        names = np.array([_name_bits(name, self.seed) for name in self.names], dtype=np.uint64)
        made = np.empty((self.n_resamples, len(self.names)), dtype=np.uint8)
        for draw in range(self.n_resamples):
            made[draw] = np.searchsorted(
                _POISSON, _mixed(names + np.uint64(draw * _STEP % 2**64)), side="right"
            )
        return made


_STEP = 0x9E3779B97F4A7C15  # the golden ratio of 64 bits, by which SplitMix64 counts


def _name_bits(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}\x1f{name}".encode(), digest_size=8).digest(), "little")


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood 2014): numbers in sequence become independent random ones."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


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

        def bounded(number: float | None) -> float | None:
            return None if number is None else max(number, least)

        return replace(self, value=bounded(self.value), low=bounded(self.low), high=bounded(self.high))

    def times(self, factor: float) -> Estimate:
        """The same estimate in another unit."""

        def scale(number: float | None) -> float | None:
            return None if number is None else number * factor

        return Estimate(
            scale(self.value), scale(self.low), scale(self.high), scale(self.se), self.replicates * factor
        )

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
    if (
        len(resampler.names) < 2
    ):  # one cluster drawn again and again says nothing of how far others would differ
        return [Estimate.of(_defined(value)) for value in point]
    n_resamples = _columns(statistic(resampler.totals(counts)))
    lows, highs = percentile_interval(n_resamples, level)
    if method == "bca":
        lows, highs = bca_interval(point, n_resamples, _columns(statistic(_leave_one_out(counts))), level)
    elif method == "centred":
        n_resamples = n_resamples - (_medians(n_resamples) - point)
        lows, highs = percentile_interval(n_resamples, level)
    elif method != "percentile":
        raise ValueError(f"The method must be 'percentile', 'bca' or 'centred'. Got {method!r} instead.")
    errors = _standard_errors(n_resamples)
    return [
        Estimate(
            _defined(point[i]), _defined(lows[i]), _defined(highs[i]), _defined(errors[i]), n_resamples[:, i]
        )
        if np.isfinite(point[i])
        else Estimate.of(None)
        for i in range(len(point))
    ]


def percentile_interval(replicates: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """Between which values the middle of the draws lies; per column, nan where too few draws are defined."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    bounds = np.full((2, replicates.shape[1]), np.nan)
    usable = (
        np.isfinite(replicates).mean(axis=0) >= _ENOUGH_DEFINED
        if len(replicates)
        else np.zeros(replicates.shape[1], bool)
    )
    if usable.any():
        bounds[:, usable] = np.nanquantile(
            np.where(np.isfinite(replicates), replicates, np.nan)[:, usable], tails, axis=0
        )
    return bounds[0], bounds[1]


def bca_interval(
    point: Array, replicates: Array, left_out: Array, level: float = LEVEL
) -> tuple[Array, Array]:
    """Bias-corrected and accelerated bounds (Efron 1987); `left_out` holds the value without each cluster."""
    lows, highs = np.full(len(point), np.nan), np.full(len(point), np.nan)
    normal = ndtri([(1 - level) / 2, (1 + level) / 2])
    for i, value in enumerate(point):
        column = replicates[np.isfinite(replicates[:, i]), i]
        jackknife = left_out[np.isfinite(left_out[:, i]), i]
        if not np.isfinite(value) or len(column) < _ENOUGH_DEFINED * len(replicates) or not len(column):
            continue
        if np.ptp(column) == 0:
            lows[i] = highs[i] = column[0]
            continue
        below = np.mean(column < value) + np.mean(column == value) / 2
        shift = ndtri(np.clip(below, 0.5 / len(column), 1 - 0.5 / len(column)))
        spread = jackknife.mean() - jackknife
        scale = np.sum(spread**2) ** 1.5
        acceleration = np.sum(spread**3) / (6 * scale) if scale > 0 else 0.0
        moved = ndtr(shift + (shift + normal) / (1 - acceleration * (shift + normal)))
        lows[i], highs[i] = np.quantile(column, moved)
    return lows, highs


@lru_cache(maxsize=8)
def resampler(names: tuple[str, ...], seed: int, n_resamples: int) -> Resampler:
    """Draws of these clusters; kept, since several measurements rest on the same images."""
    return Resampler(names, seed=seed, n_resamples=n_resamples)


def sorted_clusters(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct names in order, and for each entry which of them it is."""
    distinct = tuple(sorted(set(names)))
    place = {name: number for number, name in enumerate(distinct)}
    return distinct, np.fromiter((place[name] for name in names), dtype=np.int64, count=len(names))


def _leave_one_out(counts: Counts) -> Array:
    dense = counts.toarray() if sparse.issparse(counts) else np.asarray(counts)
    left: Array = column_sums(counts)[None, :] - dense
    return left


def _columns(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def _medians(replicates: Array) -> Array:
    columns = [replicates[np.isfinite(replicates[:, i]), i] for i in range(replicates.shape[1])]
    return np.array([np.median(column) if len(column) else np.nan for column in columns])


def _standard_errors(replicates: Array) -> Array:
    errors = np.full(replicates.shape[1], np.nan)
    for i in range(replicates.shape[1]):
        column = replicates[np.isfinite(replicates[:, i]), i]
        if len(column) > 1 and len(column) >= _ENOUGH_DEFINED * len(replicates):
            errors[i] = column.std(ddof=1)
    return errors


def _defined(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
