"""The lab's grammar is too large to be memorised: annotators repeat each other rarely, captioners often."""

from __future__ import annotations

import json

import pytest

from portrayal.lab import make_study
from portrayal.lab.diversity import CaptionDiversity, caption_diversity

CAPTIONS = 10_000


@pytest.fixture(scope="module")
def study():
    return make_study(scenes=CAPTIONS)


def test_by_hand():
    # Tokens a man / a man / a dog: six, three of them distinct; two of three captions are the same.
    assert caption_diversity(["a man", "A man.", "a dog"]) == CaptionDiversity(3, 6, 3, 0.5, 2 / 3)
    assert caption_diversity([]) == CaptionDiversity(0, 0, 0, None, None)


def test_simulated_annotators_repeat_captions_as_rarely_as_real_ones(study, shared):
    rows = (shared / "coco" / "human_captions_val2014.jsonl").read_text().splitlines()[:3000]
    real = caption_diversity([caption for row in rows for caption in json.loads(row)["captions"]][:CAPTIONS])
    simulated = caption_diversity(study.references["caption"].to_list()[:CAPTIONS])
    assert real.duplicate_share < 0.02
    assert simulated.duplicate_share < 3 * real.duplicate_share
    assert simulated.types > 600
    assert real.types > 4 * simulated.types  # a world of 18 activities; the documentation says so


def test_simulated_captioners_repeat_captions_as_real_ones_do(study, shared):
    for system in study.systems:
        diversity = caption_diversity(study.select_systems([system]).captions["caption"].to_list())
        assert 0.4 < diversity.duplicate_share < 0.9
    rows = json.loads((shared / "captioners" / "val2014" / "vinyals17.json").read_text())
    assert caption_diversity([row["caption"] for row in rows[:CAPTIONS]]).duplicate_share > 0.7
