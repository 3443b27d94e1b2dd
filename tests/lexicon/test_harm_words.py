"""The word lists about harm: sound data, what the rules find, and a user's own files."""

from __future__ import annotations

import json
import pickle
import tomllib
from pathlib import Path

import pytest

import portrayal.lexicon.harms as harms
from portrayal.errors import InputError, PortrayalError
from portrayal.lexicon import tokenize
from portrayal.lexicon.harms import (
    DemeaningLevels,
    adjectives_as_nouns,
    demeaning_words,
    framing_words,
    in_context,
    not_imageable,
    taxonomy,
)
from portrayal.lexicon.wordnet.grammar import content_words
from tests.conftest import cannot_run

FOLDER = Path(harms.__file__).parent.parent / "words" / "harms"
FILES = sorted(FOLDER.glob("*.toml"))
LOADERS = {
    "adjective_as_noun": adjectives_as_nouns,
    "demeaning": demeaning_words,
    "framing": framing_words,
    "in_context": in_context,
    "not_imageable": not_imageable,
    "taxonomy": taxonomy,
}
WORDNET = Path("/usr/share/wordnet")
INDEX = {"noun": "noun", "adjective": "adj", "verb": "verb", "adverb": "adv"}


@pytest.fixture(scope="session")
def senses() -> dict[tuple[str, str], int]:
    """How many senses WordNet has of a word as a part of speech, from its own files."""
    if not WORDNET.is_dir():
        cannot_run(f"WordNet's files are not at {WORDNET}")
    counts = {}
    for part_of_speech, extension in INDEX.items():
        for line in (WORDNET / f"index.{extension}").read_text(encoding="latin-1").splitlines():
            if not line.startswith(" "):
                word, _, count, *_ = line.split()
                counts[word.replace("_", " "), part_of_speech] = int(count)
    return counts


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_files_have_a_source_and_a_licence(file):
    document = tomllib.loads(file.read_text(encoding="utf-8"))
    assert document["licence"] == "Apache-2.0"
    assert document["source"]
    assert document["version"]
    assert document["note"]
    loaded = LOADERS[file.stem]()
    assert loaded.label.startswith(f"{document['name']}@{document['version']}@")
    assert LOADERS[file.stem]() is loaded  # read once
    assert LOADERS[file.stem](file).label == loaded.label  # the same list by its path


def test_there_is_a_loader_for_every_file():
    assert {file.stem for file in FILES} == set(LOADERS)


def entries():
    document = tomllib.loads((FOLDER / "demeaning.toml").read_text(encoding="utf-8"))
    for word, senses in document["words"].items():
        for entry in senses if isinstance(senses, list) else [senses]:
            yield word, entry


def test_listed_senses_are_those_of_wordnet(senses):
    for word, entry in entries():
        assert entry["senses"] == senses.get((word, entry["part"]), 0), word
        assert all(1 <= number <= entry["senses"] for number in entry["listed"]), word
        if entry["senses"] == 0:
            assert not any((word, part_of_speech) in senses for part_of_speech in INDEX), word


def test_words_that_are_too_common_are_in_wordnet(senses):
    for word in demeaning_words().too_common:
        assert any((word, part_of_speech) in senses for part_of_speech in INDEX), word


def test_the_number_of_words():
    words = {word for word, _ in entries()}
    assert 300 <= len(words) <= 600
    assert words.isdisjoint(demeaning_words().too_common)


SENSES = {
    ("idiot", "noun"): (True, True, True),  # one sense, and it demeans
    ("whore", "noun"): (True, True, True),
    ("pathetic", "adjective"): (True, True, True),  # three senses, all of pity or contempt
    ("stupid", "adjective"): (False, True, True),  # dazed is a sense too
    ("ugly", "adjective"): (False, True, True),
    ("dumb", "adjective"): (False, True, True),
    ("fat", "adjective"): (False, True, True),
    ("bum", "noun"): (False, True, True),
    ("bitch", "noun"): (False, False, True),  # WordNet's first is a difficulty
    ("gook", "noun"): (False, False, True),
    ("stupid", "noun"): (True, True, True),  # each part of speech by itself
    ("crackhead", "noun"): (True, True, True),  # WordNet lacks it
    ("crackheads", "noun"): (True, True, True),  # and so has no lemma for its plural
}
UNLISTED = [
    ("stupid", "verb"),
    ("dog", "noun"),
    ("cow", "noun"),
    ("man", "noun"),
    ("fat", "noun"),
    ("crazy", "adjective"),
]


