"""Named entities: found by the gazetteer in any caption, and by capitals in captions in sentence case."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.lexicon import shipped_lexicons, tokenize
from portrayal.lexicon.entities import entity_names

NAMES = entity_names()

CASES = {
    # By the gazetteer, without capitals.
    "a red bus passes big ben in london": ["big ben", "london"],
    "the statue of liberty in new york city": ["statue of liberty", "new york city"],
    "two men play nintendo wii": ["nintendo wii"],
    "a cup of starbucks coffee": ["starbucks"],
    "a boy in a yankees jersey": ["yankees"],
    "a tennis match at the us open": ["us open"],
    "a family celebrates thanksgiving": ["thanksgiving"],
    "santa sits on a bench": ["santa"],
    "a boat on the river thames": ["river thames"],
    "a parade on st. patrick's day": ["st. patrick's day"],
    # Words that look like names.
    "turkey on a china plate": [],
    "a nice bath and a red jersey": [],
    "a mobile phone next to an apple": [],
    "he may march in a marina": [],
    "a labrador catches a frisbee": [],
    "brussels sprouts and a boston terrier": [],
    "a christmas tree and a ferris wheel": [],
    "a teddy bear in a bush": [],
    "the dog runs down the hill": [],
    "a man in a santa hat": [],
    "give it to us or to me": [],
    "a peron golding a bat": [],  # slips, not Perón and Golding
    # Demonyms, languages, months, weekdays and abbreviations of things are no names.
    "An Asian man reads an English book on a Sunday in April": [],
    "A BMX rider watches TV near an ATM": [],
    "An Asian-style room": [],
    "a T-ball game": [],
    # By capitals.
    "a shop called Znocob": ["znocob"],
    "A sign for Quigley Street near a park": ["quigley street"],
    "a photo of Cole Ballew at the bat": ["cole ballew"],
    "Two runners from Japan and China": ["japan", "china"],
    "China is on the table": [],  # it begins the sentence
    "an Apple laptop on a desk": ["apple"],
    "People walk in front of the White House": ["white house"],
    "people walk in front of a white house": [],
    "Tall buildings. Znocob is a shop": [],  # a sentence begins here
    "Barack Obama gives a speech": ["barack obama"],
    "A man rides a Motorcycle in the Street": [],
    "The USA team plays in the U.S. and the UK": ["usa", "u.s", "uk"],
    "A child sleeps in McDonald's next to another McDonald's": ["mcdonald's"],
    "A man wins the Iditarod Trail race": ["iditarod trail"],
    # Without informative capitals, only the gazetteer decides.
    "A Man Named Quigley Rides A Horse In Paris": ["paris"],
    "A MAN NAMED QUIGLEY RIDES A HORSE IN PARIS": ["paris"],
    "Big Ben": ["big ben"],
    "": [],
    "...": [],
}


@pytest.mark.parametrize("caption", CASES)
def test_names(caption):
    assert NAMES.find(caption) == CASES[caption]
    assert NAMES.find(caption, tokenize(caption)) == CASES[caption]


def test_names_come_in_the_order_of_the_caption_and_once():
    assert NAMES.find("from paris to london and back to paris") == ["paris", "london"]


def test_the_list_has_a_source_and_is_no_lexicon_of_an_attribute():
    lexicon = NAMES.lexicon
    assert all((lexicon.source, lexicon.licence, lexicon.version, lexicon.note))
    assert lexicon.name not in {attribute_lexicon.name for attribute_lexicon in shipped_lexicons()}
    assert NAMES.label == f"entities@{lexicon.version}@{lexicon.digest}"
    assert entity_names() is NAMES


LISTED_NAMES = [
    name for group, names in NAMES.lexicon.groups.items() if group != "capitalised" for name in names
]


def test_every_listed_name_is_matched():
    for name in LISTED_NAMES:
        (match,) = NAMES.find(f"a {name} b")
        assert tokenize(match) == tokenize(name)


def test_no_phrase_is_listed_both_as_a_name_and_as_no_name():
    for phrase in NAMES.lexicon.not_naming:
        assert NAMES.find(phrase) == [], phrase


@given(st.text())
def test_any_text_can_be_searched(text):
    for name in NAMES.find(text):
        assert name
        assert name == name.lower()


@given(st.lists(st.sampled_from("A a Man man New York city of Quigley . , Wii 's THE Paris".split())))
def test_any_casing_can_be_searched(words):
    caption = " ".join(words)
    assert set(NAMES.find(caption.lower())) <= {"york", "new york", "new york city", "wii", "paris"}
    for name in NAMES.find(caption):
        assert tokenize(name)[0] in tokenize(caption)
