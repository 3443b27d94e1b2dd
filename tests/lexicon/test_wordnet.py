"""The WordNet graph: known facts, and the tables against the database files they were built from."""

from __future__ import annotations

import polars as pl
import pytest

from portrayal.errors import InputError, PortrayalError
from portrayal.lexicon.wordnet import build
from portrayal.lexicon.wordnet.graph import PARTS_OF_SPEECH, WordNet, wordnet
from tests.conftest import cannot_run

NET = wordnet()

HYPERNYMS = {  # the most frequent sense of a noun: what it is, and what it is not
    "dog": ("mammal animal organism", "cat person artifact"),
    "poodle": ("dog", "cat"),
    "man": ("person adult", "woman artifact"),
    "girl": ("person woman", "man"),
    "nurse": ("person", "man woman"),
    "surfboard": ("artifact", "person"),
    "pizza": ("food", "artifact"),
    "sofa": ("furniture", "food"),
    "fire hydrant": ("artifact", "person fire"),
    "toaster oven": ("artifact", "toaster"),
}


@pytest.mark.parametrize("word", HYPERNYMS)
def test_hypernyms_of_nouns(word):
    synset = NET.sense(word, "noun", 1)
    hypernyms, other_words = (text.split() for text in HYPERNYMS[word])
    for hypernym in hypernyms:
        assert NET.is_a(synset, NET.sense(hypernym, "noun", 1)), hypernym
    for other_word in other_words:
        assert not NET.is_a(synset, NET.sense(other_word, "noun", 1)), other_word


def test_a_man_is_a_male_person_in_the_second_sense_of_male():
    man, (animal, person, _) = NET.sense("man", "noun", 1), NET.senses("male", "noun")
    assert NET.words(person) == ("male", "male person")
    assert NET.is_a(man, person)
    assert not NET.is_a(man, animal)
    assert NET.is_a(NET.sense("woman", "noun", 1), NET.sense("female", "noun", 2))


def test_verbs_have_hypernyms_and_adjectives_have_none():
    assert NET.is_a(NET.sense("stroll", "verb", 1), NET.sense("walk", "verb", 1))
    assert NET.hypernyms(NET.sense("big", "adjective", 1)) == ()
    assert NET.ancestors(NET.sense("slowly", "adverb", 1)) == frozenset()


def test_the_size_is_the_documented_size():
    """wnstats(7) of WordNet 3.0: how many different words and synsets of each part."""
    table = pl.read_parquet(build.TABLES_FOLDER / "wordnet.parquet")
    synsets = dict(table["part"].value_counts().iter_rows())
    assert synsets == {"noun": 82115, "verb": 13767, "adjective": 18156, "adverb": 3621}
    words = [
        table.filter(pl.col("part") == part_of_speech)["words"].explode().n_unique()
        for part_of_speech in PARTS_OF_SPEECH
    ]
    assert words == [117798, 11529, 21479, 4481]
    assert table["words"].list.len().sum() == 206941


def test_no_synset_is_its_own_ancestor():
    assert not any(synset in NET.ancestors(synset) for synset in range(0, 117659, 7))


def test_cyclic_hypernyms_end():
    rows = {
        "number": [0, 1, 2],
        "part": ["verb"] * 3,
        "words": [["inhibit"], ["restrain"], ["curb"]],
        "ranks": [[1]] * 3,
        "counts": [[0]] * 3,
        "hypernyms": [[1], [0], [1]],
        "instance": [False] * 3,
        "category": ["verb.social"] * 3,
        "usage": [[]] * 3,
    }
    exceptions = pl.DataFrame(schema={"form": pl.String, "part": pl.String, "lemma": pl.String})
    net = WordNet(pl.DataFrame(rows, schema=build.SCHEMA), exceptions)
    assert net.ancestors(0) == {1}
    assert net.ancestors(2) == {0, 1}
    assert net.hyponyms(1) == {0, 2}


def test_hyponyms_are_the_inverse_of_hypernyms():
    person = NET.sense("person", "noun", 1)
    hyponyms = NET.hyponyms(person)
    assert len(hyponyms) > 10_000
    assert person not in hyponyms
    assert all(person in NET.ancestors(synset) for synset in hyponyms)
    assert NET.hyponyms(NET.sense("big", "adjective", 1)) == frozenset()


