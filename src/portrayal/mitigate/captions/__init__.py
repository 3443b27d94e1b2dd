"""Remedies for those who have captions and no model: words that name nobody's group, and a balanced set of images."""

from portrayal.mitigate.captions.balancing import Balance, balance, drawn
from portrayal.mitigate.captions.card import CARD
from portrayal.mitigate.captions.evidence import Evidence, evidence_in
from portrayal.mitigate.captions.mitigation import METRICS, REMEDIES, Remedied, remedied
from portrayal.mitigate.captions.rewrite import WHERE, Rewriter, Rewritten

__all__ = [
    "CARD",
    "METRICS",
    "REMEDIES",
    "WHERE",
    "Balance",
    "Evidence",
    "Remedied",
    "Rewriter",
    "Rewritten",
    "balance",
    "drawn",
    "evidence_in",
    "remedied",
]
