"""The lab's grammar is too large to be learnt by heart: people repeat each other rarely, captioners often."""

from __future__ import annotations

import json

import pytest

from portrayal.lab import make_study
from portrayal.lab.diversity import Variety, variety

CAPTIONS = 10_000


@pytest.fixture(scope="module")
def study():
    return make_study(scenes=CAPTIONS)


def test_by_hand():
    # Tokens a man / a man / a dog: six, three of them distinct; two of three captions are the same.
    assert variety(["a man", "A man.", "a dog"]) == Variety(3, 6, 3, 0.5, 2 / 3)
    assert variety([]) == Variety(0, 0, 0, None, None)


def test_people_repeat_each_other_as_rarely_as_real_ones(study, shared):
    rows = (shared / "coco" / "human_captions_val2014.jsonl").read_text().splitlines()[:3000]
    real = variety([caption for row in rows for caption in json.loads(row)["captions"]][:CAPTIONS])
    made = variety(study.references["caption"].to_list()[:CAPTIONS])
    assert real.duplicates < 0.02
    assert made.duplicates < 3 * real.duplicates
    assert made.types > 600
    assert real.types > 4 * made.types  # a world of 18 activities; the documentation says so


def test_captioners_repeat_themselves_as_real_ones_do(study, shared):
    for system in study.systems:
        made = variety(study.only([system]).captions["caption"].to_list())
        assert 0.4 < made.duplicates < 0.9
    rows = json.loads((shared / "captioners" / "val2014" / "vinyals17.json").read_text())
    assert variety([row["caption"] for row in rows[:CAPTIONS]]).duplicates > 0.7
