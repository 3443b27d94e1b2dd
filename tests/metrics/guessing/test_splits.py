"""Splits: the published one gives the published counts, and leak-safe folds never leak."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import portrayal
from portrayal.errors import Undefined
from portrayal.lexicon import load_lexicon
from portrayal.metrics.guessing.splits import leak_safe_folds, paper_split, unseen
from portrayal.metrics.guessing.text import mask_token, masked_words, within_vocabulary


@pytest.mark.parametrize(
    ("system", "raw", "masked"),
    [("nic-th10", 247, 227), ("sat", 312, 291), ("oscar", 369, 337), ("nic-equalizer", 152, 136)],
)
def test_seed_0_leaves_the_published_number_of_captions_unseen(lic_gender, system, raw, masked):
    study = portrayal.read_study(lic_gender)
    captions = study.only([system]).captions
    groups = dict(study.labels("gender").iter_rows())
    split = paper_split([groups[image] for image in captions["image_id"]], 0)
    assert (len(split.train), len(split.test)) == (5966, 662)
    texts = captions["caption"].to_list()
    assert unseen(texts, split).sum() == raw
    assert unseen(masked_words(texts, load_lexicon("gender"), mask_token("gender")), split).sum() == masked


def test_the_published_split_is_balanced_and_draws_nobody_twice():
    groups = ["male"] * 70 + ["female"] * 33
    split = paper_split(groups, 12)
    drawn = [*split.train, *split.test]
    assert len(set(drawn)) == len(drawn) == 66
    assert Counter(groups[place] for place in split.train) == {"male": 30, "female": 30}
    assert Counter(groups[place] for place in split.test) == {"male": 3, "female": 3}
    assert (paper_split(groups, 12).test == split.test).all()
    assert sorted(paper_split(groups, 0).test) != sorted(split.test)


@pytest.mark.parametrize("groups", [["a"] * 9, ["a", "b", "c"] * 9])
def test_the_published_split_is_of_two_groups(groups):
    with pytest.raises(Undefined, match="of two groups"):
        paper_split(groups, 0)


@given(
    st.lists(st.sampled_from("abcdefghijkl"), min_size=12, max_size=60), st.integers(2, 5), st.integers(0, 50)
)
def test_equal_captions_share_a_fold(texts, folds, seed):
    texts = [*texts, *"abcdefghijkl"]
    found = leak_safe_folds(texts, folds, seed)
    assert set(found) == set(range(folds))
    for text in set(texts):
        assert len({fold for fold, other in zip(found, texts, strict=True) if other == text}) == 1


def test_folds_are_nearly_equal_and_do_not_depend_on_the_order_of_captions():
    rng = np.random.default_rng(0)
    texts = [("a", str(number)) for number in rng.zipf(1.6, 3000) % 700]
    found = leak_safe_folds(texts, 10, seed=3)
    most = Counter(texts).most_common(1)[0][1]
    assert np.ptp(np.bincount(found)) <= most
    order = rng.permutation(len(texts))
    assert (leak_safe_folds([texts[place] for place in order], 10, seed=3) == found[order]).all()
    assert (leak_safe_folds(texts, 10, seed=3, repeat=1) != found).any()


def test_too_few_captions_make_no_folds():
    with pytest.raises(Undefined, match="as many different captions"):
        leak_safe_folds(["a man"] * 20, 2, 0)


def test_no_masked_caption_of_a_real_system_is_on_both_sides(lic_gender):
    study = portrayal.read_study(lic_gender)
    texts = masked_words(
        study.only(["nic-equalizer"]).captions["caption"].to_list(), load_lexicon("gender"), "genderword"
    )
    found = leak_safe_folds(texts, 10, 0)
    for fold in range(10):
        learnt = {text for text, other in zip(texts, found, strict=True) if other != fold}
        assert not any(text in learnt for text, other in zip(texts, found, strict=True) if other == fold)


def test_words_are_hidden_and_kept_within_a_vocabulary():
    gender = load_lexicon("gender")
    words = masked_words(["A man rides a bike.", "a woman"], gender, mask_token("gender"))
    assert words == [("a", "genderword", "rides", "a", "bike", "."), ("a", "genderword")]
    assert masked_words(["a man"], None, "x") == [("a", "man")]
    assert within_vocabulary(words, {"a", "genderword", "."})[0] == (
        "a",
        "genderword",
        "<unk>",
        "a",
        "<unk>",
        ".",
    )
