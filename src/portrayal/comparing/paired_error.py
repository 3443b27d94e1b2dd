"""How sure a difference between two mean scores of captions is, out of the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from portrayal.documents import json_object
from portrayal.results import Measurement, Results
from portrayal.stats import learning_variance, multiway_variance, sorted_clusters


@dataclass(frozen=True)
class _Scored:
    """What was found of one image: its group and score, the text it shares with others, and what it adds in all."""

    group: str
    score: float
    text: str
    effect: float
    by_pairs: tuple[float, ...]


def joint_error(first: Results, a: Measurement, second: Results, b: Measurement) -> float | None:
    """The standard error of a difference of mean scores of captions, from the scores themselves.

    Captions of one system that share a text are alike, and so is what the other system says of their images: both
    systems' texts are clusters. What images add by being learnt from is counted as the metric counts it. None where
    the evidence does not hold the score of every image: it does for headlines.
    """
    ours, theirs = _scores(first, a), _scores(second, b)
    if ours is None or theirs is None or set(ours) != set(theirs):
        return None
    images = sorted(ours)
    if len(ours[images[0]].by_pairs) != len(theirs[images[0]].by_pairs):
        return None
    tested = np.zeros(len(images))
    for scored, sign in ((ours, -1.0), (theirs, 1.0)):
        groups = sorted({one.group for one in scored.values()})
        for group in groups:
            mine = np.array([scored[image].group == group for image in images])
            values = np.array([scored[image].score for image in images])[mine]
            tested[mine] += sign * 100 * (values - values.mean()) / len(values) / len(groups)
    texts = [sorted_clusters([scored[image].text for image in images])[1] for scored in (ours, theirs)]
    whole = np.array([theirs[image].effect - ours[image].effect for image in images])
    pairs = [np.array([scored[image].by_pairs for image in images]) for scored in (ours, theirs)]
    return math.sqrt(
        max(
            multiway_variance(tested, np.arange(len(images)), *texts),
            learning_variance(whole, pairs[1] - pairs[0]),
        )
    )


def _scores(results: Results, m: Measurement) -> dict[str, _Scored] | None:
    """By image, out of a headline's evidence; None where that is not all there is, or of another number."""
    found = results.evidence_of(m)
    if m.group is not None or m.unit != "percent" or m.value is None or found.height != m.n:
        return None
    scored: dict[str, _Scored] = {}
    groups: dict[str, list[float]] = {}
    lengths = set()
    for image, detail in found.select("image_id", "detail").iter_rows():
        told = json_object(detail)
        if told is None or not {"labelled", "mean score", "effect", "by pairs"} <= set(told):
            return None
        try:
            scored[image] = _Scored(
                str(told["labelled"]),
                float(told["mean score"]),
                str(told.get("read", "")) or " ".join(str(word) for word, _ in told.get("parts", ())),
                float(told["effect"]),
                tuple(float(one) for one in told["by pairs"]),
            )
        except (TypeError, ValueError, OverflowError):  # evidence that another program wrote
            return None
        groups.setdefault(scored[image].group, []).append(scored[image].score)
        lengths.add(len(scored[image].by_pairs))
    if len(lengths) != 1:
        return None
    mean = 100 * float(np.mean([np.mean(found) for found in groups.values()]))
    return scored if len(scored) == m.n and abs(mean - m.value) < 0.01 else None