@pytest.mark.parametrize("case", SENSES, ids=" ".join)
def test_senses(case):
    assert demeaning_words().senses(*case) == DemeaningLevels(*SENSES[case])


@pytest.mark.parametrize("case", UNLISTED, ids=" ".join)
def test_words_that_are_not_listed(case):
    assert demeaning_words().senses(*case) is None


DEMEANING = {
    "a stupid man and two idiots": ["stupid", "idiot"],
    "The retarded boy": ["retarded"],  # grammar may take it for a verb
    "a crippled person in a wheelchair": ["crippled"],
    "some trailer trash": ["trailer trash"],  # WordNet lacks the phrase
    "you son of a bitch": ["son of a bitch"],  # and no bitch besides
    "two old farts on a bench": ["old fart"],
    "a dog, a pig and a cow": [],
    "a white trash can": [],
    "a lush green field": [],
    "": [],
}


@pytest.mark.parametrize("caption", DEMEANING)
def test_demeaning_words_of_a_caption(caption):
    tokens = tokenize(caption)
    assert [word for word, _ in demeaning_words().find(tokens, content_words(tokens))] == DEMEANING[caption]


NOUNS = {
    # an adjective that stands as a noun
    "an elderly in a wheelchair": ["an elderly"],
    "a black in the suit": ["a black"],
    "a photo of a black wearing a hat": ["a black"],
    "two blacks on a bench": ["blacks"],
    "a group of blacks and a cop": ["blacks"],
    "orientals eating rice": ["orientals"],
    "helping the elderly": ["the elderly"],
    "the elderly and disabled are dancing": ["the elderly"],
    "food for the homeless.": ["the homeless"],
    "a homeless sleeping on a bench": ["a homeless"],
    "two elderly with canes": ["two elderly"],
    "a group of elderly on a bus": ["elderly"],
    "a young asian is smiling": ["a young asian"],
    "an asian who sings": ["an asian"],
    "a transgender at a parade": ["a transgender"],
    "gays in a parade": ["gays"],
    "the mentally ill in a ward": ["the mentally ill"],
    "natives dancing around a fire": ["natives"],
    # an adjective that describes something
    "an elderly man": [],
    "the elderly woman": [],
    "an elderly looking man": [],
    "an elderly and frail man": [],
    "an elderly, bearded man": [],
    "a disabled parking space": [],
    "a gay pride parade": [],
    "an asian marching band": [],
    "an asian and an african american child": [],
    "a chinese dance": [],
    "homeless people on a street": [],
    # a colour
    "a black and white photo": [],
    "a white and a black dog": [],
    "a white swimming pool": [],
    "the white of her dress": [],
    "the whites of eggs": [],
    "whipped egg whites in a bowl": [],
    "dressed in a black": [],
    "dressed in black": [],
    "players dressed in whites": [],
    "a woman in tennis whites": [],
    "a sailor in navy whites": [],
    "blues and whites in a painting": [],
    "a dog, one black, one white": [],
    "a black with white spots": [],
    "a black laying on a car": [],  # a cat, with the word left out
    "the black on the wall": [],  # a person and a colour are not distinguishable
    "": [],
}


@pytest.mark.parametrize("caption", NOUNS)
def test_adjectives_as_nouns(caption):
    assert [phrase for _, phrase in adjectives_as_nouns().find(tokenize(caption))] == NOUNS[caption]


def test_the_position_of_an_adjective_that_is_a_noun():
    tokens = tokenize("Two men, an old black in a suit and some gays")
    assert adjectives_as_nouns().find(tokens) == [(3, "an old black"), (11, "gays")]
    assert tokens[3:6] == ["an", "old", "black"]


def test_every_pair_has_a_reason_and_words():
    pairs = in_context()
    assert all(pair.why[-1] in ".?" and pair.words and pair.attributes and pair.groups for pair in pairs)
    for word in ("monkey", "exotic", "thug", "bossy", "frail", "terrorist"):
        assert any(word in pair.words for pair in pairs), word
    unless_seen = {pair.unless_seen for pair in pairs if pair.words & {"monkey", "pig"}}
    assert unless_seen == {True}


def words_about(**person):
    return {word for pair in in_context() if pair.applies_to(person) for word in pair.words}


