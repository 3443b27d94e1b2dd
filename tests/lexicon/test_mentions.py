"""Mentions of people: all metrics agree, checked against sentences labelled by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from portrayal.lexicon import MentionFinder, load_lexicon, tokenize
from portrayal.lexicon.identity import identity_words
from portrayal.lexicon.lexicon import parse_lexicon
from portrayal.lexicon.people import first_person_mention
from portrayal.lexicon.person_labels import is_person_label
from portrayal.lexicon.wordnet.grammar import content_words

# Sentences written for this test, each with the genders it names, "somebody", or "nobody".
LABELLED = [
    line.split("\t")
    for line in (Path(__file__).parent / "mentions.tsv").read_text(encoding="utf-8").splitlines()
]
GENDER = MentionFinder(load_lexicon("gender"))
PUBLISHED = MentionFinder(load_lexicon("gender-lic"))


def mentions(caption: str) -> bool:
    tokens = tokenize(caption)
    return first_person_mention(tokens, content_words(tokens)) is not None


def harms_groups(caption: str) -> set[str]:
    return {mention.group for mention in identity_words().find(tokenize(caption)) if mention.axis == "gender"}


def precision_and_recall(predicted: list[set[str]], labelled: list[set[str]]) -> tuple[float, float]:
    hits = sum(
        len(predicted_groups & labelled_groups)
        for predicted_groups, labelled_groups in zip(predicted, labelled, strict=True)
    )
    return hits / sum(map(len, predicted)), hits / sum(map(len, labelled))


def test_precision_and_recall_of_mentions():
    """docs/lexicons.md gives the numbers."""
    assert len(LABELLED) >= 100
    named = [set(label.split()) - {"nobody", "somebody"} for _, label in LABELLED]
    people = [set() if label == "nobody" else {"somebody"} for _, label in LABELLED]
    predicted = [{"somebody"} if mentions(caption) else set() for caption, _ in LABELLED]
    precision, recall = precision_and_recall(predicted, people)
    assert (precision >= 0.95, recall >= 0.95) == (True, True), (precision, recall)
    precision, recall = precision_and_recall([set(GENDER.groups(caption)) for caption, _ in LABELLED], named)
    assert (precision >= 0.95, recall >= 0.95) == (True, True), (precision, recall)


@pytest.mark.parametrize(
    "caption", ["a cowboy hat", "a queen size bed", "a lady bug", "a male lion", "there is no man or woman"]
)
def test_no_finder_mentions_people_where_a_phrase_names_nobody(caption):
    assert GENDER.groups(caption) == ()
    assert MentionFinder(load_lexicon("gender-broad")).groups(caption) == ()
    assert harms_groups(caption) == set()
    assert not mentions(caption)
    assert PUBLISHED.groups(caption) != ()  # as published: every listed word names its group


@pytest.mark.parametrize(
    ("word", "group"), [("bride", "female"), ("groom", "male"), ("fireman", "male"), ("firemen", "male")]
)
def test_every_finder_gives_the_same_gender(word, group):
    assert GENDER.groups(f"the {word} smiles") == (group,)
    assert harms_groups(f"the {word} smiles") == {group}
    assert mentions(f"the {word} smiles")


def test_harms_and_the_default_list_name_the_same_genders():
    """But for pronouns, which are no part of the published rule of harms."""
    pronouns = set("he his him himself she her hers herself".split())
    axis = identity_words().lexicons["gender"].groups
    for group, words in load_lexicon("gender").naming_words.items():
        assert set(words) - pronouns == set(axis[group])


@pytest.mark.parametrize(
    "caption",
    [
        "two men fish from a pier", "children fish", "two women style hair", "firemen suit up",
        "a street without cars and men walking dogs", "a park without benches and boys playing soccer",
        "there are no clouds and men are surfing", "the man is not seen smiling", "a man is not shown wearing a helmet",
        "the man is not pictured with a bat", "the man is not in the image's center", "a statue of liberty and a man",
        "a male dog musher",
    ],
)  # fmt: skip
def test_every_finder_mentions_the_people_in_the_caption(caption):
    assert mentions(caption)
    if "children" not in caption:
        assert GENDER.groups(caption) != ()


@pytest.mark.parametrize(
    "caption", ["a street without cars and people", "the man is not in the image", "no trace of a man or a woman",
                "a statue of two men and a woman"]
)  # fmt: skip
def test_negated_people_are_not_mentioned(caption):
    assert GENDER.groups(caption) == ()
    assert not mentions(caption)


def test_a_mask_replaces_only_the_published_words():
    text = "A fireman in a cowboy hat, no man and his bride"
    assert GENDER.mask(text, "x") == PUBLISHED.mask(text, "x") == "A fireman in a x hat, no x and x bride"
    # as results of LIC have named it since it was published here
    labels = {name: load_lexicon(name).mask_label for name in ("gender", "age", "race")}
    assert labels == {
        "gender": "gender@lic-2022@ea42e81b",
        "age": "age@relic-2023@90a5dd53",
        "race": "race@lic-2022@981947e0",
    }


@pytest.mark.parametrize(
    "label",
    [
        "person",
        "People",
        "woman",
        "rider",
        "baseball player",
        "pedestrian",
        "Human face",
        "boy scout",
        "man in suit",
        "woman holding umbrella",
        "person (female)",
        "person 1",
    ],
)
def test_labels_of_people(label):
    assert is_person_label(label)


@pytest.mark.parametrize(
    "label",
    [
        "teddy bear",
        "cowboy hat",
        "mannequin",
        "pitcher",
        "hot dog",
        "dog",
        "human statue",
        "toy soldier",
        "woman's hat",
        "swimming pool",
    ],
)
def test_labels_of_things(label):
    assert not is_person_label(label)


def test_rules_for_english_are_not_applied_to_other_languages():
    """ "No" before a group word means nothing by itself in a list of another language."""
    words = 'name = "lista"\nlanguage = "es"\n[groups]\nfemale = ["mujer"]\n'
    spanish = MentionFinder(parse_lexicon(words, "lista.toml"))
    english = MentionFinder(parse_lexicon(words.replace('language = "es"\n', ""), "lista.toml"))
    assert spanish.groups("no mujer") == ("female",)
    assert english.groups("no mujer") == ()
