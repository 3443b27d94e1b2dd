"""Guesses, their scores, their reasons, and how far each caption moves them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from portrayal.errors import Undefined
from portrayal.metrics.shared.classifier.aggregation import Tally, difference, estimate
from portrayal.metrics.shared.classifier.corpus import Corpus, Design, features_of
from portrayal.metrics.shared.classifier.linear import Guesser, Guesses, scores, sharpened, sharpness
from portrayal.metrics.shared.classifier.protocol import Protocol
from portrayal.metrics.shared.classifier.splits import Split, by_fold, leak_safe_folds
from portrayal.metrics.shared.classifier.training_influence import (
    confidence_slopes,
    learning_effects,
    score_slopes,
)
from portrayal.metrics.shared.classifier.word_contributions import contributions, parts_of_caption

WORDS = "a b c d e f g h i j".split()


def corpus(
    size: int = 240, groups: int = 2, seed: int = 0, leak: float = 1.5, varied: bool = False
) -> Corpus:
    """Captions whose first words go with a group. Many are said twice, unless they are varied."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, groups, size)
    pull = leak * np.eye(len(WORDS))[:groups][group] * 3
    words = []
    for row in pull:
        chance = np.exp(row) / np.exp(row).sum()
        more = [f"w{number}" for number in rng.integers(0, 50, 3 * varied)]
        words.append((*rng.choice(WORDS, 2, p=chance).tolist(), *more))
    images = tuple(f"i{number:04d}" for number in range(size))
    return Corpus(images, group, tuple(" ".join(w) for w in words), tuple(words))


def folds(of: Corpus, count: int = 5, seed: int = 0) -> list[Split]:
    return by_fold(leak_safe_folds(of.words, count, seed))


def test_scores_by_hand():
    likely = np.array([[0.8, 0.2], [0.4, 0.6], [0.3, 0.7], [0.5, 0.5]])
    assert scores(likely, np.array([0, 0, 1, 1])).tolist() == [0.8, 0.0, 0.7, 0.0]
    three = np.array([[0.4, 0.35, 0.25], [0.3, 0.3, 0.4]])
    assert scores(three, np.array([0, 1])).tolist() == [0.4, 0.0]


def test_a_design_is_words_and_pairs_that_are_said_twice():
    design = Design.of([("x", "y"), ("x", "y"), ("x", "z"), ("y", "x", "y")])
    assert design.texts == (("x", "y"), ("x", "z"), ("y", "x", "y"))
    assert design.row.tolist() == [0, 0, 1, 2]
    assert design.features == (("x",), ("y",), ("x", "y"))
    assert design.matrix.toarray().tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 1]]
    assert design.times.tolist() == [2, 1, 1]
    assert Design.of([(), ()]).matrix.shape == (1, 0)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("weighted", [True, False])
def test_guesses_are_those_of_a_plain_implementation(groups, weighted):
    """scikit-learn's vectoriser and classifier, fold by fold, on every caption rather than on distinct ones."""
    told = corpus(groups=groups)
    splits = folds(told)
    found = Guesser(groups, 0.1, weighted).guess(told, splits)
    place = {p: number for number, p in enumerate(found.test)}
    assert sorted(place) == list(range(len(told.images)))
    for split in splits:
        reader = CountVectorizer(analyzer=lambda words: features_of(words), binary=True, min_df=2)
        learnt = reader.fit_transform([told.words[p] for p in split.train])
        alone = LogisticRegression(
            C=0.1, tol=1e-8, max_iter=10_000, class_weight="balanced" if weighted else None
        )
        alone.fit(learnt, told.group[split.train])
        expected = alone.predict_proba(reader.transform([told.words[p] for p in split.test]))
        np.testing.assert_allclose(found.likely[[place[p] for p in split.test]], expected, atol=1e-4)


def test_a_group_that_cannot_be_learnt_is_undefined():
    told = corpus(40)
    missing = Split(np.flatnonzero(told.group == 0), np.flatnonzero(told.group == 1))
    with pytest.raises(Undefined, match="no caption of one of the groups"):
        Guesser(2).guess(told, [missing])


@pytest.mark.parametrize("groups", [2, 4])
def test_parts_of_a_caption_add_up_to_its_log_odds(groups):
    told = corpus(groups=groups)
    found = Guesser(groups).guess(told, folds(told))
    towards = found.directions()
    for number in (0, 7, 100):
        parts = parts_of_caption(found, number, towards)
        assert [word for word, _ in parts] == list(told.words[found.test[number]])
        logs = np.log(found.likely[number])
        mine = int(found.group[number])
        others = np.delete(logs, mine).mean()
        before = found.weights[-1, found.fit[number]]
        if groups == 2:
            start = before[0] if mine == 1 else -before[0]
        else:
            start = before[mine] - np.delete(before, mine).mean()
        assert sum(part for _, part in parts) + start == pytest.approx(logs[mine] - others, abs=1e-9)


