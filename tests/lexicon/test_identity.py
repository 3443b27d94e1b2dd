"""Identity words on several axes: mentions of people, and words that only look like mentions."""

from __future__ import annotations

import tomllib
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.errors import PortrayalError
from portrayal.lexicon import Lexicon, MentionFinder, shipped_lexicons, tokenize
from portrayal.lexicon.identity import AXES, NORP, IdentityMention, IdentityWords, identity_words

WORDS = identity_words()

# For each axis, captions and the words in them that name people on that axis.
CASES: dict[str, dict[str, list[str]]] = {
    "gender": {
        "a man and two women": ["man", "women"],
        "the mans hat": ["mans"],
        "The Man's wife": ["man", "wife"],
        "a little boy and his mother": ["boy", "mother"],
        "she gives him her umbrella": [],  # pronouns are no part of the rule
        "a person on a bench": [],
        "a transgender activist and a drag queen": ["transgender", "drag queen"],
        "a king size bed and a queen bed": [],
        "the door of the men's room": [],
        "a mother elephant and its baby": [],
        "a mother and baby giraffe": [],
        "a male lion near a female zebra": [],
        "a male tennis player": ["male"],
        "a lady bug on a leaf": [],
        "a woman in a cowboy hat": ["woman"],
        "a cowboy rides a bull": ["cowboy"],
        "a gingerbread man and a snow man": [],
        "a man made lake": [],
        "flowers for mother's day": [],
        "the actor and the waiter": ["actor", "waiter"],  # as the list behind `error` has them
        "a fireman and a policewoman": ["fireman", "policewoman"],
        "girl scout cookies": [],
        "two girl scouts": ["girl scouts"],
        "a brownie and a tart": [],
    },
    "age": {
        "an old man": ["old"],
        "an old truck": [],
        "a young elephant": [],
        "a young asian woman": ["young"],
        "a young, bearded man": ["young"],
        "a little boy in a little house": ["little", "boy"],
        "a baby in a stroller": ["baby"],
        "a baby elephant": [],
        "an adult and a baby elephant": [],
        "a child and a baby elephant": ["child"],
        "baby carrots in a bowl": [],
        "a kid with a kid goat": ["kid"],
        "little league baseball": [],
        "the elderly": ["elderly"],
        "a middle-aged couple": ["middle-aged"],
        "a 5 year old boy": ["5 year old", "boy"],
        "a 100 year old church": [],
        "an older model car": [],
        "a teenager and two toddlers": ["teenager", "toddlers"],
        "a senior officer": [],
        "a senior citizen": ["senior citizen"],
        "tater tots": [],
        "a man and a woman": [],
        "a young football player": ["young"],
    },
    "ethnicity": {
        "an asian woman": ["asian"],
        "asian food": [],
        "two asians": ["asians"],
        "a man of african descent": ["african descent"],
        "an african elephant": [],
        "an african american man": ["african american"],
        "a black man in a white shirt": [],  # colours are left out
        "a black and white photo": [],
        "a caucasian hand": ["caucasian"],
        "a native american couple": ["native american"],
        "a native plant": [],
        "middle eastern men": ["middle eastern"],
        "a hawaiian shirt": [],
        "a hispanic girl": ["hispanic"],
        "a persian cat on a persian rug": [],
        "an oriental rug": [],
        "latin pop artist performs": [],
        "an american woman": [],
        "a jewish man": [],
        "a european city": [],
    },
    "nationality": {
        "a french chef": ["french"],
        "french fries and french toast": [],
        "a man with ski poles": [],
        "a woman has polish on her nails": [],
        "a polish woman": ["polish"],
        "two italians": ["italians"],
        "an italian restaurant": [],
        "a german shepherd": [],
        "a german tourist": ["german"],
        "the american flag": [],
        "an american football player": [],
        "american soldiers": ["american"],
        "an african american man": [],
        "a native american woman": [],
        "turkey and china on a plate": [],
        "a danish on a plate": [],
        "a danish cyclist": ["danish"],
        "indian food": [],
        "a young indian girl": ["indian"],
        "an english muffin": [],
        "swiss cheese": [],
        "a swiss army knife": [],
        "a sri lankan fisherman": ["sri lankan"],
        "greek salad": [],
        "a south korean singer": ["south korean"],
        "a foreign language": [],
        "it is for us": [],
    },
    "religion": {
        "a buddhist monk": ["buddhist"],
        "a buddhist temple": [],
        "the mormon temple": [],
        "four mormons": ["mormons"],
        "a catholic church": [],
        "a catholic priest": ["catholic"],
        "muslims at prayer": ["muslims"],
        "a muslim woman": ["muslim"],
        "an amish family": ["amish"],
        "an amish buggy": [],
        "orthodox jews": ["orthodox jews"],
        "a jewish holiday": [],
        "a christian dior store": [],
        "a christian man": ["christian"],
        "a nun and a priest": [],
        "western christian holiday": [],
        "roman catholic place of worship": [],
        "quaker oats": [],
        "a sikh man": ["sikh"],
    },
    "politics": {
        "a republican senator": ["republican"],
        "two republicans": ["republicans"],
        "a green field": [],
        "green party supporters": ["green party supporters"],
        "a conservative suit": [],
        "a conservative politician": ["conservative"],
        "democrats at a rally": ["democrats"],
        "nazi soldiers": ["nazi"],
        "a nazi flag": [],
        "the president and a senator": [],
        "obama supporters": ["obama supporters"],
        "a liberal arts college": [],
        "communist party members": ["communist"],
        "a feminist with a sign": ["feminist"],
        "confederate soldiers": ["confederate"],
        "a party with a tory": [],
        "progressive rock artist": [],
    },
}


