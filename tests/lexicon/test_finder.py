"""Finding and masking group words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portrayal.lexicon import Lexicon, MentionFinder, load_lexicon, tokenize

GENDER = MentionFinder(load_lexicon("gender"))
RACE = MentionFinder(load_lexicon("race"))
AGE = MentionFinder(load_lexicon("age"))

NAMED = {
    "a man on a horse": ("male",),
    "A WOMAN on a horse": ("female",),
    "a woman and her son": ("male", "female"),
    "a person on a horse": (),
    "a human mans a mantis booth": (),
    "the man's dog": ("male",),
    "a man-made lake": (),
    "snowman and manhole": (),
    "he said hello": ("male",),
    "the ladies' room": (),
    "": (),
}


@pytest.mark.parametrize("caption", NAMED)
def test_groups_named(caption):
    assert GENDER.groups(caption) == NAMED[caption]


@pytest.mark.parametrize(
    ("caption", "groups"),
    [
        ("a black man", ("dark",)),
        ("a young black woman", ("dark",)),
        ("a black young woman", ("dark",)),
        ("a black dog and a man", ()),
        ("a black and white photo of a man", ()),
        ("a man in a white shirt", ()),
        ("an african american man", ("dark",)),
        ("an african elephant", ()),
        ("a caucasian hiker", ("light",)),
        ("a white woman and a black woman", ("light", "dark")),
        ("white people", ("light",)),
        ("a dark-skinned man and a fair skinned woman", ("light", "dark")),
        ("a brown-skinned basketball", ()),
        ("dark skinned grapes", ()),
        ("an african-american man", ("dark",)),
    ],
)
def test_colours_name_people_only_before_a_person(caption, groups):
    assert RACE.groups(caption) == groups


@pytest.mark.parametrize(
    ("caption", "groups"),
    [
        ("an old man", ("old",)),
        ("an old truck", ()),
        ("a young man", ("young",)),
        ("a little house", ()),
        ("a little girl", ("young",)),
        ("a man", ()),
        ("an elderly couple", ("old",)),
        ("a child and an old woman", ("young", "old")),
        # words that the published list lacks: they name a group, and a mask leaves them
        ("an older man", ("old",)),
        ("a middle aged man with a toddler", ("young", "old")),
        ("an older building", ()),
        ("a 5 year old girl", ("young",)),
        ("a 70 year old woman", ("old",)),
        ("a 5 yr old boy", ("young",)),
        ("a 5-6 year old boy", ("young",)),
        ("a 3 month old baby", ("young",)),
        ("an older boy with the oldest girl", ("young",)),
        ("a two year old horse", ()),
        ("a 2-year-old dog", ()),
        ("an old doll", ()),
    ],
)
def test_age_words(caption, groups):
    assert AGE.groups(caption) == groups


def test_mentions_have_their_character_offsets():
    caption = "The Man's wife"
    assert [(m.group, m.word, caption[m.start : m.end]) for m in GENDER.find(caption)] == [
        ("male", "man", "Man"),
        ("female", "wife", "wife"),
    ]


def test_offsets_refer_to_the_original_text():
    caption = "İstanbul: a man"  # the first letter is longer in lower case
    (mention,) = GENDER.find(caption)
    assert caption[mention.start : mention.end] == "man"


def test_phrases_match_longest_first():
    lexicon = Lexicon("x", "x", {"a": ("fire", "fire fighter"), "b": ("fighter",)}, before_person=())
    finder = MentionFinder(lexicon)
    assert [(m.group, m.word) for m in finder.find("a fire fighter, a fighter")] == [
        ("a", "fire fighter"),
        ("b", "fighter"),
    ]
    assert finder.mask("A fire  fighter, a fighter", "X") == "A X, a X"


NOT_NAMING = Lexicon(
    "x",
    "x",
    {"french": ("french", "frenchman"), "female": ("lady", "young lady"), "old": ("old",)},
    neutral=("man",),
    before_person=("old",),
    not_naming=("french fries", "French toast", "lady bug", "black-and-white french film", "man servant"),
)


@pytest.mark.parametrize(
    ("caption", "words"),
    [
        ("a french cook eats French fries", ["french"]),
        ("french toast", []),
        ("a frenchman with french fries", ["frenchman"]),
        ("a french fry", ["french"]),  # not listed
        ("a young lady and a lady bug", ["young lady"]),
        ("a young lady bug", ["young lady"]),  # what begins first has the token
        ("a black-and-white french film", []),
        ("an old lady", ["old", "lady"]),
        ("an old lady bug", []),  # a word that names nobody is no person for another word
        ("an old man", ["old"]),
        ("an old man servant", ["old"]),  # man is a word for anybody here, and stays one
        ("french, fries", ["french"]),
    ],
)
def test_phrases_that_name_nobody(caption, words):
    assert [mention.word for mention in MentionFinder(NOT_NAMING).find(caption)] == words


def test_masks_replace_words_in_phrases_that_name_nobody():
    assert MentionFinder(NOT_NAMING).mask("French fries", "X") == "X fries"
    assert MentionFinder(NOT_NAMING).mask_words(["french", "fries"], None) == ["fries"]


@pytest.mark.parametrize(
    ("caption", "masked"),
    [
        ("A man and his dog.", "A genderword and genderword dog."),
        ("The  Woman's hat", "The  genderword's hat"),
        ("a person", "a person"),
        ("", ""),
    ],
)
def test_masking_leaves_other_text_unchanged(caption, masked):
    assert GENDER.mask(caption, "genderword") == masked


def test_masking_replaces_only_the_published_words():
    age = "child children young baby babies kid kids little boy boys girl girls old elderly man men woman women lady"
    age += (
        " ladies gentleman gentlemen person people guy guys teenager teenagers teen teens adult adults elder"
    )
    race = "white caucasian black african asian latino latina latinx hispanic native indigenous"
    for finder, words in ((AGE, age), (RACE, race)):
        masked_words = {w for group in finder.lexicon.groups.values() for w in group} | set(
            finder.lexicon.mask_also
        )
        assert masked_words == set(words.split())
    assert AGE.mask("an old truck", "ageword") == "an ageword truck"  # published masks hide the word anywhere


def test_the_gender_list_equals_the_published_list():
    lexicon = load_lexicon("gender")
    male = "man men male father gentleman gentlemen boy boys uncle husband actor prince waiter son he his him himself"
    male += " brother brothers guy guys emperor emperors dude dudes cowboy"
    female = "woman women female lady ladies mother girl girls aunt wife actress princess waitress daughter she her"
    female += " hers herself sister sisters queen queens pregnant"
    assert lexicon.groups == {"male": tuple(male.split()), "female": tuple(female.split())}


WORDS = st.sampled_from("a man Woman his her hers dog dogs sits men's boy's cat's an . , ' - I'm".split())


@given(st.lists(WORDS).map(" ".join))
def test_masking_is_complete_idempotent_and_token_wise(caption):
    masked = GENDER.mask(caption, "genderword")
    assert GENDER.groups(masked) == ()
    assert GENDER.mask(masked, "genderword") == masked
    masked_words = {word for words in GENDER.lexicon.groups.values() for word in words}
    assert tokenize(masked) == [
        "genderword" if token in masked_words else token for token in tokenize(caption)
    ]


@given(st.text())
def test_any_text_can_be_searched_and_masked(text):
    for finder in (GENDER, RACE, AGE):
        finder.mask(text, "x")
        for mention in finder.find(text):
            assert text[mention.start : mention.end].lower() == mention.word


def test_a_broader_list_finds_all_that_the_default_finds():
    default, broad = load_lexicon("gender"), load_lexicon("gender-broad")
    for group, words in default.groups.items():
        assert set(words) <= set(broad.groups[group])
