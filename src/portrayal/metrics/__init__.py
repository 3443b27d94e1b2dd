"""The metrics of the toolkit, one module for each: `portrayal.metrics.NAME(study, ...)` returns Results."""

from __future__ import annotations

from portrayal.errors import find_name
from portrayal.metrics.amplification.metric import amplification
from portrayal.metrics.base.card import Card
from portrayal.metrics.base.metric import Metric
from portrayal.metrics.cloze import cloze
from portrayal.metrics.cooccurrence import cooccurrence
from portrayal.metrics.counterbias.card import CARD as COUNTERBIAS_CARD
from portrayal.metrics.counterbias.metric import counterbias
from portrayal.metrics.error import error
from portrayal.metrics.gender_estimation import gender_estimation
from portrayal.metrics.gender_score.metric import gender_score
from portrayal.metrics.harms.metric import harms
from portrayal.metrics.leakage.metric import leakage
from portrayal.metrics.lic.metric import lic
from portrayal.metrics.naming_ratio import naming_ratio
from portrayal.metrics.object_distance.metric import object_distance
from portrayal.metrics.quality.metric import quality
from portrayal.metrics.retrieval.recall.metric import retrieval_recall
from portrayal.metrics.retrieval.skew.metric import retrieval_skew
from portrayal.metrics.word_odds import word_odds

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        error,
        naming_ratio,
        cooccurrence,
        amplification,
        word_odds,
        lic,
        leakage,
        object_distance,
        gender_score,
        gender_estimation,
        cloze,
        harms,
        quality,
        retrieval_skew,
        retrieval_recall,
    )
}


# Cards of the metrics of a study, and of CounterBias, which measures a model on the images of a manifest.
CARDS: dict[str, Card] = {name: metric.card for name, metric in METRICS.items()} | {
    COUNTERBIAS_CARD.name: COUNTERBIAS_CARD
}


def find_metric(name: str) -> Metric:
    """The metric of this name; an unknown name raises an error that suggests similar ones."""
    return METRICS[find_name("metric", name, METRICS)]


__all__ = [
    "CARDS",
    "METRICS",
    "Metric",
    "amplification",
    "cloze",
    "cooccurrence",
    "counterbias",
    "error",
    "find_metric",
    "gender_estimation",
    "gender_score",
    "harms",
    "leakage",
    "lic",
    "naming_ratio",
    "object_distance",
    "quality",
    "retrieval_recall",
    "retrieval_skew",
    "word_odds",
]
