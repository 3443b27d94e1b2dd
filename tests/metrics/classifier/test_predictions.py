"""Predictions of the linear classifier: scores, calibration, word contributions, and the influence of
captions.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from portrayal.errors import Undefined
from portrayal.metrics.shared.classifier.aggregation import CaptionScores, difference, estimate_mean
from portrayal.metrics.shared.classifier.corpus import Corpus, Design, unigrams_and_bigrams
from portrayal.metrics.shared.classifier.cross_validation import Protocol
from portrayal.metrics.shared.classifier.linear_classifier import (
    LinearClassifier,
    Predictions,
    inverse_temperature,
    lic_scores,
    temperature_scaled,
)
from portrayal.metrics.shared.classifier.splits import Split, leak_safe_folds, splits_by_fold
from portrayal.metrics.shared.classifier.training_influence import (
    confidence_slopes,
    score_slopes,
    training_influence,
)
from portrayal.metrics.shared.classifier.word_contributions import caption_contributions, word_contributions

WORDS = "a b c d e f g h i j".split()


def corpus(
    size: int = 240, groups: int = 2, seed: int = 0, leak: float = 1.5, varied: bool = False
) -> Corpus:
    """Captions whose first words depend on the group. Many are repeated, unless they are varied."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, size)
    logits = leak * np.eye(len(WORDS))[:groups][group] * 3
    words = []
    for row in logits:
        p = np.exp(row) / np.exp(row).sum()
        extra_words = [f"w{number}" for number in rng.integers(0, 50, 3 * varied)]
        words.append((*rng.choice(WORDS, 2, p=p).tolist(), *extra_words))
    images = tuple(f"i{number:04d}" for number in range(size))
    return Corpus(images, group, tuple(" ".join(w) for w in words), tuple(words))


def folds(corpus: Corpus, count: int = 5, seed: int = 0) -> list[Split]:
    return splits_by_fold(leak_safe_folds(corpus.words, count, seed))


def test_scores_by_hand():
    proba = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7], [0.5, 0.5]])
    assert lic_scores(proba, np.array([0, 0, 1, 1])).tolist() == [0.8, 0.0, 0.7, 0.0]
    three = np.array([[0.4, 0.35, 0.25], [0.3, 0.3, 0.4]])
    assert lic_scores(three, np.array([0, 1])).tolist() == [0.4, 0.0]


def test_a_design_has_unigrams_and_bigrams_of_two_captions_or_more():
    design = Design.of([("x", "y"), ("x", "y"), ("x", "z"), ("y", "x", "y")])
    assert design.texts == (("x", "y"), ("x", "z"), ("y", "x", "y"))
    assert design.row.tolist() == [0, 0, 1, 2]
    assert design.features == (("x",), ("y",), ("x", "y"))
    assert design.matrix.toarray().tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 1]]
    assert design.text_counts.tolist() == [2, 1, 1]
    assert Design.of([(), ()]).matrix.shape == (1, 0)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("balanced", [True, False])
def test_predictions_agree_with_a_plain_implementation(groups, balanced):
    """scikit-learn's vectorizer and classifier, fold by fold, on every caption instead of distinct ones."""
    data = corpus(groups=groups)
    splits = folds(data)
    pred = LinearClassifier(groups, 0.1, balanced).cross_val_predict(data, splits)
    position_of = {p: number for number, p in enumerate(pred.test)}
    assert sorted(position_of) == list(range(len(data.images)))
    for split in splits:
        vectorizer = CountVectorizer(
            analyzer=lambda words: unigrams_and_bigrams(words), binary=True, min_df=2
        )
        train_matrix = vectorizer.fit_transform([data.words[p] for p in split.train])
        reference_model = LogisticRegression(
            C=0.1, tol=1e-8, max_iter=10_000, class_weight="balanced" if balanced else None
        )
        reference_model.fit(train_matrix, data.group[split.train])
        expected = reference_model.predict_proba(vectorizer.transform([data.words[p] for p in split.test]))
        np.testing.assert_allclose(pred.proba[[position_of[p] for p in split.test]], expected, atol=1e-4)


def test_a_group_missing_in_training_is_undefined():
    data = corpus(40)
    missing = Split(np.flatnonzero(data.group == 0), np.flatnonzero(data.group == 1))
    with pytest.raises(Undefined, match="no caption of one of the groups"):
        LinearClassifier(2).cross_val_predict(data, [missing])


@pytest.mark.parametrize("groups", [2, 4])
def test_contributions_of_a_caption_add_up_to_its_log_odds(groups):
    data = corpus(groups=groups)
    pred = LinearClassifier(groups).cross_val_predict(data, folds(data))
    weights = pred.log_odds_weights()
    for number in (0, 7, 100):
        contributions = caption_contributions(pred, number, weights)
        assert [word for word, _ in contributions] == list(data.words[pred.test[number]])
        logs = np.log(pred.proba[number])
        true = int(pred.group[number])
        other_logs = np.delete(logs, true).mean()
        intercept = pred.weights[-1, pred.fit_index[number]]
        if groups == 2:
            start = intercept[0] if true == 1 else -intercept[0]
        else:
            start = intercept[true] - np.delete(intercept, true).mean()
        assert sum(contribution for _, contribution in contributions) + start == pytest.approx(
            logs[true] - other_logs, abs=1e-9
        )


