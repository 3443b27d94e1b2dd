"""Gates: rules that results must keep, for those who ship a system and want to be stopped in time."""

from __future__ import annotations

from portrayal.gating.evaluation import Verdict, about, judge
from portrayal.gating.formats import as_dicts, as_junit
from portrayal.gating.labels import as_text
from portrayal.gating.rules import BOUNDS, EXAMPLE, Rule, parse_rule
from portrayal.gating.rules_file import read_rules

__all__ = [
    "BOUNDS",
    "EXAMPLE",
    "Rule",
    "Verdict",
    "about",
    "as_dicts",
    "as_junit",
    "as_text",
    "judge",
    "parse_rule",
    "read_rules",
]
