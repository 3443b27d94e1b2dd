"""Training tasks: codes, known words, batches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from portrayal.models.text_classifiers.tasks import FIRST_WORD, PAD, UNKNOWN, ClassificationTask, Texts
from tests.models.synthetic_tasks import task

CAPTIONS = [("a", "dog", "runs"), ("a", "<unk>"), ("cat",), ("a", "dog")]


def test_captions_become_codes_and_a_table():
    texts = Texts.encode(CAPTIONS, "<unk>")
    assert texts.words == ("a", "cat", "dog", "runs")
    assert texts[1].tolist() == [FIRST_WORD, UNKNOWN]
    assert texts.table.tolist() == [[2, 4, 5], [2, 1, PAD], [3, PAD, PAD], [2, 4, PAD]]


def test_words_outside_the_training_set_are_unknown():
    texts = Texts.encode(CAPTIONS, "<unk>")
    training_task = ClassificationTask(
        texts, np.array([0, 1, 0, 1]), 2, np.array([1, 3]), np.array([0, 2]), np.ones(2), 0
    )
    # in training: a, unknown, a, dog; not in training: cat and runs
    assert training_task.known_codes(10).tolist() == [PAD, UNKNOWN, 2, UNKNOWN, 4, UNKNOWN]
    assert training_task.known_codes(1).tolist() == [
        PAD,
        UNKNOWN,
        2,
        UNKNOWN,
        UNKNOWN,
        UNKNOWN,
    ]  # the most frequent one


def test_batches_hold_every_caption_once_and_near_equal_lengths():
    training_task = task(captions=210, tested=10)
    for epoch in (0, 1):
        batches = training_task.batches(16, epoch)
        assert batches.shape == (13, 16)
        assert sorted(batches[batches >= 0].tolist()) == training_task.train_indices.tolist()
        spread = [np.ptp(training_task.texts.lengths[row[row >= 0]]) for row in batches]
        assert sum(spread) <= np.ptp(training_task.texts.lengths)  # sorted by length before batching
    assert (training_task.batches(16, 0) != training_task.batches(16, 1)).any()


def test_batches_have_the_same_order_for_all_seeds():
    """So that the batches of a step are of near-equal length in every network of a stack."""
    first = task(captions=210, tested=10)
    second = replace(first, seed=99)
    for first_batch, second_batch in zip(first.batches(16, 0), second.batches(16, 0), strict=True):
        assert abs(first.texts.lengths[first_batch].mean() - first.texts.lengths[second_batch].mean()) < 0.5


def test_a_digest_identifies_the_predictions():
    training_task = task()
    assert training_task.digest == task().digest
    for other in (
        replace(training_task, seed=1),
        replace(training_task, group_weights=np.array([1.0, 2.0])),
        replace(training_task, test_indices=training_task.test_indices[:-1]),
        replace(training_task, texts=task(8).texts),
    ):
        assert other.digest != training_task.digest


def test_equivalent_captions():
    texts = Texts.encode([("a",), ("b",), ("a",), ("c",), ("a",)])
    training_task = ClassificationTask(
        texts, np.array([0, 0, 0, 1, 1]), 2, np.array([0]), np.array([0, 1, 2, 3, 4]), np.ones(2), 0
    )
    # b and c are unknown, but of different groups, as is the last a
    assert training_task.first_equivalent(training_task.known_codes(10)) == {0: 0, 1: 1, 2: 0, 3: 3, 4: 4}
