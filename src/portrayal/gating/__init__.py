"""Gates: rules that results must satisfy, for use in continuous integration."""

from __future__ import annotations

from portrayal.gating.evaluation import Verdict, evaluate, row_label
from portrayal.gating.formats import as_dicts, as_junit
from portrayal.gating.gate import GateResult, gate
from portrayal.gating.labels import label_text
from portrayal.gating.rules import BOUNDS, EXAMPLE, Rule, parse_rule
from portrayal.gating.rules_file import read_rules

__all__ = [
    "BOUNDS",
    "EXAMPLE",
    "GateResult",
    "Rule",
    "Verdict",
    "as_dicts",
    "as_junit",
    "evaluate",
    "gate",
    "label_text",
    "parse_rule",
    "read_rules",
    "row_label",
]
