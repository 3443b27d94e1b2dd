"""Cluster bootstrap: how much a number varies over resamples of the images.

The unit of resampling is the cluster, usually an image: five captions of one image are one cluster. A metric passes
counts per cluster and a function from summed counts to its value; this module does not know what is counted.
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
Statistic = Callable[
    [Array], Array
]  # (resamples, counts) summed counts -> (resamples,) or (resamples, values)

RESAMPLES = 1000
LEVEL = 0.95
_CHUNK = 64  # resamples whose weights are held as floats at once
_MIN_SHARE_DEFINED = 0.95  # with fewer defined replicates, an interval would describe only those

# P(weight <= k) of a Poisson(1) variable as 64-bit integers, for k = 0, 1, 2, ...
_POISSON_CDF = np.array([int(share * 2.0**53) << 11 for share in pdtr(np.arange(17), 1)], dtype=np.uint64)


@dataclass(frozen=True)
class Resampler:
    """Poisson bootstrap resamples of one set of clusters, the same in any process.

    How often resample k contains a cluster depends only on the cluster's name, k and the seed. Row order therefore
    changes nothing, and two measurements that share clusters share their resamples, so their difference is paired
    even where each has clusters of its own. Each resample is scaled to the number of clusters; with `strata`, to the
    number in each stratum, for terms that are conditional on the group.
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
        """Equal for two measurements whose resamples can be paired."""
        return f"poisson seed {self.seed} resamples {self.n_resamples}"

    def totals(self, counts: Counts) -> Array:
        """Summed counts of every resample: (resamples, columns). `counts` has one row per cluster."""
        if counts.shape[0] != len(self.names):
            raise ValueError(f"There are {len(self.names)} clusters but {counts.shape[0]} rows of counts.")
        parts = [
            np.asarray(self._scaled(self._multiplicities[start : start + _CHUNK].astype(np.float64)) @ counts)
            for start in range(0, self.n_resamples, _CHUNK)
        ]
        return np.concatenate(parts) if parts else np.empty((0, counts.shape[1]))

    def _scaled(self, weights: Array) -> Array:
        for members in self._members:
            stratum_total = weights[:, members].sum(axis=1, keepdims=True)
            weights[:, members] *= np.divide(
                len(members), stratum_total, out=np.full_like(stratum_total, np.nan), where=stratum_total > 0
            )
        return weights

    @cached_property
    def _members(self) -> list[NDArray[np.int64]]:
        strata = np.zeros(len(self.names), dtype=np.int64) if self.strata is None else np.array(self.strata)
        return [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]

    @cached_property
    def _multiplicities(self) -> NDArray[np.uint8]:
        """(resamples, clusters): how often each resample contains each cluster."""
        name_bits = np.array([_name_bits(name, self.seed) for name in self.names], dtype=np.uint64)
        multiplicities = np.empty((self.n_resamples, len(self.names)), dtype=np.uint8)
        for resample in range(self.n_resamples):
            multiplicities[resample] = np.searchsorted(
                _POISSON_CDF, _splitmix64(name_bits + np.uint64(resample * _STEP % 2**64)), side="right"
            )
        return multiplicities


_STEP = 0x9E3779B97F4A7C15  # the golden ratio of 64 bits, by which SplitMix64 counts


def _name_bits(name: str, seed: int) -> int:
    return int.from_bytes(hashlib.blake2b(f"{seed}\x1f{name}".encode(), digest_size=8).digest(), "little")


