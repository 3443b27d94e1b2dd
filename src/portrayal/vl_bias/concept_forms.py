"""The word lists of the miner, and the forms of concepts in captions."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import Any

from portrayal.lexicon import tokenize
from portrayal.lexicon.wordnet.grammar import Word
from portrayal.lexicon.wordnet.graph import wordnet

PRONOUNS = frozenset("he she him her his hers himself herself they them their theirs themselves".split())


@cache
def mining_words() -> dict[str, Any]:
    text = (resources.files("portrayal.vl_bias") / "words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def word_list(name: str) -> frozenset[str]:
    return frozenset(mining_words()[name])


@cache
def concept_words(table: str, concept: str) -> frozenset[str]:
    """The words that a table lists for a concept; none if the concept is not in it."""
    return frozenset(mining_words()[table].get(concept, ()))


def is_activity(concept: str) -> bool:
    """Whether a concept is something that a person does: "cooking", not "chef"."""
    return concept.endswith("ing")


@cache
def verb_of(concept: str) -> str:
    return wordnet().lemma(concept, "verb") or concept


@cache
def occupation_forms(concept: str) -> tuple[tuple[str, ...], ...]:
    """The words for an occupation, each as its tokens."""
    return tuple(tuple(tokenize(form)) for form in (concept, *sorted(concept_words("forms", concept))))


@cache
def is_plural(word: str) -> bool:
    """Whether a noun is in the plural: its lemma differs from it.

    >>> [is_plural(word) for word in ("men", "ladies", "waitress", "his")]
    [True, True, False, False]
    """
    return word not in PRONOUNS and wordnet().lemma(word, "noun") not in (None, word)


def category(word: Word) -> str | None:
    return wordnet().category(word.synset) if word.pos == "noun" and word.synset is not None else None


def mentions_concept(concept: str, tokens: Sequence[str], content: Sequence[Word]) -> bool:
    """Whether a caption mentions a concept, for any person."""
    if not is_activity(concept):
        text = f" {' '.join(tokens)} "
        return any(f" {' '.join(form)} " in text for form in occupation_forms(concept))
    compounds = concept_words("compounds", concept)
    return any(
        (word.pos == "verb" and word.lemma == verb_of(concept)) or tokens[word.start] == concept
        for word in content
        if word.length == 1 and not compounds & {*tokens[word.start + 1 : word.start + 2]}
    )


class ConceptTokens:
    """Set of tokens that may be part of a concept, with a cache of looked-up tokens."""

    def __init__(self, concepts: Iterable[str]):
        concepts = list(concepts)
        self._verbs = {verb_of(concept) for concept in concepts if is_activity(concept)}
        forms = [
            form for concept in concepts if not is_activity(concept) for form in occupation_forms(concept)
        ]
        self._nouns = {form[-1] for form in forms}
        self._cache: dict[str, bool] = {}

    def __contains__(self, token: str) -> bool:
        if token not in self._cache:
            self._cache[token] = token in self._nouns or wordnet().lemma(token, "verb") in self._verbs
        return self._cache[token]
