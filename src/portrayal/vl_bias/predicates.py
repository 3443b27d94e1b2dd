"""Decide whether a person in a caption does an activity or has an occupation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from portrayal.lexicon.people import is_person
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.lexicon.wordnet.graph import wordnet
from portrayal.vl_bias.concept_forms import category, concept_words, occupation_forms, verb_of, word_list
from portrayal.vl_bias.subject import PersonSpan, is_animal

MAX_DISTANCE = 12  # tokens between a person and what they do, at most
SENTENCE_ENDS = frozenset((".", ";", ":", "!", "?"))
ARTICLES = frozenset(("a", "an", "the"))
LINKS = frozenset(("who", "that", ","))  # between a person and "is a chef"
COPULAS = frozenset(("is", "was"))
INSIDE_PREPOSITIONS = frozenset(("in", "on", "inside"))
OWN_PRONOUNS = frozenset(("his", "her", "him", "himself", "herself"))


def person_does(concept: str, person: PersonSpan, tokens: Sequence[str], content: Sequence[Word]) -> bool:
    """Whether the person does the activity: "a man cooks", "a woman in a hat is cooking", "a smiling man"."""
    if concept_words("senses", concept) & {*tokens}:
        return False
    compounds = concept_words("compounds", concept)
    return any(
        _describes(word, person, content) or _follows(word, concept, person, tokens, content)
        for word in content
        if _is_form(word, concept, tokens) and not compounds & {*tokens[word.start + 1 : word.start + 2]}
    )


def person_is(concept: str, person: PersonSpan, tokens: Sequence[str], content: Sequence[Word]) -> bool:
    """Whether the person has the occupation: "a female chef", "a police woman", "a man who is a judge"."""
    if concept_words("senses", concept) & {*tokens}:
        return False
    named = tuple(tokens[: person.end + 1])
    before = named[:-1] if person.start == person.end else ()
    for form in occupation_forms(concept):
        if (named[-len(form) :] == form and len(named) - len(form) >= person.start) or before[
            -len(form) :
        ] == form:
            return True
    index = person.end + 1
    while tokens[index : index + 1] and tokens[index] in LINKS:
        index += 1
    if not COPULAS & {*tokens[index : index + 1]}:
        return False
    describing = {word.start for word in content if word.pos == "adjective"}
    index += 1
    while index < len(tokens) and (tokens[index] in ARTICLES or index in describing):
        index += 1
    return any(tuple(tokens[index : index + len(form)]) == form for form in occupation_forms(concept))


def _is_form(word: Word, concept: str, tokens: Sequence[str]) -> bool:
    """Whether a word is a form of the verb for one person at present: "cooks", "cooking"."""
    token = tokens[word.start]
    finite = word.pos == "verb" and word.lemma == verb_of(concept) and token.endswith("s")
    return word.length == 1 and (token == concept or finite)


def _describes(word: Word, person: PersonSpan, content: Sequence[Word]) -> bool:
    """Whether a word is before the person with only adjectives in between: "a smiling young woman"."""
    describing = {other.start for other in content if other.pos == "adjective"}
    return word.start < person.start and describing >= {*range(word.start + 1, person.start)}


def _follows(
    word: Word, concept: str, person: PersonSpan, tokens: Sequence[str], content: Sequence[Word]
) -> bool:
    """Whether a verb is after the person, and nothing in between is its subject instead."""
    index, verb = word.start, verb_of(concept)
    between = tokens[person.end + 1 : index]
    if word.pos != "verb" or index < person.end or len(between) > MAX_DISTANCE:
        return False
    if (word_list("depictions") | SENTENCE_ENDS) & {*between} or word_list("not_before") & {*between[-1:]}:
        return False
    if {"that", "which"} & {*between[1:]}:  # "a man by a mirror that stands there"
        return False
    inside = [other for other in content if person.end < other.start < index]
    described = bool(inside) and inside[-1].pos == "adjective" and inside[-1].start == index - 1
    if described and "in" in between:  # "in blue running shoes"
        return False
    if "with" in between and verb in word_list("put") and OWN_PRONOUNS & {*tokens[index + 1 : index + 5]}:
        return False
    doing = any(other.pos == "verb" and other.lemma != "wear" for other in inside)
    # "cutting a cake sitting on a plate"
    if doing and verb in word_list("put") and not word_list("joins") & {*between[-1:]}:
        return False
    return not any(_may_act(other, verb, tokens) for other in inside)


def _may_act(other: Word, verb: str, tokens: Sequence[str]) -> bool:
    """Whether a word between a person and a verb may be its subject, or introduces another person."""
    if other.pos == "verb":
        return other.lemma in word_list("of_others") and tokens[other.start].endswith(("ing", "s"))
    if other.pos != "noun":
        return False
    if (
        is_person(other)
        or is_animal(other)
        or category(other) == "noun.person"
        or other.lemma in word_list("crowds")
    ):
        return True
    if (
        verb in word_list("moved")
        and other.synset is not None
        and wordnet().is_a(other.synset, _conveyance_sense())
    ):
        return not INSIDE_PREPOSITIONS & {*tokens[max(other.start - 3, 0) : other.start]}
    return False


@cache
def _conveyance_sense() -> int:
    return wordnet().sense(
        "conveyance", "noun", 3
    )  # vehicles, with buses and trains, which WordNet does not count as vehicles