def test_proper_names():
    city, writer = NET.senses("london", "noun")
    assert NET.is_instance(city)
    assert NET.is_instance(writer)
    assert NET.is_a(city, NET.sense("city", "noun", 1))
    assert (NET.category(city), NET.category(writer)) == ("noun.location", "noun.person")
    assert not NET.is_instance(NET.sense("city", "noun", 1))


def test_senses_stand_in_the_order_of_their_ranks():
    assert NET.first_sense("mouse", "noun") == NET.senses("mouse", "noun")[0] == NET.sense("mouse", "noun", 1)
    assert NET.category(NET.sense("mouse", "noun", 1)) == "noun.animal"
    assert NET.words(NET.sense("mouse", "noun", 4)) == ("mouse", "computer mouse")
    assert NET.name(NET.sense("person", "noun", 1)) == "person"


def test_markers_of_adjectives_are_gone():
    assert NET.words(NET.sense("asleep", "adjective", 1)) == ("asleep",)
    assert not any("(" in word for word in NET._lemmas_of("adjective").words)


def test_how_words_are_used():
    assert [NET.name(use) for use in NET.usage(NET.sense("ghetto blaster", "noun", 1))] == ["colloquialism"]
    assert "disparagement" in {NET.name(use) for use in NET.usage(NET.sense("whitey", "noun", 1))}
    assert NET.usage(NET.sense("dog", "noun", 1)) == ()


def test_unknown_words():
    assert NET.senses("qwertyuiop", "noun") == ()
    assert NET.first_sense("qwertyuiop", "noun") is None
    assert NET.lemma("qwertyuiop", "verb") is None
    assert NET.lemma("", "noun") is None
    assert NET.frequency("qwertyuiop", "noun") == 0
    with pytest.raises(PortrayalError, match="no noun 'qwertyuiop'"):
        NET.sense("qwertyuiop", "noun", 1)
    with pytest.raises(PortrayalError, match="Available: 1, 2, 3"):
        NET.sense("person", "noun", 4)
    with pytest.raises(PortrayalError):
        NET.sense("person", "noun", 0)


LEMMAS = {
    "noun": {
        "men": "man", "women": "woman", "children": "child", "geese": "goose", "skis": "ski", "buses": "bus",
        "knives": "knife", "feet": "foot", "sandwiches": "sandwich", "boxes": "box", "puppies": "puppy",
        "sheep": "sheep", "glasses": "glasses", "data": "data", "dogs": "dog", "dog": "dog",
        "hot dogs": "hot dog", "fire hydrants": "fire hydrant", "policemen": "policeman",
        "baseball players": "baseball player",
    },
    "verb": {
        "standing": "stand", "ran": "run", "lying": "lie", "taken": "take", "sat": "sit", "is": "be", "has": "have",
        "skiing": "ski", "parked": "park", "flies": "fly", "catches": "catch", "singing": "sing", "sitting": "sit",
        "saw": "see", "left": "leave", "feed": "feed", "ride": "ride",
    },
    "adjective": {"biggest": "big", "taller": "tall", "better": "good", "nicer": "nice", "red": "red"},
    "adverb": {"slowly": "slowly"},
}  # fmt: skip


@pytest.mark.parametrize("part_of_speech", LEMMAS)
def test_inflected_forms_have_their_lemma(part_of_speech):
    assert {form: NET.lemma(form, part_of_speech) for form in LEMMAS[part_of_speech]} == LEMMAS[
        part_of_speech
    ]


def test_phrases():
    phrases = dict(NET.phrases_starting("fire", "noun"))
    assert phrases["fire hydrant"] == ("fire", "hydrant")
    assert "fire" not in phrases
    assert "fireplace" not in phrases
    assert dict(NET.phrases_starting("athlete", "noun")) == {
        "athlete's foot": ("athlete", "'s", "foot"),
        "athlete's heart": ("athlete", "'s", "heart"),
    }
    assert list(NET.phrases_starting("qwertyuiop", "noun")) == []


def test_the_tables_are_what_the_files_of_wordnet_give(tmp_path):
    if not build.WORDNET_FOLDER.is_dir():
        cannot_run(f"WordNet's files are not at {build.WORDNET_FOLDER}")
    build.build(out=tmp_path)
    for name in ("wordnet.parquet", "exceptions.parquet"):
        assert pl.read_parquet(tmp_path / name).equals(pl.read_parquet(build.TABLES_FOLDER / name))


def test_a_folder_without_wordnet_is_named(tmp_path):
    with pytest.raises(InputError, match=r"data\.noun: expected a file of WordNet 3\.0"):
        build.build(tmp_path)