def _splitmix64(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finaliser of SplitMix64 (Steele, Lea and Flood 2014): makes consecutive numbers independent."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@dataclass(frozen=True)
class Estimate:
    """A value, its confidence interval, its standard error, and the bootstrap replicates behind them."""

    value: float | None
    low: float | None
    high: float | None
    se: float | None
    replicates: Array

    @classmethod
    def of(cls, value: float | None) -> Estimate:
        """An estimate without an interval; None is undefined."""
        return cls(value, None, None, None, np.empty(0))

    def at_least(self, minimum: float) -> Estimate:
        """The estimate clipped below at `minimum`."""

        def bounded(number: float | None) -> float | None:
            return None if number is None else max(number, minimum)

        return replace(self, value=bounded(self.value), low=bounded(self.low), high=bounded(self.high))

    def scaled(self, factor: float) -> Estimate:
        """The estimate multiplied by `factor`."""

        def scale(number: float | None) -> float | None:
            return None if number is None else number * factor

        return Estimate(
            scale(self.value), scale(self.low), scale(self.high), scale(self.se), self.replicates * factor
        )

    def shifted(self, offset: float) -> Estimate:
        """The estimate plus a known number."""

        def add(number: float | None) -> float | None:
            return None if number is None else number + offset

        return Estimate(add(self.value), add(self.low), add(self.high), self.se, self.replicates + offset)


def divide_columns(totals: Array) -> Array:
    """The first column over the second, nan where the second is 0: the statistic of a ratio of counts."""
    ratio: Array = np.divide(
        totals[:, 0], totals[:, 1], out=np.full(len(totals), np.nan), where=totals[:, 1] != 0
    )
    return ratio


def column_sums(counts: Counts) -> Array:
    return np.asarray(counts.sum(axis=0), dtype=np.float64).reshape(-1)


def bootstrap(
    counts: Counts,
    statistic: Statistic,
    resampler: Resampler,
    method: str = "percentile",
    level: float = LEVEL,
) -> list[Estimate]:
    """Estimates of every column of `statistic`, with bootstrap intervals.

    Parameters
    ----------
    counts
        One row per cluster, one column per count.
    statistic
        From summed counts (resamples, columns) to values (resamples,) or (resamples, values).
    resampler
        The resamples of the clusters.
    method
        "percentile"; "bca" for skewed statistics; "centred" for statistics that noise biases upwards, such as means of
        absolute values or maxima: the replicates are shifted to have their median at the value.
    level
        Confidence level.
    """
    point = _columns(statistic(column_sums(counts)[None, :]))[0]
    # Resamples of a single cluster do not vary, although other clusters would differ.
    if len(resampler.names) < 2:
        return [Estimate.of(_defined(value)) for value in point]
    replicates = _columns(statistic(resampler.totals(counts)))
    lows, highs = percentile_interval(replicates, level)
    if method == "bca":
        lows, highs = bca_interval(point, replicates, _columns(statistic(_leave_one_out(counts))), level)
    elif method == "centred":
        replicates = replicates - (_medians(replicates) - point)
        lows, highs = percentile_interval(replicates, level)
    elif method != "percentile":
        raise ValueError(f"The method must be 'percentile', 'bca' or 'centred'. Got {method!r} instead.")
    errors = _standard_errors(replicates)
    return [
        Estimate(
            _defined(point[i]), _defined(lows[i]), _defined(highs[i]), _defined(errors[i]), replicates[:, i]
        )
        if np.isfinite(point[i])
        else Estimate.of(None)
        for i in range(len(point))
    ]


def percentile_interval(replicates: Array, level: float = LEVEL) -> tuple[Array, Array]:
    """Percentile interval of each column of replicates; nan where too few replicates are defined."""
    tails = [(1 - level) / 2, (1 + level) / 2]
    bounds = np.full((2, replicates.shape[1]), np.nan)
    usable = (
        np.isfinite(replicates).mean(axis=0) >= _MIN_SHARE_DEFINED
        if len(replicates)
        else np.zeros(replicates.shape[1], bool)
    )
    if usable.any():
        bounds[:, usable] = np.nanquantile(
            np.where(np.isfinite(replicates), replicates, np.nan)[:, usable], tails, axis=0
        )
    return bounds[0], bounds[1]


def bca_interval(
    point: Array, replicates: Array, jackknife_values: Array, level: float = LEVEL
) -> tuple[Array, Array]:
    """BCa interval (Efron 1987); `jackknife_values` holds the statistic without each cluster."""
    lows, highs = np.full(len(point), np.nan), np.full(len(point), np.nan)
    normal = ndtri([(1 - level) / 2, (1 + level) / 2])
    for i, value in enumerate(point):
        replicate_column = replicates[np.isfinite(replicates[:, i]), i]
        jackknife = jackknife_values[np.isfinite(jackknife_values[:, i]), i]
        if (
            not np.isfinite(value)
            or len(replicate_column) < _MIN_SHARE_DEFINED * len(replicates)
            or not len(replicate_column)
        ):
            continue
        if np.ptp(replicate_column) == 0:
            lows[i] = highs[i] = replicate_column[0]
            continue
        share_below = np.mean(replicate_column < value) + np.mean(replicate_column == value) / 2
        bias_correction = ndtri(
            np.clip(share_below, 0.5 / len(replicate_column), 1 - 0.5 / len(replicate_column))
        )
        influence = jackknife.mean() - jackknife
        scale = np.sum(influence**2) ** 1.5
        acceleration = np.sum(influence**3) / (6 * scale) if scale > 0 else 0.0
        tail_levels = ndtr(
            bias_correction + (bias_correction + normal) / (1 - acceleration * (bias_correction + normal))
        )
        lows[i], highs[i] = np.quantile(replicate_column, tail_levels)
    return lows, highs


@lru_cache(maxsize=8)
def resampler(names: tuple[str, ...], seed: int, n_resamples: int) -> Resampler:
    """The resampler of these clusters; cached, since several measurements use the same images."""
    return Resampler(names, seed=seed, n_resamples=n_resamples)


def sorted_clusters(names: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The distinct names in order, and for each entry the index of its name."""
    distinct = tuple(sorted(set(names)))
    index_of = {name: number for number, name in enumerate(distinct)}
    return distinct, np.fromiter((index_of[name] for name in names), dtype=np.int64, count=len(names))


def _leave_one_out(counts: Counts) -> Array:
    dense = counts.toarray() if sparse.issparse(counts) else np.asarray(counts)
    totals: Array = column_sums(counts)[None, :] - dense
    return totals


def _columns(values: Array) -> Array:
    return values[:, None] if values.ndim == 1 else values


def _medians(replicates: Array) -> Array:
    columns = [replicates[np.isfinite(replicates[:, i]), i] for i in range(replicates.shape[1])]
    return np.array([np.median(column) if len(column) else np.nan for column in columns])


def _standard_errors(replicates: Array) -> Array:
    errors = np.full(replicates.shape[1], np.nan)
    for i in range(replicates.shape[1]):
        column = replicates[np.isfinite(replicates[:, i]), i]
        if len(column) > 1 and len(column) >= _MIN_SHARE_DEFINED * len(replicates):
            errors[i] = column.std(ddof=1)
    return errors


def _defined(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
