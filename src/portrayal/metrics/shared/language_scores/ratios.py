"""Ratios of scores, undefined where they have no meaning, and the share a group has in a study."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon import Lexicon
from portrayal.metrics.shared.language_scores.group_labels import group_labels
from portrayal.metrics.shared.mentions import find_mentions
from portrayal.results import HUMAN
from portrayal.stats import LEVEL, Estimate, Resampler, bootstrap, column_sums
from portrayal.stats.bootstrap import Statistic
from portrayal.study import Study

Values = NDArray[np.float64]


def ratio(above: Values, below: Values) -> Values:
    """One by the other; nan where the lower is not positive: a ratio of negative cosines means nothing.

    >>> ratio(np.array([1.0, 1.0]), np.array([2.0, -2.0])).tolist()
    [0.5, nan]
    """
    below = np.broadcast_to(below, above.shape)
    made: Values = np.divide(above, below, out=np.full(above.shape, np.nan), where=below > 0)
    return made


def shares(values: Values) -> Values:
    """Each value's part of their sum over the groups, which stand on the second axis: (draws, groups, ...)."""
    return ratio(values, values.sum(axis=1, keepdims=True))


def largest_share(
    counts: Values, statistic: Statistic, draw: Resampler, groups: int
) -> tuple[int, Estimate | None]:
    """Which group has the largest of some shares, and that share; None where they are undefined.

    The interval is the group's own, since draws of a maximum would pile up on one side; with more than two groups it is
    widened for having been chosen among them.
    """
    point = statistic(column_sums(counts)[None, :])[0]
    if not np.isfinite(point).any():
        return 0, None
    top = int(np.nanargmax(point))
    level = 1 - (1 - LEVEL) / max(groups - 1, 1)
    return top, bootstrap(counts, lambda totals: statistic(totals)[:, top], draw, level=level)[0]


def base_rates(study: Study, attribute: str, lexicon: Lexicon) -> dict[str, float]:
    """Each group's share in the study: of the labels of people, else of people's captions naming one; else unknown."""
    labels = list(group_labels(study, attribute, lexicon).values())
    if labels:
        return {group: labels.count(group) / len(labels) for group in dict.fromkeys(labels)}
    if not study.references.height:
        return {}
    mentions = find_mentions(study, HUMAN, lexicon)
    once = mentions.share_per_image(
        (mentions.named & (mentions.how_many == 1)[:, None]).astype(np.float64)
    ).sum(axis=0)
    return dict(zip(mentions.groups, (once / once.sum()).tolist(), strict=True)) if once.sum() else {}