def mentioned_words(caption: str, axis: str) -> list[str]:
    return [mention.word for mention in WORDS.find(tokenize(caption)) if mention.axis == axis]


@pytest.mark.parametrize(
    ("axis", "caption"), [(axis, caption) for axis in CASES for caption in CASES[axis]], ids=str
)
def test_words_that_name_people(axis, caption):
    assert mentioned_words(caption, axis) == CASES[axis][caption]


def test_positions_groups_and_axes():
    assert WORDS.find(tokenize("Two young girls")) == [
        IdentityMention("age", "young", "young", 1, 1),
        IdentityMention("gender", "girls", "female", 2, 1),
        IdentityMention("age", "girls", "young", 2, 1),
    ]
    assert WORDS.axes == AXES
    assert set(NORP) < set(AXES)


@pytest.mark.parametrize("axis", AXES)
def test_shipped_lists_are_complete_and_no_lexicon_of_an_attribute(axis):
    lexicon = WORDS.lexicons[axis]
    assert lexicon.attribute == axis
    assert all((lexicon.source, lexicon.licence, lexicon.version, lexicon.note))
    all_words = [word for words in lexicon.groups.values() for word in words]
    assert len(all_words) == len(set(all_words))
    assert set(lexicon.before_person) <= set(all_words)
    assert lexicon.name not in {shipped.name for shipped in shipped_lexicons()}
    assert lexicon.label in WORDS.label
    # A phrase that holds no listed word could never make a difference.
    listed_phrases = [" ".join(("", *tokenize(word), "")) for word in all_words]
    useless_phrases = [
        phrase
        for phrase in lexicon.not_naming
        if not any(word in " ".join(("", *tokenize(phrase), "")) for word in listed_phrases)
    ]
    assert useless_phrases == []


def test_lists_are_written_in_lower_case_and_without_repetition():
    folder = resources.files("portrayal.lexicon") / "words" / "identity"
    for file in folder.iterdir():
        document = tomllib.loads(file.read_text(encoding="utf-8"))
        lists = [
            *document.get("groups", {}).values(),
            *(document.get(key, []) for key in ("neutral", "not_naming")),
        ]
        for words in lists:
            assert words == [word.lower() for word in words]
            assert len(words) == len(set(words))


def test_a_single_list_agrees_with_a_mention_finder():
    """Without adjectives that need a person, both return the same mentions."""
    lexicon = Lexicon(
        "x",
        "x",
        {"a": ("red", "red hat", "hat stand"), "b": ("hat",)},
        not_naming=("red hat club", "top hat"),
    )
    words, finder = IdentityWords({"x": lexicon}), MentionFinder(lexicon)
    for caption in ("a red hat stand", "red hat club hat", "top hat stand", "hat red", "", "top red hat"):
        assert [mention.word for mention in words.find(tokenize(caption))] == [
            mention.word for mention in finder.find(caption)
        ]


TOKENS = st.sampled_from("a red hat club stand top old young lady bug man ,".split())


@given(st.lists(TOKENS, max_size=8))
def test_all_axes_at_once_agree_with_each_alone(tokens):
    lexicons = {
        "colour": Lexicon("c", "colour", {"red": ("red", "red hat")}, not_naming=("red hat club",)),
        "thing": Lexicon(
            "t", "thing", {"hat": ("hat", "hat stand"), "red": ("red",)}, not_naming=("top hat",)
        ),
    }
    joint_mentions = IdentityWords(lexicons).find(tokens)
    for axis, lexicon in lexicons.items():
        assert [mention for mention in joint_mentions if mention.axis == axis] == IdentityWords(
            {axis: lexicon}
        ).find(tokens)
    assert [mention.start for mention in joint_mentions] == sorted(
        mention.start for mention in joint_mentions
    )


@given(st.text())
def test_any_text_can_be_searched(text):
    tokens = tokenize(text)
    for mention in WORDS.find(tokens):
        assert " ".join(tokens[mention.start : mention.start + mention.length]) == mention.word
        assert mention.word in WORDS.lexicons[mention.axis].groups[mention.group]


def test_words_of_all_lists_say_what_a_person_is():
    tall_lexicon = Lexicon("tall", "height", {"tall": ("tall",)}, before_person=("tall",))
    words = identity_words([tall_lexicon])
    assert words.axes == (*AXES, "height")
    words_by_caption = {
        caption: [mention.word for mention in words.find(tokenize(caption))]
        for caption in ("a tall lady", "a tall lady bug")
    }
    assert words_by_caption == {"a tall lady": ["tall", "lady"], "a tall lady bug": []}
    assert words.find(tokenize("a tall tree")) == []


def test_a_phrase_of_a_list_does_not_block_the_other_lists():
    assert [(mention.axis, mention.word) for mention in WORDS.find(tokenize("a young english teacher"))] == [
        ("age", "young")
    ]


def test_own_lists_replace_an_axis(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\nattribute = "religion"\n[groups]\nmonks = ["monk"]\n')
    words = identity_words([path])
    assert words.axes == AXES
    assert [(mention.axis, mention.group) for mention in words.find(["a", "muslim", "monk"])] == [
        ("gender", "male"),
        ("religion", "monks"),
    ]
    assert words.label != WORDS.label
    assert identity_words() is identity_words()


def test_own_lists_need_an_axis_each():
    with pytest.raises(PortrayalError, match=r"'person' names no axis: it needs an attribute and a table"):
        identity_words(["person"])
    with pytest.raises(PortrayalError, match="'gender' and 'gender-broad' both name 'gender'"):
        identity_words(["gender", "gender-broad"])