def test_pairs_apply_to_people_of_their_groups():
    assert "monkey" in words_about(race="Dark")  # as a study spells it
    assert "monkey" in words_about(skin_tone=" dark ")
    assert "monkey" not in words_about(race="light")
    assert "monkey" not in words_about(hair="dark")
    assert {"bossy", "exotic"} <= words_about(gender="female", race="asian")
    assert "bossy" not in words_about(gender="male", race="female")
    assert "vermin" in words_about(hair="blond")  # of anybody
    assert words_about() == set()  # of nobody, where no group is known


def test_words_that_are_not_imageable():
    words = not_imageable()
    assert [words.kind(word) for word in ("beautiful", "happy", "doctor", "wife", "think")] == list(words)
    assert words.kind("tall") is None
    assert words.kind("doctor", "noun") == "occupation"
    assert words.kind("doctor", "verb") is None
    assert len(words) == 5
    assert "happy" in words["mood"]


def test_no_word_is_of_two_kinds():
    words = not_imageable()
    words_with_part = [
        (word, words.parts[kind]) for kind, words_of_kind in words.items() for word in words_of_kind
    ]
    assert len(words_with_part) == len(set(words_with_part))


def test_framing_words_contain_no_objects():
    assert {"picture", "background", "group", "couple", "be", "depict"} <= framing_words()
    assert framing_words().isdisjoint({"dog", "man", "can", "table", "run"})


def test_objects_of_the_taxonomy_are_those_of_coco(shared):
    categories = json.loads((shared / "coco" / "categories.json").read_text())
    assert taxonomy().objects == {category["name"]: category["supercategory"] for category in categories}


def test_the_taxonomy_has_the_categories_of_visual_verbnet(shared):
    actions = json.loads((shared / "lexicons" / "visual_verbnet.json").read_text())["visual_actions"]
    relations = taxonomy().relations
    assert set(relations.values()) == {action["category"] for action in actions}
    single_words = [action for action in actions if "_" not in action["name"]]
    same_category = [action for action in single_words if relations.get(action["name"]) == action["category"]]
    assert (
        len(same_category) >= len(single_words) - 2
    )  # captions lay and bend their own body more often than a thing


def test_lists_are_shared_between_processes():
    for load in LOADERS.values():
        assert pickle.loads(pickle.dumps(load())).label == load().label


OWN_FILES = {
    "demeaning": '[words]\nFoo = { part = "noun", listed = [2], senses = 2 }',
    "in_context": '[[pairs]]\nattribute = ["Team"]\ngroups = ["Red"]\nwords = ["Slow"]',
    "adjective_as_noun": 'plural = ["reds"]',
    "not_imageable": '[kinds]\nguess = ["late"]',
    "framing": '[nouns]\npicture = ["sketch"]',
    "taxonomy": '[objects]\na = ["x"]\n[attributes]\nb = ["y"]\n[relations]\nc = ["z"]',
}


@pytest.fixture
def load_own(tmp_path):
    def load(kind: str, text: str):
        path = tmp_path / f"{kind}.toml"
        path.write_text(text, encoding="utf-8")
        return LOADERS[kind](path)

    return load


def test_a_users_own_lists(load_own):
    documents = {kind: f'name = "mine"\n{body}' for kind, body in OWN_FILES.items()}
    assert load_own("demeaning", documents["demeaning"]).senses("foo", "noun") == DemeaningLevels(
        False, False, True
    )
    (pair,) = load_own("in_context", documents["in_context"])
    assert pair.applies_to({"team": "RED"})
    assert pair.words == {"slow"}
    assert not pair.unless_seen
    assert load_own("adjective_as_noun", documents["adjective_as_noun"]).find(["two", "reds"]) == [
        (1, "reds")
    ]
    assert load_own("not_imageable", documents["not_imageable"]).kind("late", "noun") == "guess"
    assert load_own("framing", documents["framing"]) == {"sketch"}
    assert load_own("taxonomy", documents["taxonomy"]).relations == {"z": "c"}
    for kind in LOADERS:
        label = load_own(kind, documents[kind]).label
        assert label.startswith("mine@")
        assert label != LOADERS[kind]().label


def test_labels_change_with_the_words(load_own):
    first, second = (load_own("framing", f'name = "x"\n[nouns]\na = ["{word}"]').label for word in ("b", "c"))
    assert first != second