def test_contributions_are_means_over_the_groups_captions():
    data = corpus(400, varied=True)
    classifier = LinearClassifier(2)
    repeats = [classifier.cross_val_predict(data, folds(data, seed=seed)) for seed in (0, 1)]
    for group in (0, 1):
        by_word = {row.word: row for row in word_contributions(repeats, group, min_captions=30)}
        for word in ("a", "b"):
            means, counts = [], []
            for pred in repeats:
                weights = pred.log_odds_weights()
                values = [
                    sum(
                        contribution
                        for other, contribution in caption_contributions(pred, number, weights)
                        if other == word
                    )
                    for number in range(len(pred.test))
                    if pred.group[number] == group and word in data.words[pred.test[number]]
                ]
                means.append(np.mean(values))
                counts.append(len(values))
            assert by_word[word].value == pytest.approx(np.mean(means))
            assert by_word[word].std_seed == pytest.approx(np.std(means, ddof=1))
            assert by_word[word].captions == counts[0]
            assert by_word[word].low < by_word[word].value < by_word[word].high
    contributions = {row.word: row for row in word_contributions(repeats, 0, min_captions=30)}
    assert contributions["a"].value > 0 > contributions["b"].value
    assert contributions["a"].p < 0.001
    assert word_contributions(repeats, 0, min_captions=10_000) == []


def test_calibration_changes_the_confidence_and_not_the_prediction():
    rng = np.random.default_rng(0)
    odds = rng.normal(size=(4000, 2))
    true = (rng.random(4000) < 1 / (1 + np.exp(-0.5 * (odds[:, 1] - odds[:, 0])))).astype(int)
    proba = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    scale = inverse_temperature(proba, true)
    assert scale == pytest.approx(0.5, abs=0.06)
    scaled = temperature_scaled(proba, scale)
    assert (scaled.argmax(axis=1) == proba.argmax(axis=1)).all()
    assert scaled.max() < proba.max()
    np.testing.assert_allclose(temperature_scaled(proba, 1.0), proba)
    assert inverse_temperature(proba, 1 - true) == pytest.approx(0.0, abs=1e-6)  # always wrong: no confidence


def test_the_implicit_gradient_agrees_with_refitting():
    """Compares the curvature with refitting after one caption counts a little more."""
    data = corpus(200)
    classifier, splits = LinearClassifier(2, 0.3), folds(data)
    solver, counts, _, allowed = classifier.fit_inputs(data, splits)
    fit = solver.fit(counts, allowed, tolerance=1e-10)
    slopes = np.random.default_rng(0).normal(size=(*fit.shape[:2], 3, 1))
    implicit_gradient = solver.implicit_gradient(fit, counts, allowed, slopes, tolerance=1e-10)
    proba = solver.probabilities(fit)
    for text, group in ((0, 0), (5, 1)):
        reweighted = counts.copy()
        reweighted[group, text] += 1e-4
        weight_change = (solver.fit(reweighted, allowed, tolerance=1e-12) - fit) / 1e-4
        finite_difference = np.einsum("fbo,fbno->bn", weight_change, slopes)
        error = (group - proba[text, :, 1]) * classifier.C
        row_gradients = solver.product(implicit_gradient)[text, :, :, 0]
        np.testing.assert_allclose(finite_difference, error[:, None] * row_gradients, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("groups", [2, 3])
def test_training_influence_agrees_with_leave_one_out(groups):
    """Leave-one-out, for a smooth number; centred within groups, as class weights are."""
    data = corpus(120, groups)
    classifier = LinearClassifier(groups, 0.1, balanced=False)
    split = Split(np.arange(90), np.arange(90, 120))
    pred = classifier.cross_val_predict(data, [split])
    influence = training_influence(classifier, pred, [split], [confidence_slopes(pred.proba)])[:, 0]
    assert (influence[90:] == 0).all()

    def means(predictions: Predictions) -> np.ndarray:
        top = predictions.proba.max(axis=1)
        return np.array([top[predictions.group == g].mean() for g in range(groups)])

    full = means(pred)
    left_out = np.array(
        [
            full - means(classifier.cross_val_predict(data, [Split(np.delete(split.train, p), split.test)]))
            for p in range(90)
        ]
    )
    for group in range(groups):
        in_group = data.group[:90] == group
        left_out[in_group] -= left_out[in_group].mean(axis=0)
    assert np.corrcoef(influence[:90].ravel(), left_out.ravel())[0, 1] > 0.95
    assert influence[:90].std() == pytest.approx(left_out.std(), rel=0.2)


def test_score_slopes_agree_with_finite_differences():
    """Shifting all log odds a little shifts the mean score by the mean slope."""
    rng = np.random.default_rng(0)
    odds = np.zeros((20_000, 2))
    odds[:, 1] = rng.normal(0.3, 1, 20_000)
    group = np.ones(20_000, dtype=np.int64)

    def proba(shift: float) -> np.ndarray:
        shifted = odds + np.array([0.0, shift])
        return np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)

    finite_difference = (lic_scores(proba(0.05), group).mean() - lic_scores(proba(-0.05), group).mean()) / 0.1
    assert score_slopes(proba(0.0), group)[:, 1].mean() == pytest.approx(finite_difference, rel=0.05)


