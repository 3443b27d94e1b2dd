"""Whether a caption says of somebody that they do something, or that they are something."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from portrayal.lexicon.people import is_person
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.lexicon.wordnet.graph import wordnet
from portrayal.vl_bias.concept_forms import category, forms_of, listed, of_concept, verb_of
from portrayal.vl_bias.subject import Person, is_animal

FAR = 12  # tokens between a person and what they do, at most
ENDS = frozenset((".", ";", ":", "!", "?"))
ARTICLES = frozenset(("a", "an", "the"))
LINKS = frozenset(("who", "that", ","))  # between a person and "is a chef"
COPULAS = frozenset(("is", "was"))
INSIDE = frozenset(("in", "on", "inside"))
OF_SELF = frozenset(("his", "her", "him", "himself", "herself"))


def person_does(concept: str, person: Person, tokens: Sequence[str], content: Sequence[Word]) -> bool:
    """Whether the person does it: "a man cooks", "a woman in a hat is cooking", "a smiling man"."""
    if of_concept("senses", concept) & {*tokens}:
        return False
    compounds = of_concept("compounds", concept)
    return any(
        _describes(word, person, content) or _follows(word, concept, person, tokens, content)
        for word in content
        if _is_form(word, concept, tokens) and not compounds & {*tokens[word.start + 1 : word.start + 2]}
    )


def person_is(concept: str, person: Person, tokens: Sequence[str], content: Sequence[Word]) -> bool:
    """Whether the person is one: "a female chef", "a police woman", "a man who is a judge"."""
    if of_concept("senses", concept) & {*tokens}:
        return False
    named = tuple(tokens[: person.end + 1])
    before = named[:-1] if person.start == person.end else ()
    for form in forms_of(concept):
        if (named[-len(form) :] == form and len(named) - len(form) >= person.start) or before[
            -len(form) :
        ] == form:
            return True
    place = person.end + 1
    while tokens[place : place + 1] and tokens[place] in LINKS:
        place += 1
    if not COPULAS & {*tokens[place : place + 1]}:
        return False
    describing = {word.start for word in content if word.part == "adjective"}
    place += 1
    while place < len(tokens) and (tokens[place] in ARTICLES or place in describing):
        place += 1
    return any(tuple(tokens[place : place + len(form)]) == form for form in forms_of(concept))


def _is_form(word: Word, concept: str, tokens: Sequence[str]) -> bool:
    """Whether it may be said of one person now: "cooks", "cooking"."""
    token = tokens[word.start]
    finite = word.part == "verb" and word.lemma == verb_of(concept) and token.endswith("s")
    return word.length == 1 and (token == concept or finite)


def _describes(word: Word, person: Person, content: Sequence[Word]) -> bool:
    """Whether it stands before the person with nothing but descriptions in between: "a smiling young woman"."""
    describing = {other.start for other in content if other.part == "adjective"}
    return word.start < person.start and describing >= {*range(word.start + 1, person.start)}


def _follows(
    word: Word, concept: str, person: Person, tokens: Sequence[str], content: Sequence[Word]
) -> bool:
    """Whether it stands after the person, and nothing in between does it instead."""
    place, verb = word.start, verb_of(concept)
    between = tokens[person.end + 1 : place]
    if word.part != "verb" or place < person.end or len(between) > FAR:
        return False
    if (listed("depictions") | ENDS) & {*between} or listed("not_before") & {*between[-1:]}:
        return False
    if {"that", "which"} & {*between[1:]}:  # a man by a mirror that stands there
        return False
    inside = [other for other in content if person.end < other.start < place]
    described = bool(inside) and inside[-1].part == "adjective" and inside[-1].start == place - 1
    if described and "in" in between:  # in blue running shoes
        return False
    if "with" in between and verb in listed("put") and OF_SELF & {*tokens[place + 1 : place + 5]}:
        return False
    doing = any(other.part == "verb" and other.lemma != "wear" for other in inside)
    if (
        doing and verb in listed("put") and not listed("joins") & {*between[-1:]}
    ):  # cutting a cake sitting on a plate
        return False
    return not any(_acts(other, verb, tokens) for other in inside)


def _acts(other: Word, verb: str, tokens: Sequence[str]) -> bool:
    """Whether a word between a person and a verb may be the one that does it, or brings somebody else in."""
    if other.part == "verb":
        return other.lemma in listed("of_others") and tokens[other.start].endswith(("ing", "s"))
    if other.part != "noun":
        return False
    if (
        is_person(other)
        or is_animal(other)
        or category(other) == "noun.person"
        or other.lemma in listed("crowds")
    ):
        return True
    if verb in listed("moved") and other.synset is not None and wordnet().is_a(other.synset, _vehicle()):
        return not INSIDE & {*tokens[max(other.start - 3, 0) : other.start]}
    return False


@cache
def _vehicle() -> int:
    return wordnet().sense("conveyance", "noun", 3)  # vehicles, and buses and trains, which are none there
