"""Words that say that somebody is there, whoever it is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from portrayal.lexicon.lexicon import load_lexicon
from portrayal.lexicon.non_mentions import Nobody, lists
from portrayal.lexicon.person_labels import words_for_people
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.lexicon.wordnet.graph import wordnet

# A couple, a group, a crowd: people, unless it is said of what ("a couple of dogs").
_COLLECTIVE = frozenset(
    "couple couples crowd crowds family families team teams group groups audience band class trio duo".split()
)
# These may be animals ("a zebra and their young"), so they do not say that a person is there.
_ANYBODY = frozenset("they them their theirs themselves".split())
_PRONOUNS = frozenset("he she him her his hers himself herself everyone everybody someone somebody".split())


@cache
def person_words() -> frozenset[str]:
    """Single words for people, whatever their sense in WordNet."""
    named = {word for words in load_lexicon("gender").naming.values() for word in words}
    people = named | set(load_lexicon("person").neutral) | _PRONOUNS
    return frozenset(people) - _COLLECTIVE - _ANYBODY - lists().never_people


def is_person(word: Word) -> bool:
    """Whether a noun is a person by its first sense, or one of the words for people."""
    if word.part != "noun" or word.lemma in lists().rarely_people or word.lemma in lists().never_people:
        return False
    if word.lemma in person_words():
        return True
    # Drivers and pilots are people, though WordNet does not put them under person.
    return word.synset is not None and wordnet().category(word.synset) == "noun.person"


def person_mentioned(tokens: Sequence[str], words: Sequence[Word]) -> str | None:
    """A word that says that somebody is there, given a caption's tokens and content words; None where there is none.

    What names nobody is told as it is for every metric (`Nobody`).

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
    nobody = Nobody(tokens)
    for index, token in enumerate(tokens):
        if token in _COLLECTIVE:
            if tokens[index + 1 : index + 2] != ["of"] and not nobody.at(index):
                return token
        elif token in person_words() and not nobody.at(index):
            return token
    return next(
        (word.lemma for word in words if is_person(word) and not nobody.at(word.start, word.length)), None
    )


def mentions_of_people(tokens: Sequence[str]) -> int:
    """How often the tokens of a caption name somebody by a noun: "male player" does once, "cowboy hat" never.

    >>> from portrayal.lexicon.tokens import tokenize
    >>> [mentions_of_people(tokenize(text)) for text in ("a man and two male players", "she wears a cowboy hat")]
    [2, 0]
    """
    nobody, count, end = Nobody(tokens), 0, -1
    for match in _nouns().find(tokens):
        if not nobody.at(match.start, match.length):
            count += match.start != end  # the next word says more of the same person
            end = match.start + match.length
    return count


@cache
def _nouns() -> PhraseTable:
    return PhraseTable((word, "") for word in words_for_people() - lists().pronouns)