def caption_scores_of(data: Corpus, seeds=(0, 1), clusters="text") -> CaptionScores:
    classifier = LinearClassifier(2)
    predictions = [[classifier.cross_val_predict(data, folds(data, seed=seed))] for seed in seeds]
    columns = [[pred.score[:, None] for pred in repeat] for repeat in predictions]
    training_effects = [[np.zeros((len(data.images), 1, 2))] for _ in predictions]
    return CaptionScores.of(predictions, columns, training_effects, 2, clusters)


def test_means_are_over_groups_then_repeats():
    data = corpus()
    caption_scores = caption_scores_of(data)
    classifier = LinearClassifier(2)
    by_hand = []
    for seed in (0, 1):
        pred = classifier.cross_val_predict(data, folds(data, seed=seed))
        by_hand.append([pred.score[pred.group == group].mean() for group in (0, 1)])
    np.testing.assert_allclose(caption_scores.points[:, :, 0], by_hand)
    mean = estimate_mean(caption_scores, 0, None, 0, 200)
    assert mean.value == pytest.approx(100 * np.mean(by_hand))
    assert mean.std_seed == pytest.approx(100 * np.std(np.mean(by_hand, axis=1), ddof=1))
    assert estimate_mean(caption_scores, 0, 1, 0, 200).value == pytest.approx(
        100 * np.mean(by_hand, axis=0)[1]
    )
    assert mean.estimate.low < mean.value < mean.estimate.high


def test_repeated_texts_widen_the_interval():
    data = corpus(400)
    by_text = estimate_mean(caption_scores_of(data), 0, None, 0, 400).estimate
    by_image = estimate_mean(caption_scores_of(data, clusters="image"), 0, None, 0, 400).estimate
    assert by_text.value == by_image.value
    assert by_text.se > 1.3 * by_image.se


def test_the_difference_to_itself_is_zero():
    caption_scores = caption_scores_of(corpus())
    paired = difference(caption_scores, caption_scores, None, 0, 100)
    assert paired.value == 0
    assert paired.estimate.low is None or paired.estimate.low == paired.estimate.high == 0


def test_pairing_narrows_the_interval_of_a_difference():
    first_corpus, second_corpus = (corpus(400, leak=0.8, varied=True) for _ in range(2))
    changed = list(second_corpus.words)
    for index in range(0, 400, 20):
        changed[index] = (*changed[index], "z")
    second_corpus = Corpus(second_corpus.images, second_corpus.group, second_corpus.captions, tuple(changed))
    first, second = caption_scores_of(first_corpus), caption_scores_of(second_corpus)
    paired = difference(first, second, None, 0, 400)
    means = [estimate_mean(caption_scores, 0, None, 0, 400) for caption_scores in (first, second)]
    assert paired.value == pytest.approx(means[0].value - means[1].value)
    assert paired.estimate.se < means[0].estimate.se
    assert (paired.p < 0.05) == (not paired.estimate.low < 0 < paired.estimate.high)


@pytest.mark.parametrize("split", ["crossfit", "common", "paper-unseen"])
@pytest.mark.parametrize("balance", ["weights", "subsample"])
def test_no_text_is_in_training_and_test(split, balance):
    data = corpus(400)
    protocol = Protocol(split, balance, (0, 3), 5, LinearClassifier(2))
    for seed in protocol.seeds:
        tested = []
        for fold_split in protocol.splits(data, seed):
            texts = {data.words[index] for index in fold_split.train}
            assert not texts & {data.words[index] for index in fold_split.test}
            tested += fold_split.test.tolist()
        assert len(tested) == len(set(tested))
        if split != "paper-unseen" and balance == "weights":
            assert sorted(tested) == list(range(400))


def test_permutation_scores_do_not_depend_on_the_number_of_threads(monkeypatch):
    data = corpus(150)
    protocol = Protocol("crossfit", "weights", (0,), 5, LinearClassifier(2))
    scores = protocol.permutation_scores([[data]], 0, 12)
    monkeypatch.setattr("portrayal.metrics.shared.classifier.linear_classifier.available_cores", lambda: 1)
    assert (protocol.permutation_scores([[data]], 0, 12) == scores).all()
    assert scores.shape == (12, 2)
    assert 0.2 < scores.mean() < 0.4
    assert (protocol.permutation_scores([[data]], 1, 12) != scores).any()
