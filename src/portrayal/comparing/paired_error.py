"""Standard error of a difference between two mean caption scores, from the evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from portrayal.documents import json_object
from portrayal.results import Measurement, Results
from portrayal.stats import multiway_variance, sorted_clusters, training_variance


@dataclass(frozen=True)
class _ScoredImage:
    """Evidence of one image: group, score, caption text (a cluster with equal texts), and its total effect."""

    group: str
    score: float
    text: str
    effect: float
    by_pairs: tuple[float, ...]


def joint_error(first: Results, a: Measurement, second: Results, b: Measurement) -> float | None:
    """Return the standard error of a difference of mean caption scores, from the scores in the evidence.

    Captions of one system with equal text are correlated, and so are the other system's captions of their images: the
    texts of both systems are clusters. The effect of images as training data is counted as in the metric. None if
    the evidence does not hold the score of every image; it does for headlines.
    """
    first_scores, second_scores = _scores(first, a), _scores(second, b)
    if first_scores is None or second_scores is None or set(first_scores) != set(second_scores):
        return None
    images = sorted(first_scores)
    if len(first_scores[images[0]].by_pairs) != len(second_scores[images[0]].by_pairs):
        return None
    test_effects = np.zeros(len(images))
    for scored, sign in ((first_scores, -1.0), (second_scores, 1.0)):
        groups = sorted({image_score.group for image_score in scored.values()})
        for group in groups:
            in_group = np.array([scored[image].group == group for image in images])
            values = np.array([scored[image].score for image in images])[in_group]
            test_effects[in_group] += sign * 100 * (values - values.mean()) / len(values) / len(groups)
    texts = [
        sorted_clusters([scored[image].text for image in images])[1]
        for scored in (first_scores, second_scores)
    ]
    total_effects = np.array([second_scores[image].effect - first_scores[image].effect for image in images])
    pair_effects = [
        np.array([scored[image].by_pairs for image in images]) for scored in (first_scores, second_scores)
    ]
    return math.sqrt(
        max(
            multiway_variance(test_effects, np.arange(len(images)), *texts),
            training_variance(total_effects, pair_effects[1] - pair_effects[0]),
        )
    )


def _scores(results: Results, m: Measurement) -> dict[str, _ScoredImage] | None:
    """Return scores by image from a headline's evidence; None if it is incomplete or belongs to another number."""
    evidence = results.evidence_of(m)
    if m.group is not None or m.unit != "percent" or m.value is None or evidence.height != m.n:
        return None
    scored: dict[str, _ScoredImage] = {}
    groups: dict[str, list[float]] = {}
    lengths = set()
    for image, detail in evidence.select("image_id", "detail").iter_rows():
        detail_values = json_object(detail)
        if detail_values is None or not {"labelled", "mean score", "effect", "by pairs"} <= set(
            detail_values
        ):
            return None
        try:
            scored[image] = _ScoredImage(
                str(detail_values["labelled"]),
                float(detail_values["mean score"]),
                str(detail_values.get("read", ""))
                or " ".join(str(word) for word, _ in detail_values.get("parts", ())),
                float(detail_values["effect"]),
                tuple(float(effect) for effect in detail_values["by pairs"]),
            )
        except (TypeError, ValueError, OverflowError):  # evidence written by another program
            return None
        groups.setdefault(scored[image].group, []).append(scored[image].score)
        lengths.add(len(scored[image].by_pairs))
    if len(lengths) != 1:
        return None
    mean = 100 * float(np.mean([np.mean(evidence) for evidence in groups.values()]))
    return scored if len(scored) == m.n and abs(mean - m.value) < 0.01 else None
