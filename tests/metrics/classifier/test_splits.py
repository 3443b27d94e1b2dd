"""Splits: the published one gives the published counts, and leak-safe folds never leak."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portrayal
from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import Lexicon, load_lexicon
from portrayal.metrics.shared.classifier.masking import Mask, mask_token, within_vocabulary
from portrayal.metrics.shared.classifier.splits import (
    balanced_sample,
    common_folds,
    fast_paper_split,
    leak_safe_folds,
    not_in_training,
    paper_split,
    splits_by_fold,
    without_shared_texts,
)

GENDER = Mask(((load_lexicon("gender"), mask_token("gender")),))


@pytest.mark.parametrize(
    ("system", "raw", "masked"),
    [("nic-th10", 247, 227), ("sat", 312, 291), ("oscar", 369, 337), ("nic-equalizer", 152, 136)],
)
def test_seed_0_leaves_the_published_number_of_captions_unseen(lic_gender, system, raw, masked):
    study = portrayal.read_study(lic_gender)
    captions = study.select_systems([system]).captions
    groups = dict(study.labels("gender").iter_rows())
    split = paper_split([groups[image] for image in captions["image_id"]], 0)
    assert (len(split.train), len(split.test)) == (5966, 662)
    texts = captions["caption"].to_list()
    assert not_in_training(texts, split).sum() == raw
    assert not_in_training(GENDER.apply(texts), split).sum() == masked


def test_the_published_split_is_balanced_and_without_replacement():
    groups = ["male"] * 70 + ["female"] * 33
    split = paper_split(groups, 12)
    sample = [*split.train, *split.test]
    assert len(set(sample)) == len(sample) == 66
    assert Counter(groups[index] for index in split.train) == {"male": 30, "female": 30}
    assert Counter(groups[index] for index in split.test) == {"male": 3, "female": 3}
    assert (paper_split(groups, 12).test == split.test).all()
    assert sorted(paper_split(groups, 0).test) != sorted(split.test)


def test_the_published_split_takes_three_groups_and_needs_a_tenth_of_each():
    split = paper_split(["a"] * 50 + ["b"] * 20 + ["c"] * 30, 0)
    assert (len(split.train), len(split.test)) == (3 * 18, 3 * 2)
    with pytest.raises(Undefined, match="which has 4 captions"):
        paper_split(["a"] * 9 + ["b"] * 4, 0)


def test_the_fast_split_is_of_the_same_kind():
    groups = np.array([0] * 70 + [1] * 33)
    split = fast_paper_split(groups, np.random.default_rng(0))
    sample = [*split.train, *split.test]
    assert len(set(sample)) == len(sample) == 66
    assert np.bincount(groups[split.train]).tolist() == [30, 30]
    assert np.bincount(groups[split.test]).tolist() == [3, 3]


def test_a_balanced_sample_has_all_of_the_smallest_group():
    groups = np.array([0] * 9 + [1] * 4 + [2] * 6)
    sample = balanced_sample(groups, np.random.default_rng(1))
    assert np.bincount(groups[sample]).tolist() == [4, 4, 4]
    assert set(range(9, 13)) < set(sample.tolist())
    assert (np.diff(sample) > 0).all()


@given(st.lists(st.integers(0, 8), min_size=20, max_size=60), st.integers(0, 50))
def test_common_folds_depend_on_the_image_only_and_share_no_text(texts, seed):
    images = [f"i{number}" for number in range(len(texts))]
    fold = common_folds(images, 4, seed)
    backwards = common_folds(images[::-1], 4, seed)
    assert (fold == backwards[::-1]).all()
    text = np.array(texts)
    for split, safe_split in zip(
        splits_by_fold(fold), without_shared_texts(splits_by_fold(fold), text), strict=True
    ):
        assert (safe_split.test == split.test).all()
        assert not set(text[safe_split.train]) & set(text[safe_split.test])
        assert set(safe_split.train) == {p for p in split.train if text[p] not in set(text[split.test])}


@given(
    st.lists(st.sampled_from("abcdefghijkl"), min_size=12, max_size=60), st.integers(2, 5), st.integers(0, 50)
)
def test_equal_captions_share_a_fold(texts, folds, seed):
    texts = [*texts, *"abcdefghijkl"]
    fold_of = leak_safe_folds(texts, folds, seed)
    assert set(fold_of) == set(range(folds))
    for text in set(texts):
        assert len({fold for fold, other in zip(fold_of, texts, strict=True) if other == text}) == 1


def test_folds_are_nearly_equal_and_do_not_depend_on_the_order_of_captions():
    rng = np.random.default_rng(0)
    texts = [("a", str(number)) for number in rng.zipf(1.6, 3000) % 700]
    fold_of = leak_safe_folds(texts, 10, seed=3)
    most = Counter(texts).most_common(1)[0][1]
    assert np.ptp(np.bincount(fold_of)) <= most
    order = rng.permutation(len(texts))
    assert (leak_safe_folds([texts[index] for index in order], 10, seed=3) == fold_of[order]).all()
    assert (leak_safe_folds(texts, 10, seed=4) != fold_of).any()


def test_too_few_captions_make_no_folds():
    with pytest.raises(Undefined, match="as many different captions"):
        leak_safe_folds(["a man"] * 20, 2, 0)


def test_no_masked_caption_of_a_real_system_is_on_both_sides(lic_gender):
    study = portrayal.read_study(lic_gender)
    texts = GENDER.apply(study.select_systems(["nic-equalizer"]).captions["caption"].to_list())
    fold_of = leak_safe_folds(texts, 10, 0)
    for fold in range(10):
        train_texts = {text for text, other in zip(texts, fold_of, strict=True) if other != fold}
        assert not any(
            text in train_texts for text, other in zip(texts, fold_of, strict=True) if other == fold
        )


def test_words_are_hidden_and_kept_within_a_vocabulary():
    words = GENDER.apply(["A man rides a bike.", "a woman"])
    assert words == [("a", "genderword", "rides", "a", "bike", "."), ("a", "genderword")]
    assert Mask().apply(["A man"]) == [("a", "man")]
    assert Mask(GENDER.lists, remove=True).apply(["A man's bike"]) == [("a", "'s", "bike")]
    restricted = within_vocabulary(words, {"a", "genderword", "."})[0]
    assert restricted == ("a", "genderword", "<unk>", "a", "<unk>", ".")


def test_masks_of_attributes_and_of_combined_attributes():
    assert Mask.for_attribute("race", None, None).lists == ()
    assert Mask.for_attribute("race", None, True).apply(["a black man"]) == [("a", "raceword", "man")]
    assert Mask.for_attribute("gender", None, False).lists == ()
    assert Mask.for_attribute("shoe size", None, False).lists == ()
    for mask in (None, True):
        with pytest.raises(Undefined, match="nothing can be hidden"):
            Mask.for_attribute("shoe size", None, mask)
    with pytest.raises(PortrayalError, match="leave one out"):
        Mask.for_attribute("gender", "gender-broad", False)
    assert Mask.for_attribute("race", None, None, always=True).tokens == {"raceword"}
    assert Mask.for_attribute("race", "race", None).tokens == {"raceword"}
    both = Mask.for_attribute("gender+age", None, None)
    assert both.apply(["an old man and a child"]) == [("an", "ageword", "genderword", "and", "a", "ageword")]
    assert both.tokens == {"genderword", "ageword"}
    assert both.label.count("+") == 1


def test_phrases_are_hidden_whole():
    words = Lexicon("kin", "kin", {"x": ("grand father", "aunt")})
    mask = Mask(((words, "kinword"),))
    assert mask.apply(["my grand father , my aunt"]) == [("my", "kinword", ",", "my", "kinword")]
    assert Mask(mask.lists, remove=True).apply(["my grand father"]) == [("my",)]
