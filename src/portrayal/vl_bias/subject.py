"""Who a caption is about: one person, or several, or nobody that can be told."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from portrayal.lexicon import Mention, tokenize
from portrayal.lexicon.people import is_person, person_words
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.vl_bias.concept_forms import PRONOUNS, category, is_plural, listed

COUNTED = 3  # tokens from a number to who is counted: "two very young children"
POSSESSIVE = frozenset(("'s", "’s", "'", "’", "-"))


class Person(NamedTuple):
    """The first and the last token that name somebody: "female tennis player"."""

    start: int
    end: int


def several_people(caption: str, mentions: Sequence[Mention]) -> bool:
    """Whether a caption counts people, names a group in the plural, or names it twice ("a boy with his father")."""
    named = [mention for mention in mentions if mention.word not in PRONOUNS]
    apart = any(len(tokenize(caption[one.end : two.start])) > 1 for one, two in pairwise(named))
    if apart or any(is_plural(mention.word) for mention in named):
        return True
    tokens = tokenize(caption)
    for place, token in enumerate(tokens):
        if token in listed("pairs") and tokens[place + 1 : place + 2] != ["of"]:
            return True
        if token in listed("numbers") and _many() & {*tokens[place + 1 : place + 1 + COUNTED]}:
            return True
    return False


def only_person(tokens: Sequence[str], content: Sequence[Word], named: Sequence[int]) -> Person | None:
    """The one person whom the tokens at these places name; None where that is nobody, or more than one.

    Somebody in a picture of the picture is nobody, and so is who comes after an animal ("a dog by a man running").
    """
    found: dict[int, Person] = {}
    for start in named:
        if tokens[start] not in PRONOUNS:
            person = _named_from(tokens, content, start)
            if person is None:
                return None
            found[person.end] = min(person, found.get(person.end, person))
    if len(found) != 1:
        return None
    (person,) = found.values()
    before = tokens[: person.start]
    shown = bool(listed("depictions") & {*before})
    counted = bool(listed("numbers") & {*before[-COUNTED:]})
    animal = any(is_animal(word) for word in content if word.start < person.start)
    return None if shown or counted or animal else person


def subject(tokens: Sequence[str], content: Sequence[Word]) -> Person | None:
    """The person whom a caption begins with, where it speaks of no other: "A tired farmer on his tractor"."""
    people = [word for word in content if is_person(word) and tokens[word.start] not in PRONOUNS]
    if len(people) != 1:
        return None
    (word,) = people
    end = word.start + word.length - 1
    before = [other for other in content if other.start < word.start]
    # "police officer" may be one word of WordNet's or two
    nouns = [
        other for other in before if other.part != "adjective" and other.start + other.length != word.start
    ]
    if nouns or is_plural(tokens[end]) or POSSESSIVE & {*tokens[end + 1 : end + 2]}:
        return None
    if any(other.start == end + 1 and other.part == "noun" for other in content):
        return None
    return Person(min([word.start, *(other.start for other in before)]), end)


def is_animal(word: Word) -> bool:
    return category(word) == "noun.animal" and not is_person(word)


def _named_from(tokens: Sequence[str], content: Sequence[Word], start: int) -> Person | None:
    """Somebody from the word that names the group to the last word for them: "female [tennis player]"."""
    end = None
    place = start
    for word in content:
        if word.start + word.length <= start:
            continue
        if word.start > place or word.part == "verb":
            break
        place = word.start + word.length
        if is_person(word):
            end = place - 1
            if is_plural(tokens[end]):
                return None
        elif end is not None and word.part == "noun":
            return None  # a girl band, a man cave
    if end is None or POSSESSIVE & {*tokens[end + 1 : end + 2]}:
        return None
    return Person(start, end)


@cache
def _many() -> frozenset[str]:
    """Words for several people."""
    plural = {word for word in person_words() if is_plural(word)}
    return frozenset(plural | {"people", "children", "kids", "adults", "toddlers", "teenagers", "babies"})
