"""Words that mention a person of any group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from portrayal.lexicon.lexicon import load_lexicon
from portrayal.lexicon.non_mentions import NonMentions, non_mention_words
from portrayal.lexicon.person_labels import person_terms
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.lexicon.wordnet.graph import wordnet

# Collective nouns name people unless "of" follows ("a couple of dogs").
_COLLECTIVES = frozenset(
    "couple couples crowd crowds family families team teams group groups audience band class trio duo".split()
)
# These pronouns may refer to animals ("a zebra and their young"), so they do not mention a person.
_PEOPLE_OR_ANIMALS = frozenset("they them their theirs themselves".split())
_PRONOUNS = frozenset("he she him her his hers himself herself everyone everybody someone somebody".split())


@cache
def person_words() -> frozenset[str]:
    """Single words for people, independent of their sense in WordNet."""
    named = {word for words in load_lexicon("gender").naming_words.values() for word in words}
    people = named | set(load_lexicon("person").neutral) | _PRONOUNS
    return frozenset(people) - _COLLECTIVES - _PEOPLE_OR_ANIMALS - non_mention_words().never_people


def is_person(word: Word) -> bool:
    """Whether a noun is one of the words for people, or a person in its first WordNet sense."""
    if (
        word.pos != "noun"
        or word.lemma in non_mention_words().rarely_people
        or word.lemma in non_mention_words().never_people
    ):
        return False
    if word.lemma in person_words():
        return True
    # By category, because WordNet does not list drivers and pilots as hyponyms of person.
    return word.synset is not None and wordnet().category(word.synset) == "noun.person"


def first_person_mention(tokens: Sequence[str], words: Sequence[Word]) -> str | None:
    """The first word that mentions a person, given a caption's tokens and content words; None if there is none.

    Words that name nobody are left out, as in all metrics (`NonMentions`).

    >>> from portrayal.lexicon.tokens import tokenize
    >>> from portrayal.lexicon.wordnet.grammar import content_words
    >>> for caption in ("a couple on a beach", "a couple of dogs", "a skier", "a baby giraffe"):
    ...     tokens = tokenize(caption)
    ...     print(first_person_mention(tokens, content_words(tokens)))
    couple
    None
    skier
    None
    """
    non_mentions = NonMentions(tokens)
    for index, token in enumerate(tokens):
        if token in _COLLECTIVES:
            if tokens[index + 1 : index + 2] != ["of"] and not non_mentions.covers(index):
                return token
        elif token in person_words() and not non_mentions.covers(index):
            return token
    return next(
        (
            word.lemma
            for word in words
            if is_person(word) and not non_mentions.covers(word.start, word.length)
        ),
        None,
    )


def count_person_mentions(tokens: Sequence[str]) -> int:
    """Count the nouns that mention a person: one in "male player", none in "cowboy hat".

    >>> from portrayal.lexicon.tokens import tokenize
    >>> [count_person_mentions(tokenize(text)) for text in ("a man and two male players", "she wears a cowboy hat")]
    [2, 0]
    """
    non_mentions, count, end = NonMentions(tokens), 0, -1
    for match in _noun_table().find(tokens):
        if not non_mentions.covers(match.start, match.length):
            count += match.start != end  # an adjacent match belongs to the same person
            end = match.start + match.length
    return count


@cache
def _noun_table() -> PhraseTable:
    return PhraseTable((word, "") for word in person_terms() - non_mention_words().pronouns)