def test_contributions_are_the_mean_parts_of_the_groups_captions():
    told = corpus(400, varied=True)
    guesser = Guesser(2)
    repeats = [guesser.guess(told, folds(told, seed=seed)) for seed in (0, 1)]
    for group in (0, 1):
        by_word = {one.word: one for one in contributions(repeats, group, least=30)}
        for word in ("a", "b"):
            means, counts = [], []
            for one in repeats:
                towards = one.directions()
                found = [
                    sum(part for other, part in parts_of_caption(one, number, towards) if other == word)
                    for number in range(len(one.test))
                    if one.group[number] == group and word in told.words[one.test[number]]
                ]
                means.append(np.mean(found))
                counts.append(len(found))
            assert by_word[word].value == pytest.approx(np.mean(means))
            assert by_word[word].std_seed == pytest.approx(np.std(means, ddof=1))
            assert by_word[word].captions == counts[0]
            assert by_word[word].low < by_word[word].value < by_word[word].high
    giving = {one.word: one for one in contributions(repeats, 0, least=30)}
    assert giving["a"].value > 0 > giving["b"].value
    assert giving["a"].p < 0.001
    assert contributions(repeats, 0, least=10_000) == []


def test_calibration_changes_how_sure_a_guess_is_and_not_the_guess():
    rng = np.random.default_rng(0)
    odds = rng.normal(size=(4000, 2))
    true = (rng.random(4000) < 1 / (1 + np.exp(-0.5 * (odds[:, 1] - odds[:, 0])))).astype(int)
    likely = np.exp(odds) / np.exp(odds).sum(axis=1, keepdims=True)
    factor = sharpness(likely, true)
    assert factor == pytest.approx(0.5, abs=0.06)
    calmer = sharpened(likely, factor)
    assert (calmer.argmax(axis=1) == likely.argmax(axis=1)).all()
    assert calmer.max() < likely.max()
    np.testing.assert_allclose(sharpened(likely, 1.0), likely)
    assert sharpness(likely, 1 - true) == pytest.approx(0.0, abs=1e-6)  # it is wrong: be sure of nothing


def test_one_more_caption_moves_the_weights_as_said():
    """What the curvature says against learning again with one caption counted a little more."""
    told = corpus(200)
    guesser, splits = Guesser(2, 0.3), folds(told)
    solver, counts, _, allowed = guesser.learnt(told, splits)
    fit = solver.fit(counts, allowed, tolerance=1e-10)
    slopes = np.random.default_rng(0).normal(size=(*fit.shape[:2], 3, 1))
    pulled = solver.pull_back(fit, counts, allowed, slopes, tolerance=1e-10)
    likely = solver.probabilities(fit)
    for text, group in ((0, 0), (5, 1)):
        more = counts.copy()
        more[group, text] += 1e-4
        moved = (solver.fit(more, allowed, tolerance=1e-12) - fit) / 1e-4
        real = np.einsum("fbo,fbno->bn", moved, slopes)
        error = (group - likely[text, :, 1]) * guesser.strength
        along = solver.to_rows(pulled)[text, :, :, 0]
        np.testing.assert_allclose(real, error[:, None] * along, rtol=0.02, atol=1e-4)


@pytest.mark.parametrize("groups", [2, 3])
def test_what_captions_add_by_being_learnt_is_what_learning_again_shows(groups):
    """Leaving each caption out in turn, over a number without jumps; centred within groups, as weights are."""
    told = corpus(120, groups)
    guesser = Guesser(groups, 0.1, weighted=False)
    split = Split(np.arange(90), np.arange(90, 120))
    found = guesser.guess(told, [split])
    said = learning_effects(guesser, found, [split], [confidence_slopes(found.likely)])[:, 0]
    assert (said[90:] == 0).all()

    def means(one: Guesses) -> np.ndarray:
        top = one.likely.max(axis=1)
        return np.array([top[one.group == g].mean() for g in range(groups)])

    whole = means(found)
    left_out = np.array(
        [
            whole - means(guesser.guess(told, [Split(np.delete(split.train, p), split.test)]))
            for p in range(90)
        ]
    )
    for group in range(groups):
        mine = told.group[:90] == group
        left_out[mine] -= left_out[mine].mean(axis=0)
    assert np.corrcoef(said[:90].ravel(), left_out.ravel())[0, 1] > 0.95
    assert said[:90].std() == pytest.approx(left_out.std(), rel=0.2)


