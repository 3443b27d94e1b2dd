"""Lexicon files: the shipped ones are complete, and a user's own is validated."""

from __future__ import annotations

import pytest

from portrayal.errors import InputError, PortrayalError
from portrayal.lexicon import lexicon_for, load_lexicon, name_key, read_lexicon, shipped_lexicons

DIGEST_WITHOUT_NOT_NAMING = "ba67dcfb"


@pytest.mark.parametrize("lexicon", shipped_lexicons(), ids=lambda lexicon: lexicon.name)
def test_shipped_lexicons_have_a_source_and_a_licence(lexicon):
    assert lexicon.source
    assert lexicon.licence
    assert lexicon.version
    assert lexicon.note
    all_words = [word for words in lexicon.groups.values() for word in words]
    assert len(all_words) == len(set(all_words))
    if lexicon.before_person:
        also_naming = {word for words in lexicon.also_naming.values() for word in words}
        assert set(lexicon.before_person) <= set(all_words) | set(lexicon.mask_also) | also_naming


def test_defaults_by_attribute():
    assert {name: lexicon_for(name).name for name in ("gender", "race", "age")} == {
        "gender": "gender", "race": "race", "age": "age",
    }  # fmt: skip
    with pytest.raises(
        PortrayalError, match="No shipped lexicon names the groups of 'hair'; give one with --lexicon"
    ):
        lexicon_for("hair")


def test_a_users_own_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        'name = "mine"\n[groups]\nnurses = ["Nurse", "nurses"]\ndoctors = ["doctor"]\n[swap]\nnurse = "doctor"\n'
    )
    lexicon = load_lexicon(path)
    assert lexicon.groups == {"nurses": ("nurse", "nurses"), "doctors": ("doctor",)}
    assert (
        lexicon.label == f"mine@{lexicon.digest}"
    )  # the digest of the words distinguishes lists of the same name


def test_changed_words_change_the_digest(tmp_path):
    digests = set()
    for words in ('["a"]', '["b"]', '["a", "b"]'):
        path = tmp_path / "x.toml"
        path.write_text(f'name = "x"\n[groups]\ng = {words}\n')
        digests.add(read_lexicon(path).digest)
    assert len(digests) == 3


def test_phrases_that_name_nobody_are_part_of_the_digest(tmp_path):
    digests = {}
    for phrases in ("", 'not_naming = ["French fries"]', 'not_naming = ["french toast"]'):
        path = tmp_path / "x.toml"
        path.write_text(f'name = "x"\n{phrases}\n[groups]\ng = ["french"]\n')
        lexicon = read_lexicon(path)
        digests[lexicon.not_naming] = lexicon.digest
    assert list(digests) == [(), ("french fries",), ("french toast",)]
    assert len(set(digests.values())) == 3
    path.write_text('name = "x"\n[groups]\ng = ["french"]\n')
    assert read_lexicon(path).mask_label == f"x@{DIGEST_WITHOUT_NOT_NAMING}"


def test_words_that_masks_leave_are_part_of_the_digest_in_any_language(tmp_path):
    digests = set()
    for table in ("", '[also_naming]\nalt = ["rentner"]\n'):
        path = tmp_path / "x.toml"
        path.write_text(f'name = "x"\nlanguage = "de"\n[groups]\nalt = ["alt"]\n{table}')
        digests.add(read_lexicon(path).digest)
    assert len(digests) == 2


def test_a_word_listed_here_stays_in_its_group(tmp_path):
    """The list of ages has "adult" among the middle ones and "teen" among the young."""
    path = tmp_path / "x.toml"
    path.write_text(
        'name = "x"\nalso_naming = "age"\n[also_naming_as]\nmiddle = "old"\n'
        '[groups]\nyoung = ["kid", "adult"]\nold = ["teen"]\n'
    )
    lexicon = read_lexicon(path)
    assert "adult" not in lexicon.naming_words["old"]
    assert "teen" not in lexicon.naming_words["young"]
    assert "elderly" in lexicon.naming_words["old"]


