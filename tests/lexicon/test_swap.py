"""Swapped captions: case, plural, possessives, pronouns, articles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.lexicon import Lexicon, Swapper, load_lexicon

GENDER = Swapper(load_lexicon("gender"))
SWAPPED = {
    "A man and two boys": "A woman and two girls",
    "The Woman's dog": "The Man's dog",
    "MEN AT WORK": "WOMEN AT WORK",
    "he holds his phone": "she holds her phone",
    "she holds her phone": "he holds his phone",
    "a dog looks at her": "a dog looks at him",
    "a dog looks at her.": "a dog looks at him.",
    "a dog looks at him": "a dog looks at her",
    "he gives her a cake": "she gives him a cake",
    "he gives her his hat": "she gives him her hat",
    "kissing her on the cheek": "kissing him on the cheek",
    "the red bag is hers": "the red bag is his",
    "the red bag is his": "the red bag is hers",
    "she hurt herself": "he hurt himself",
    "an actor and a waiter": "an actress and a waitress",
    "a lady and a gentleman": "a gentleman and a lady",
    "a guy": "a lady",
    "a photo of her smiling": "a photo of him smiling",
    "her smiling face": "his smiling face",
    "he lets her ride": "she lets him ride",
    "a board behind his back": "a board behind her back",
    "lying on her back": "lying on his back",
    "a dog brings her back": "a dog brings him back",
    "a queen": "an emperor",
    "a person": "a person",
    "": "",
}


@pytest.mark.parametrize("caption", SWAPPED)
def test_swapping(caption):
    assert GENDER.swap(caption).text == SWAPPED[caption]


def test_words_without_a_counterpart_are_reported():
    swapped = GENDER.swap("a pregnant woman")
    assert swapped.text == "a pregnant man"
    assert swapped.unswapped == ("pregnant",)
    assert swapped.changed == (("woman", "man"),)


def test_swapping_towards_a_group():
    assert GENDER.swap("a man, a woman and his dog", to="female").text == "a woman, a woman and her dog"


def test_articles_follow_the_new_word():
    age = Swapper(load_lexicon("age"))
    assert age.swap("a young man and an old woman").text == "an old man and a young woman"
    assert age.swap("A child").text == "An adult"
    assert age.swap("a senior man").text == "a young man"


def test_groups_are_data():
    lexicon = Lexicon(
        "x", "x", {"a": ("apple",), "b": ("pear",), "c": ("plum",)}, swap={"apple": ("pear", "plum")}
    )
    swapper = Swapper(lexicon)
    assert swapper.swap("an apple", to="b").text == "a pear"
    assert swapper.swap("an apple", to="c").text == "a plum"
    assert swapper.swap("a plum").text == "an apple"


PAIRS = [
    (word, others[0])
    for word, others in load_lexicon("gender-broad").swap.items()
    if word not in ("his", "him")
]


@pytest.mark.parametrize(("word", "other"), PAIRS)
def test_every_pair_crosses_groups_and_back(word, other):
    swapper = Swapper(load_lexicon("gender-broad"))
    assert swapper.swap(f"the {word} here").text == f"the {other} here"
    assert swapper.swap(f"the {other} here").text == f"the {word} here"


WORDS = st.sampled_from("a man Woman boys girls brother sister dog he she cat herself".split())


@given(st.lists(WORDS).map(" ".join))
def test_swapping_twice_restores_the_caption(caption):
    assert GENDER.swap(GENDER.swap(caption).text).text == caption


@given(st.text())
def test_any_text_can_be_swapped(text):
    swapped = GENDER.swap(text)
    if not swapped.changed:
        assert swapped.text == text
