"""Find the person that a caption is about, if it is about one person."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from portrayal.lexicon import Mention, tokenize
from portrayal.lexicon.people import is_person, person_words
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.vl_bias.concept_forms import PRONOUNS, category, is_plural, word_list

MAX_COUNT_DISTANCE = 3  # tokens from a number to its noun: "two very young children"
POSSESSIVE = frozenset(("'s", "’s", "'", "’", "-"))


class PersonSpan(NamedTuple):
    """The first and the last token of the words for a person: "female tennis player"."""

    start: int
    end: int


def several_people(caption: str, mentions: Sequence[Mention]) -> bool:
    """Whether a caption counts people, names a group in the plural, or names it twice ("a boy with his father")."""
    named = [mention for mention in mentions if mention.word not in PRONOUNS]
    apart = any(len(tokenize(caption[first.end : second.start])) > 1 for first, second in pairwise(named))
    if apart or any(is_plural(mention.word) for mention in named):
        return True
    tokens = tokenize(caption)
    for index, token in enumerate(tokens):
        if token in word_list("pairs") and tokens[index + 1 : index + 2] != ["of"]:
            return True
        if token in word_list("numbers") and _plural_people() & {
            *tokens[index + 1 : index + 1 + MAX_COUNT_DISTANCE]
        }:
            return True
    return False


def only_person(tokens: Sequence[str], content: Sequence[Word], named: Sequence[int]) -> PersonSpan | None:
    """The only person that the tokens at the indices `named` mention; None if there is none, or several.

    A depicted person (a statue, a poster) does not count, nor does a person after an animal ("a dog by a man running").
    """
    span_by_end: dict[int, PersonSpan] = {}
    for start in named:
        if tokens[start] not in PRONOUNS:
            person = _person_span(tokens, content, start)
            if person is None:
                return None
            span_by_end[person.end] = min(person, span_by_end.get(person.end, person))
    if len(span_by_end) != 1:
        return None
    (person,) = span_by_end.values()
    before = tokens[: person.start]
    depicted = bool(word_list("depictions") & {*before})
    counted = bool(word_list("numbers") & {*before[-MAX_COUNT_DISTANCE:]})
    animal = any(is_animal(word) for word in content if word.start < person.start)
    return None if depicted or counted or animal else person


def subject(tokens: Sequence[str], content: Sequence[Word]) -> PersonSpan | None:
    """The person that a caption begins with, if it mentions no other: "A tired farmer on his tractor"."""
    people = [word for word in content if is_person(word) and tokens[word.start] not in PRONOUNS]
    if len(people) != 1:
        return None
    (word,) = people
    end = word.start + word.length - 1
    before = [other for other in content if other.start < word.start]
    # "police officer" may be one word of WordNet's or two
    nouns = [
        other for other in before if other.pos != "adjective" and other.start + other.length != word.start
    ]
    if nouns or is_plural(tokens[end]) or POSSESSIVE & {*tokens[end + 1 : end + 2]}:
        return None
    if any(other.start == end + 1 and other.pos == "noun" for other in content):
        return None
    return PersonSpan(min([word.start, *(other.start for other in before)]), end)


def is_animal(word: Word) -> bool:
    return category(word) == "noun.animal" and not is_person(word)


def _person_span(tokens: Sequence[str], content: Sequence[Word], start: int) -> PersonSpan | None:
    """The span from the word that names the group to the last word for the person: "female [tennis player]"."""
    end = None
    index = start
    for word in content:
        if word.start + word.length <= start:
            continue
        if word.start > index or word.pos == "verb":
            break
        index = word.start + word.length
        if is_person(word):
            end = index - 1
            if is_plural(tokens[end]):
                return None
        elif end is not None and word.pos == "noun":
            return None  # a girl band, a man cave
    if end is None or POSSESSIVE & {*tokens[end + 1 : end + 2]}:
        return None
    return PersonSpan(start, end)


@cache
def _plural_people() -> frozenset[str]:
    """Words for several people."""
    plural = {word for word in person_words() if is_plural(word)}
    return frozenset(plural | {"people", "children", "kids", "adults", "toddlers", "teenagers", "babies"})
