"""The words that the miner goes by, and the forms in which captions say a concept."""

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
def words() -> dict[str, Any]:
    text = (resources.files("portrayal.vl_bias") / "words.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def listed(name: str) -> frozenset[str]:
    return frozenset(words()[name])


@cache
def of_concept(table: str, concept: str) -> frozenset[str]:
    """What a table lists for a concept; nothing where it is not in it."""
    return frozenset(words()[table].get(concept, ()))


def is_activity(concept: str) -> bool:
    """Whether it is something that a person does: "cooking", not "chef"."""
    return concept.endswith("ing")


@cache
def verb_of(concept: str) -> str:
    return wordnet().lemma(concept, "verb") or concept


@cache
def forms_of(concept: str) -> tuple[tuple[str, ...], ...]:
    """The words for an occupation, each as its tokens."""
    return tuple(tuple(tokenize(form)) for form in (concept, *sorted(of_concept("forms", concept))))


@cache
def is_plural(word: str) -> bool:
    """Whether a noun stands in the plural: WordNet knows it by another word.

    >>> [is_plural(word) for word in ("men", "ladies", "waitress", "his")]
    [True, True, False, False]
    """
    return word not in PRONOUNS and wordnet().lemma(word, "noun") not in (None, word)


def category(word: Word) -> str | None:
    return wordnet().category(word.synset) if word.part == "noun" and word.synset is not None else None


def names_concept(concept: str, tokens: Sequence[str], content: Sequence[Word]) -> bool:
    """Whether the caption says the concept at all, of whomever."""
    if not is_activity(concept):
        text = f" {' '.join(tokens)} "
        return any(f" {' '.join(form)} " in text for form in forms_of(concept))
    compounds = of_concept("compounds", concept)
    return any(
        (word.part == "verb" and word.lemma == verb_of(concept)) or tokens[word.start] == concept
        for word in content
        if word.length == 1 and not compounds & {*tokens[word.start + 1 : word.start + 2]}
    )


class Forms:
    """Whether a token may belong to one of some concepts; remembered, since most tokens do not."""

    def __init__(self, concepts: Iterable[str]):
        concepts = list(concepts)
        self._verbs = {verb_of(concept) for concept in concepts if is_activity(concept)}
        named = [form for concept in concepts if not is_activity(concept) for form in forms_of(concept)]
        self._nouns = {form[-1] for form in named}
        self._known: dict[str, bool] = {}

    def __contains__(self, token: str) -> bool:
        if token not in self._known:
            self._known[token] = token in self._nouns or wordnet().lemma(token, "verb") in self._verbs
        return self._known[token]
