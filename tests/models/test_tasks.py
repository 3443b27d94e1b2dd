"""Tasks: codes, what a classifier knows, batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from portrayal.models.text_classifiers.tasks import FIRST, PAD, UNKNOWN, Task, Texts
from tests.models.made_up import task

CAPTIONS = [("a", "dog", "runs"), ("a", "<unk>"), ("cat",), ("a", "dog")]


def test_captions_become_codes_and_a_table():
    texts = Texts.of(CAPTIONS, "<unk>")
    assert texts.words == ("a", "cat", "dog", "runs")
    assert texts[1].tolist() == [FIRST, UNKNOWN]
    assert texts.table.tolist() == [[2, 4, 5], [2, 1, PAD], [3, PAD, PAD], [2, 4, PAD]]


def test_words_that_are_not_learnt_are_unknown():
    texts = Texts.of(CAPTIONS, "<unk>")
    one = Task(texts, np.array([0, 1, 0, 1]), 2, np.array([1, 3]), np.array([0, 2]), np.ones(2), 0)
    # learnt: a, unknown, a, dog; not learnt: cat and runs
    assert one.known(10).tolist() == [PAD, UNKNOWN, 2, UNKNOWN, 4, UNKNOWN]
    assert one.known(1).tolist() == [PAD, UNKNOWN, 2, UNKNOWN, UNKNOWN, UNKNOWN]  # the most common one


def test_batches_hold_every_caption_once_and_near_equal_lengths():
    one = task(captions=210, tested=10)
    for epoch in (0, 1):
        batches = one.batches(16, epoch)
        assert batches.shape == (13, 16)
        assert sorted(batches[batches >= 0].tolist()) == one.train.tolist()
        spread = [np.ptp(one.texts.lengths[row[row >= 0]]) for row in batches]
        assert sum(spread) <= np.ptp(one.texts.lengths)  # sorted by length before they were cut
    assert (one.batches(16, 0) != one.batches(16, 1)).any()


def test_batches_come_in_one_order_for_all_seeds():
    """So that the batches of a step are of near-equal length in every network of a stack."""
    one = task(captions=210, tested=10)
    other = replace(one, seed=99)
    for mine, theirs in zip(one.batches(16, 0), other.batches(16, 0), strict=True):
        assert abs(one.texts.lengths[mine].mean() - one.texts.lengths[theirs].mean()) < 0.5


def test_a_digest_names_the_answer():
    one = task()
    assert one.digest == task().digest
    for other in (
        replace(one, seed=1),
        replace(one, weight=np.array([1.0, 2.0])),
        replace(one, test=one.test[:-1]),
        replace(one, texts=task(8).texts),
    ):
        assert other.digest != one.digest


def test_captions_that_read_the_same_are_found():
    texts = Texts.of([("a",), ("b",), ("a",), ("c",), ("a",)])
    one = Task(texts, np.array([0, 0, 0, 1, 1]), 2, np.array([0]), np.array([0, 1, 2, 3, 4]), np.ones(2), 0)
    # b and c are unknown, but of different groups, as is the last a
    assert one.distinct(one.known(10)) == {0: 0, 1: 1, 2: 0, 3: 3, 4: 4}
