"""Words that say that somebody is there, whoever it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from portrayal.lexicon.lexicon import load_lexicon
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.lexicon.wordnet.graph import wordnet

# A couple, a group, a crowd: people, unless it is said of what ("a couple of dogs").
_COLLECTIVE = frozenset(
    "couple couples crowd crowds family families team teams group groups audience band class trio duo".split()
)
# These may be animals ("a zebra and their young"), so they do not say that a person is there.
_ANYBODY = frozenset("they them their theirs themselves".split())
_PRONOUNS = frozenset("he she him her his hers himself herself everyone everybody someone somebody".split())
# Nouns whose first sense in WordNet is a person, and which in captions are mostly something else.
_RARELY_PEOPLE = frozenset(
    "batter cooker counter dresser scooter stroller cooler tender carrier cutter mixer toaster holder".split()
)
# A baby giraffe is no baby.
_YOUNG = frozenset(("baby", "babies", "young", "mother", "father", "adult", "male", "female", "kid"))


@cache
def person_words() -> frozenset[str]:
    """Single words for people, whatever their sense in WordNet."""
    named = {word for words in load_lexicon("gender").groups.values() for word in words}
    return frozenset(named | set(load_lexicon("person").neutral) | _PRONOUNS) - _COLLECTIVE - _ANYBODY


def is_person(word: Word) -> bool:
    """Whether a noun is a person by its first sense, or one of the words for people."""
    if word.part != "noun" or word.lemma in _RARELY_PEOPLE:
        return False
    if word.lemma in person_words():
        return True
    # Drivers and pilots are people, though WordNet does not put them under person.
    return word.synset is not None and wordnet().category(word.synset) == "noun.person"


def person_mentioned(tokens: Sequence[str], words: Sequence[Word]) -> str | None:
    """A word that says that somebody is there, given a caption's tokens and content words; None where there is none.

    >>> from portrayal.lexicon.tokens import tokenize
    >>> from portrayal.lexicon.wordnet.grammar import content_words
    >>> for caption in ("a couple on a beach", "a couple of dogs", "a skier", "a baby giraffe"):
    ...     tokens = tokenize(caption)
    ...     print(person_mentioned(tokens, content_words(tokens)))
    couple
    None
    skier
    None
    """
    for index, token in enumerate(tokens):
        if token in _COLLECTIVE:
            if tokens[index + 1 : index + 2] != ["of"]:
                return token
        elif token in person_words() and not (token in _YOUNG and _before_animal(index, words)):
            return token
    return next(
        (
            word.lemma
            for word in words
            if is_person(word) and not (word.lemma in _YOUNG and _before_animal(word.start, words))
        ),
        None,
    )


def _before_animal(index: int, words: Sequence[Word]) -> bool:
    """Whether the next noun is an animal: "a baby giraffe", "mother and young elephant" is not told."""
    following = next((word for word in words if word.start == index + 1), None)
    return (
        following is not None
        and following.part == "noun"
        and following.synset is not None
        and wordnet().category(following.synset) == "noun.animal"
        and not is_person(following)
    )
