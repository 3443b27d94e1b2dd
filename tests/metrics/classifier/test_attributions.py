"""Word attributions of the neural classifier, by hand: means over captions, then over repeats, and their
errors.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from portrayal.metrics.shared.classifier.corpus import Corpus
from portrayal.metrics.shared.classifier.linear_classifier import Predictions
from portrayal.metrics.shared.classifier.word_attributions import caption_totals, word_attributions

WORDS = (("a", "b"), ("a", "c"), ("a", "b"), ("c", "b"))
CORPUS = Corpus(("i", "j", "k", "l"), np.array([0, 0, 0, 1]), tuple(" ".join(w) for w in WORDS), WORDS)


def predictions_of(
    attributions: list[tuple[float, float]], is_right: tuple[bool, ...] = (True,) * 4
) -> Predictions:
    proba = np.array(
        [
            [0.8, 0.2] if (group == 0) == ok else [0.2, 0.8]
            for group, ok in zip(CORPUS.group, is_right, strict=True)
        ]
    )
    arrays = tuple(np.array(attribution) for attribution in attributions)
    return Predictions(CORPUS, np.arange(4), np.zeros(4, dtype=np.int64), proba, 1, attributions=arrays)


# Scaled to length 1: (3, 4) becomes (.6, .8), (4, 3) becomes (.8, .6), (0, 2) becomes (0, 1), (1, 0) stays.
FIRST = predictions_of([(3, 4), (4, 3), (0, 2), (1, 0)])
SECOND = predictions_of([(4, 3), (3, 4), (1, 0), (0, 1)], is_right=(True, True, False, True))


def test_a_word_is_the_mean_over_repeats_of_its_mean_over_captions():
    (a, b, c) = word_attributions([FIRST, SECOND], 0, 1, by_text=False)
    assert (a.word, b.word, c.word) == ("a", "b", "c")
    # a: first (.6, .8, 0), second (.8, .6); the third caption is misclassified
    assert a.value == pytest.approx((1.4 / 3 + 0.7) / 2)
    assert a.captions == round((3 + 2) / 2)
    assert a.std_seed == pytest.approx(np.std([1.4 / 3, 0.7], ddof=1))
    # effect of each image: i and j in both repeats, k in the first
    mean = 1.4 / 3
    image_effects = [
        (0.6 - mean) / 3 / 2 + 0.1 / 2 / 2,
        (0.8 - mean) / 3 / 2 - 0.1 / 2 / 2,
        (0 - mean) / 3 / 2,
    ]
    assert a.se == pytest.approx(np.sqrt(np.sum(np.square(image_effects))))


def test_captions_that_share_a_text_are_one_cluster():
    a = word_attributions([FIRST], 0, 1, by_text=True)[0]
    mean = 1.4 / 3  # i and k both read "a b"
    assert a.se == pytest.approx(np.hypot((0.6 - mean) / 3 + (0 - mean) / 3, (0.8 - mean) / 3))


def test_an_interval_covers_other_captions_and_other_seeds():
    a = word_attributions([FIRST, SECOND], 0, 1, by_text=False)[0]
    data, seeds = a.se**2, a.std_seed**2 / 2
    degrees_of_freedom = int(
        (data + seeds) ** 2 / (data**2 / 2 + seeds**2 / 1)
    )  # three images, two seeds (Welch, Satterthwaite)
    half_width = stats.t.ppf(0.975, degrees_of_freedom) * np.sqrt(data + seeds)
    assert (a.low, a.high) == pytest.approx((a.value - half_width, a.value + half_width))
    assert a.p == pytest.approx(2 * stats.t.sf(a.value / np.sqrt(data + seeds), degrees_of_freedom))


def test_totals_of_groups_add_up():
    first, second, whole = caption_totals([FIRST, SECOND], 2, by_text=False)
    # of the first group 1.4, 1.4, 1 and then 1.4, 1.4; of the second 1 and 1
    assert first.value == pytest.approx(((1.4 + 1.4 + 1) / 3 + 1.4) / 2)
    assert second.value == pytest.approx(1)
    assert whole.value == pytest.approx(first.value + second.value)
    assert whole.std_seed == pytest.approx(np.std([3.8 / 3 + 1, 1.4 + 1], ddof=1))


def test_a_group_without_correct_predictions_has_no_total():
    assert (
        caption_totals([predictions_of([(1, 0)] * 4, is_right=(True, True, True, False))], 2, by_text=False)
        == []
    )
