"""The verdicts on the rules that read captions: enough of them, still about what the rules find, and good enough."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
from benchmarks import precision

FILE = Path(__file__).parents[1] / "docs" / "precision" / "harms.csv"
SMALL_COUNTS = {
    "identity: politics": 10,
    "demeaning: in context": 22,
    "demeaning: adjective as noun": 26,
}  # all there are


@pytest.fixture(scope="module")
def judgements() -> list[dict[str, str]]:
    with FILE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_rule_has_its_verdicts(judgements):
    counts = Counter(row["rule"] for row in judgements)
    assert counts.keys() == precision.rules().keys()
    for rule, verdicts in counts.items():
        assert verdicts == SMALL_COUNTS.get(rule, 100)
    assert {row["verdict"] for row in judgements} == {"right", "wrong"}
    assert tuple(judgements[0]) == precision.COLUMNS


def test_no_rule_is_right_less_than_eight_times_in_ten(judgements):
    right = Counter(row["rule"] for row in judgements if row["verdict"] == "right")
    for rule, hits in Counter(row["rule"] for row in judgements).items():
        assert right[rule] >= 0.8 * hits, rule


def test_rules_still_match_the_judged_captions(judgements, shared, monkeypatch):
    monkeypatch.setattr(precision, "data_folder", lambda: shared)
    captions = {(caption.corpus, caption.place): caption.caption for caption in precision.all_captions()}
    lists, rules = precision.word_lists(), precision.rules()
    still_matched = [
        row["word"]
        in rules[row["rule"]](precision.ParsedCaption(captions[row["corpus"], row["place"]], lists))
        for row in judgements
    ]
    assert sum(still_matched) >= 0.99 * len(judgements)
