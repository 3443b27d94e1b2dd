"""Versions of a caption for each group."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.lexicon import NEUTRAL, GroupVersions, Lexicon, MentionFinder, load_lexicon, shipped_lexicons

GENDER = GroupVersions(load_lexicon("gender"))
VERSIONS = {
    # caption: (of a man, of a woman, of anybody)
    "A man and his dog": ("A man and his dog", "A woman and her dog", "A person and their dog"),
    "two girls at a table": ("two boys at a table", "two girls at a table", "two children at a table"),
    "a dog looks at her": ("a dog looks at him", "a dog looks at her", "a dog looks at them"),
    "the bag is hers": ("the bag is his", "the bag is hers", "the bag is theirs"),
    "a lady and a guy": ("a man and a man", "a woman and a woman", "a person and a person"),
    "An emperor's waitress": ("An emperor's waiter", "A queen's waitress", None),
    "an actress": ("an actor", "an actress", "a performer"),
    "a [MASK] on a horse": ("a man on a horse", "a woman on a horse", "a person on a horse"),
    "A < MASK > smiles": ("A man smiles", "A woman smiles", "A person smiles"),
    "a dog": ("a dog", "a dog", "a dog"),
    "a pregnant woman": (None, "a pregnant woman", None),
    "": ("", "", ""),
}


@pytest.mark.parametrize("caption", VERSIONS)
def test_versions_for_each_group(caption):
    assert (
        tuple(GENDER.in_group(caption, group) for group in ("male", "female", NEUTRAL)) == VERSIONS[caption]
    )


def test_adjectives_are_left_out_and_articles_follow():
    race, age = GroupVersions(load_lexicon("race")), GroupVersions(load_lexicon("age"))
    assert race.in_group("an African man with a black dog", NEUTRAL) == "a man with a black dog"
    assert race.in_group("a black man", "light") == "a white man"
    assert (
        race.in_group("an african man", "dark") == "a black man"
    )  # which of a group's words stood there is lost
    assert age.in_group("an old actor", NEUTRAL) == "an old actor"  # the list of ages has no such person
    assert age.in_group("an old person", NEUTRAL) == "a person"
    assert age.in_group("a child", "old") == "an adult"


def test_a_list_without_counterparts_uses_the_same_word_for_each_group():
    lexicon = Lexicon("x", "x", {"a": ("apple", "apples"), "b": ("pear",)}, neutral=("fruit",))
    versions = GroupVersions(lexicon)
    assert versions.in_group("an apple", "b") == "a pear"
    assert versions.in_group("a pear", "a") == "an apple"
    assert versions.in_group("an apple and a pear", NEUTRAL) == "a fruit and a fruit"
    assert versions.in_group("two apples", "b") is None  # a word that none stands for
    without_neutral = GroupVersions(Lexicon("x", "x", {"a": ("apple",)}))
    assert without_neutral.in_group("an apple", NEUTRAL) is None


def test_the_word_that_stands_for_a_group():
    assert [load_lexicon("gender").word_for(group) for group in ("male", "female", NEUTRAL)] == [
        "man",
        "woman",
        "person",
    ]
    assert load_lexicon("race").word_for("dark") == "black person"
    assert load_lexicon("gender").word_for("other") is None


WORDS = [word for words in load_lexicon("gender").groups.values() for word in words]


@given(st.lists(st.sampled_from([*WORDS, "a", "dog", "runs", "the"]), max_size=8))
def test_a_filled_caption_names_the_group_and_no_other(words):
    caption = " ".join(words)
    finder = MentionFinder(load_lexicon("gender"))
    for group in ("male", "female"):
        version = GENDER.in_group(caption, group)
        if version is not None:
            assert set(finder.groups(version)) <= {group}
    neutral = GENDER.in_group(caption, NEUTRAL)
    assert neutral is None or not finder.groups(neutral)


@pytest.mark.parametrize(
    "lexicon", [lexicon for lexicon in shipped_lexicons() if lexicon.plain], ids=lambda lexicon: lexicon.name
)
def test_plain_words_name_no_group(lexicon):
    group_words = {word for words in lexicon.naming_words.values() for word in words}
    assert set(lexicon.plain) <= group_words
    assert (
        not {plain_word for plain_words in lexicon.plain.values() for plain_word in plain_words} & group_words
    )
