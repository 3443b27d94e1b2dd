"""Mitigation for captions without a model: rewriting group words to neutral words, and balancing the images."""

from portrayal.mitigate.captions.balancing import Balance, balance, random_subset
from portrayal.mitigate.captions.card import CARD
from portrayal.mitigate.captions.compared_metrics import METRICS, compared_metrics
from portrayal.mitigate.captions.evidence import GroupEvidence, find_group_evidence
from portrayal.mitigate.captions.mitigation import (
    CAPTION_METHODS,
    CaptionMitigation,
    mitigate_captions,
)
from portrayal.mitigate.captions.rewrite import WHERE, Rewriter, RewrittenCaption

__all__ = [
    "CAPTION_METHODS",
    "CARD",
    "METRICS",
    "WHERE",
    "Balance",
    "CaptionMitigation",
    "GroupEvidence",
    "Rewriter",
    "RewrittenCaption",
    "balance",
    "compared_metrics",
    "find_group_evidence",
    "mitigate_captions",
    "random_subset",
]