BAD = {
    "not TOML": ("name = ", "expected TOML"),
    "no name": ('[groups]\na = ["x"]', "expected a name, found None"),
    "no groups": ('name = "x"', r"expected a table \[groups\] with one list of words per group, found none"),
    "a group that is no list": (
        'name = "x"\n[groups]\na = "man"',
        "expected group 'a' as a list of words, found 'man'",
    ),
    "an empty group": ('name = "x"\n[groups]\na = []', r"expected group 'a' as a list of words, found \[\]"),
    "a word that is none": ('name = "x"\n[groups]\na = [3]', "expected words in group 'a', found 3"),
    "a word in two groups": (
        'name = "x"\n[groups]\na = ["man"]\nb = ["Man"]',
        "expected each word in one group, found 'Man' in 'a' and 'b'",
    ),
    "a word that names a group and nobody": (
        'name = "x"\nnot_naming = ["Man"]\n[groups]\na = ["man"]',
        "expected each word in one group, found 'Man' in 'a' and 'not_naming'",
    ),
    "phrases that are no list": (
        'name = "x"\nnot_naming = "french fries"\n[groups]\na = ["french"]',
        "expected not_naming as a list of words, found 'french fries'",
    ),
    "a group that is not there": (
        'name = "x"\nalso_naming = "age"\n[also_naming_as]\nmiddle = "b"\n[groups]\na = ["x"]',
        r"expected a table \[also_naming_as\] of a listed group = one of a, found",
    ),
    "groups as lists": (
        'name = "x"\nalso_naming = "age"\n[also_naming_as]\nmiddle = ["a"]\n[groups]\na = ["x"]',
        r"expected a table \[also_naming_as\] of a listed group = one of a, found",
    ),
    "a listed group that is not there": (
        'name = "x"\nalso_naming = "age"\n[also_naming_as]\nmidle = "old"\n[groups]\nold = ["x"]',
        r"expected \[also_naming_as\] for young, middle, old, found 'midle'",
    ),
    "a list that names no group of the file": (
        'name = "x"\nalso_naming = "age"\n[groups]\nkid = ["kid"]\nadult = ["adult"]',
        r"expected \[also_naming_as\] that says which groups the words of young, middle, old name",
    ),
    "a list that nothing names": (
        'name = "x"\n[also_naming_as]\nmiddle = "a"\n[groups]\na = ["x"]',
        r"expected also_naming as the name of a list beside \[also_naming_as\], found None",
    ),
    "an attribute that is no text": (
        'name = "x"\nattribute = 3\n[groups]\na = ["x"]',
        "expected attribute as text",
    ),
    "unknown key": ('name = "x"\nwords = 1\n[groups]\na = ["x"]', "found 'words'"),
    "a swap that is none": (
        'name = "x"\n[groups]\na = ["x"]\n[swap]\nx = 3',
        "expected the counterpart of 'x' as a word or a list of words, found 3",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name, tmp_path):
    text, sentence = BAD[name]
    path = tmp_path / "x.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_lexicon(path)


def test_unknown_names_bring_suggestions():
    with pytest.raises(PortrayalError, match=r"Unknown lexicon 'gendr'\. Did you mean 'gender'\?"):
        load_lexicon("gendr")


@pytest.mark.parametrize("name", ["Gender", "GENDER", "sex", "perceived_gender"])
def test_every_alias_of_an_attribute_gives_its_lexicon(name):
    assert lexicon_for(name).name == "gender"


def test_shipped_lexicons_share_no_attribute_name():
    attribute_names = [
        name_key(name)
        for lexicon in shipped_lexicons()
        if lexicon.aliases
        for name in (lexicon.name, *lexicon.aliases)
    ]
    assert len(attribute_names) == len(set(attribute_names))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("language = 3", "expected language as a code such as 'en', found 3"),
        ('aliases = "sex"', "expected aliases as a list of names, found 'sex'"),
        ('aliases = [" "]', "expected names in aliases, found ' '"),
        ("group_aliases = 3", r"expected a table \[group_aliases\]"),
        ('group_aliases = { c = ["x"] }', r"expected \[group_aliases\] for a, b, found 'c'"),
        (
            'group_aliases = { a = ["x"], b = ["X"] }',
            "expected each alias for one group, found 'X' for 'a' and 'b'",
        ),
        ('group_aliases = { a = ["B"] }', "found 'B' for 'b' and 'a'"),
    ],
)
def test_aliases_are_checked(tmp_path, lines, message):
    path = tmp_path / "x.toml"
    path.write_text(f'name = "x"\n{lines}\n[groups]\na = ["one"]\nb = ["two"]\n')
    with pytest.raises(InputError, match=message):
        read_lexicon(path)


def test_a_digest_changes_with_what_mentions_depend_on(tmp_path):
    """Aliases are not searched in captions. English rules for mentions do not apply to other languages."""
    path = tmp_path / "x.toml"
    digests = []
    for lines in ("", 'language = "en"\naliases = ["y"]\ngroup_aliases = { a = ["z"] }', 'language = "de"'):
        path.write_text(f'name = "x"\n{lines}\n[groups]\na = ["one"]\n')
        digests.append(read_lexicon(path).digest)
    assert digests[0] == digests[1] != digests[2]