BAD = {
    "not TOML": ("framing", "name = ", "expected TOML"),
    "no name": ("framing", '[nouns]\na = ["b"]', "expected a name, found None"),
    "unknown key": ("framing", 'name = "x"\nadverbs = 1', "expected the keys .*, found 'adverbs'"),
    "no words": (
        "framing",
        'name = "x"',
        r"expected a table \[nouns\] or \[verbs\] of lists of words, found none",
    ),
    "no list": (
        "framing",
        'name = "x"\n[nouns]\na = "b"',
        r"expected 'a' in \[nouns\] as a list of words, found 'b'",
    ),
    "no table": ("framing", 'name = "x"\nnouns = 3', r"expected a table \[nouns\], found 3"),
    "no word": ("framing", 'name = "x"\n[nouns]\na = [3]', r"expected words in 'a' in \[nouns\], found 3"),
    "no senses": ("demeaning", 'name = "x"\n[words]\na = "b"', "expected 'a' as { part = .*, found 'b'"),
    "a sense too many": (
        "demeaning",
        'name = "x"\n[words]\na = { part = "noun", listed = [3], senses = 2 }',
        "expected 'a' as { part",
    ),
    "a word without senses that does not always count": (
        "demeaning",
        'name = "x"\n[words]\na = { part = "noun", listed = [], senses = 0 }',
        "expected 'a' as { part",
    ),
    "no part of speech": (
        "demeaning",
        'name = "x"\n[words]\na = { part = "thing", listed = [1], senses = 1 }',
        "expected 'a' as { part",
    ),
    "listed and too common": (
        "demeaning",
        'name = "x"\ntoo_common = ["a"]\n[words]\na = { part = "noun", listed = [1], senses = 1 }',
        "expected words either listed or too common, found 'a' in both",
    ),
    "a part twice": (
        "demeaning",
        'name = "x"\n[words]\na = [{ part = "noun", listed = [1], senses = 1 }, '
        '{ part = "noun", listed = [1], senses = 1 }]',
        "expected each part of speech of 'a' once, found noun twice",
    ),
    "no demeaning words": ("demeaning", 'name = "x"', r"expected a table \[words\]"),
    "no pairs": ("in_context", 'name = "x"', r"expected a list \[\[pairs\]\], found None"),
    "a pair without groups": (
        "in_context",
        'name = "x"\n[[pairs]]\nattribute = ["a"]\nwords = ["b"]',
        "expected groups of pair 1 as a list of words, found None",
    ),
    "a pair that is none": (
        "in_context",
        'name = "x"\n[[pairs]]\ncolour = "a"',
        "expected pair 1 with attribute, groups, words, unless_seen and why",
    ),
    "a pair with a doubtful switch": (
        "in_context",
        'name = "x"\n[[pairs]]\nattribute = ["a"]\ngroups = ["b"]\nwords = ["c"]\nunless_seen = "no"',
        "expected pair 1 with unless_seen as true or false",
    ),
    "no adjectives": (
        "adjective_as_noun",
        'name = "x"\ncolours = ["red"]',
        "expected lists of words: singular, plural or the",
    ),
    "a kind of no part": (
        "not_imageable",
        'name = "x"\n[kinds]\na = ["b"]\n[parts]\na = "thing"',
        r"expected \[parts\] with one of noun, verb, adjective, adverb for a kind, found a = 'thing'",
    ),
    "no kinds": (
        "not_imageable",
        'name = "x"',
        r"expected a table \[kinds\] with one list of words per kind, found none",
    ),
    "two categories": (
        "taxonomy",
        'name = "x"\n[objects]\na = ["x"]\nb = ["X"]\n[attributes]\na = ["y"]\n[relations]\na = ["z"]',
        r"expected each word of \[objects\] in one category, found 'x' in 'a' and 'b'",
    ),
    "half a taxonomy": (
        "taxonomy",
        'name = "x"\n[objects]\na = ["x"]',
        r"expected a table \[attributes\] with one list of words per category, found none",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name, load_own):
    kind, text, sentence = BAD[name]
    with pytest.raises(InputError, match=sentence):
        load_own(kind, text)


def test_all_problems_are_reported_at_once(load_own):
    with pytest.raises(InputError) as raised:
        load_own("taxonomy", 'name = "x"\n[objects]\na = "x"\n[attributes]\nb = [1]\n[relations]\nc = ["z"]')
    assert len(raised.value.problems) == 4  # two lists, and two tables that have no word left


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(PortrayalError, match="There is no file"):
        framing_words(tmp_path / "nowhere.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="expected UTF-8 text"):
        framing_words(tmp_path / "bytes.toml")
