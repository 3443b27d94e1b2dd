"""Ratios and shares of scores, undefined where they have no meaning, and base rates of groups."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon import Lexicon
from portrayal.metrics.shared.caption_mentions import find_mentions
from portrayal.metrics.shared.language_scores.group_labels import group_labels
from portrayal.results import HUMAN
from portrayal.stats import LEVEL, Estimate, Resampler, bootstrap, column_sums
from portrayal.stats.bootstrap import Statistic
from portrayal.study import Study

Values = NDArray[np.float64]


def ratio(numerator: Values, denominator: Values) -> Values:
    """Quotient; nan where the denominator is not positive, since a ratio of negative cosines has no meaning.

    >>> ratio(np.array([1.0, 1.0]), np.array([2.0, -2.0])).tolist()
    [0.5, nan]
    """
    denominator = np.broadcast_to(denominator, numerator.shape)
    quotient: Values = np.divide(
        numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0
    )
    return quotient


def shares(values: Values) -> Values:
    """Share of each value in the sum over groups, the second axis: (resamples, groups, ...)."""
    return ratio(values, values.sum(axis=1, keepdims=True))


def largest_share(
    counts: Values, statistic: Statistic, resamples: Resampler, groups: int
) -> tuple[int, Estimate | None]:
    """Index of the group with the largest share, and that share; None where shares are undefined.

    The interval is that of the group, since resamples of a maximum are biased upwards; with more than two groups its
    level is raised for the selection (Bonferroni).
    """
    point = statistic(column_sums(counts)[None, :])[0]
    if not np.isfinite(point).any():
        return 0, None
    top = int(np.nanargmax(point))
    level = 1 - (1 - LEVEL) / max(groups - 1, 1)
    return top, bootstrap(counts, lambda totals: statistic(totals)[:, top], resamples, level=level)[0]


def base_rates(study: Study, attribute: str, lexicon: Lexicon) -> dict[str, float]:
    """Share of each group among the labels, else among the human captions that name one group; else empty."""
    labels = list(group_labels(study, attribute, lexicon).values())
    if labels:
        return {group: labels.count(group) / len(labels) for group in dict.fromkeys(labels)}
    if not study.references.height:
        return {}
    mentions = find_mentions(study, HUMAN, lexicon)
    counts = mentions.mean_per_image(
        (mentions.named & (mentions.n_groups == 1)[:, None]).astype(np.float64)
    ).sum(axis=0)
    return dict(zip(mentions.groups, (counts / counts.sum()).tolist(), strict=True)) if counts.sum() else {}
