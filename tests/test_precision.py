"""The verdicts on the rules that read captions: enough of them, still about what the rules find, and good enough."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import precision

FILE = Path(__file__).parents[1] / "docs" / "precision" / "harms.csv"
FEWER = {
    "identity: politics": 10,
    "demeaning: in context": 22,
    "demeaning: adjective as noun": 26,
}  # all there are


@pytest.fixture(scope="module")
def judged() -> list[dict[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_rule_has_its_verdicts(judged):
    counts = Counter(row["rule"] for row in judged)
    assert counts.keys() == precision.rules().keys()
    for rule, verdicts in counts.items():
        assert verdicts == FEWER.get(rule, 100)
    assert {row["verdict"] for row in judged} == {"right", "wrong"}
    assert tuple(judged[0]) == precision.COLUMNS


def test_no_rule_is_right_less_than_eight_times_in_ten(judged):
    right = Counter(row["rule"] for row in judged if row["verdict"] == "right")
    for rule, hits in Counter(row["rule"] for row in judged).items():
        assert right[rule] >= 0.8 * hits, rule


def test_rules_still_find_what_was_judged(judged, shared, monkeypatch):
    monkeypatch.setattr(precision, "data", lambda: shared)
    known = {(line.corpus, line.place): line.caption for line in precision.every_caption()}
    lists, rules = precision.lists(), precision.rules()
    result = [
        row["word"] in rules[row["rule"]](precision.ParsedCaption(known[row["corpus"], row["place"]], lists))
        for row in judged
    ]
    assert sum(result) >= 0.99 * len(judged)