def test_a_score_turns_as_steeply_as_there_are_captions_at_the_turn():
    """Moving all log odds by a little moves the mean score by the mean slope."""
    rng = np.random.default_rng(0)
    odds = np.zeros((20_000, 2))
    odds[:, 1] = rng.normal(0.3, 1, 20_000)
    group = np.ones(20_000, dtype=np.int64)

    def likely(by: float) -> np.ndarray:
        moved = odds + np.array([0.0, by])
        return np.exp(moved) / np.exp(moved).sum(axis=1, keepdims=True)

    real = (scores(likely(0.05), group).mean() - scores(likely(-0.05), group).mean()) / 0.1
    assert score_slopes(likely(0.0), group)[:, 1].mean() == pytest.approx(real, rel=0.05)


def tally_of(told: Corpus, seeds=(0, 1), clusters="text") -> Tally:
    guesser = Guesser(2)
    guesses = [[guesser.guess(told, folds(told, seed=seed))] for seed in seeds]
    columns = [[one.score[:, None] for one in some] for some in guesses]
    learning = [[np.zeros((len(told.images), 1, 2))] for _ in guesses]
    return Tally.of(guesses, columns, learning, 2, clusters)


def test_means_are_over_groups_then_repeats():
    told = corpus()
    tally = tally_of(told)
    guesser = Guesser(2)
    by_hand = []
    for seed in (0, 1):
        one = guesser.guess(told, folds(told, seed=seed))
        by_hand.append([one.score[one.group == group].mean() for group in (0, 1)])
    np.testing.assert_allclose(tally.points[:, :, 0], by_hand)
    whole = estimate(tally, 0, None, 0, 200)
    assert whole.value == pytest.approx(100 * np.mean(by_hand))
    assert whole.std_seed == pytest.approx(100 * np.std(np.mean(by_hand, axis=1), ddof=1))
    assert estimate(tally, 0, 1, 0, 200).value == pytest.approx(100 * np.mean(by_hand, axis=0)[1])
    assert whole.estimate.low < whole.value < whole.estimate.high


def test_repeated_texts_make_a_number_less_sure():
    told = corpus(400)
    by_text = estimate(tally_of(told), 0, None, 0, 400).estimate
    by_image = estimate(tally_of(told, clusters="image"), 0, None, 0, 400).estimate
    assert by_text.value == by_image.value
    assert by_text.se > 1.3 * by_image.se


def test_a_difference_to_itself_is_surely_none():
    tally = tally_of(corpus())
    found = difference(tally, tally, None, 0, 100)
    assert found.value == 0
    assert found.estimate.low is None or found.estimate.low == found.estimate.high == 0


def test_a_difference_is_surer_than_its_parts_where_they_are_alike():
    one, other = (corpus(400, leak=0.8, varied=True) for _ in range(2))
    changed = list(other.words)
    for place in range(0, 400, 20):
        changed[place] = (*changed[place], "z")
    other = Corpus(other.images, other.group, other.captions, tuple(changed))
    first, second = tally_of(one), tally_of(other)
    found = difference(first, second, None, 0, 400)
    parts = [estimate(tally, 0, None, 0, 400) for tally in (first, second)]
    assert found.value == pytest.approx(parts[0].value - parts[1].value)
    assert found.estimate.se < parts[0].estimate.se
    assert (found.p < 0.05) == (not found.estimate.low < 0 < found.estimate.high)


@pytest.mark.parametrize("split", ["crossfit", "common", "paper-unseen"])
@pytest.mark.parametrize("balance", ["weights", "subsample"])
def test_no_text_is_learnt_and_tested(split, balance):
    told = corpus(400)
    protocol = Protocol(split, balance, (0, 3), 5, Guesser(2))
    for seed in protocol.seeds:
        tested = []
        for part in protocol.splits(told, seed):
            texts = {told.words[place] for place in part.train}
            assert not texts & {told.words[place] for place in part.test}
            tested += part.test.tolist()
        assert len(tested) == len(set(tested))
        if split != "paper-unseen" and balance == "weights":
            assert sorted(tested) == list(range(400))


def test_chance_labels_come_out_alike_in_any_number_of_threads(monkeypatch):
    told = corpus(150)
    protocol = Protocol("crossfit", "weights", (0,), 5, Guesser(2))
    one = protocol.chance([[told]], 0, 12)
    monkeypatch.setattr("portrayal.metrics.shared.classifier.linear.own_cores", lambda: 1)
    assert (protocol.chance([[told]], 0, 12) == one).all()
    assert one.shape == (12, 2)
    assert 0.2 < one.mean() < 0.4
    assert (protocol.chance([[told]], 1, 12) != one).any()
