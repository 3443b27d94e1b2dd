"""Words for people that name nobody: in fixed phrases, as modifiers of things and animals, in statues, or negated."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache, cached_property
from importlib import resources
from typing import Any

from portrayal.lexicon.lexicon import load_identity_list
from portrayal.lexicon.negation import negated
from portrayal.lexicon.objects import plural
from portrayal.lexicon.phrases import PhraseTable

_MAX_BEFORE_ANIMAL = 3  # words between "male" and the animal: "male and female African elephants"
_MAX_AFTER_STATUE = 6  # tokens from "statue" to its subject: "a statue of two men and a woman"


class NonMentions:
    """Finds the words for a person that name nobody in the tokens of one caption.

    All finders of people and groups use it, so that all metrics agree on who is mentioned.

    >>> from portrayal.lexicon.tokens import tokenize
    >>> for caption in ("a cowboy in a cowboy hat", "a male lion", "a lion tamer", "a statue of a man", "no man"):
    ...     tokens = tokenize(caption)
    ...     people = [i for i, token in enumerate(tokens) if token in ("cowboy", "male", "tamer", "man")]
    ...     non_mentions = NonMentions(tokens)
    ...     print([tokens[i] for i in people if not non_mentions.covers(i)])
    ['cowboy']
    []
    ['tamer']
    []
    []
    """

    def __init__(self, tokens: Sequence[str]):
        self._tokens = tokens

    def covers(self, start: int, length: int = 1) -> bool:
        """Whether the word for a person at this position names nobody."""
        end = start + length
        if not self._negated.isdisjoint(range(start, end)):
            return True
        for first, last in self._phrase_spans:
            inside = start <= first and last <= end and last - first < length
            # A phrase inside a longer word for a person does not count: "year old" inside "5 year old".
            if first < end and start < last and not inside:
                return True
        return self._modifies_non_person(start, start + length) or self._is_statue(start)

    @cached_property
    def _negated(self) -> frozenset[int]:
        """Indices of negated tokens."""
        return frozenset(negated(self._tokens))

    @cached_property
    def _phrase_spans(self) -> list[tuple[int, int]]:
        """Token spans of phrases that name nobody."""
        return [
            (match.start, match.start + match.length)
            for match in non_mention_words().table.find(self._tokens)
        ]

    def _modifies_non_person(self, start: int, end: int) -> bool:
        words, tokens = non_mention_words(), self._tokens
        if end >= len(tokens) or tokens[start] in words.pronouns:
            return False
        head = tokens[end]
        if head in words.figures:
            return True
        last = tokens[end - 1]
        if head in words.things_of_roles and last not in words.somebody and _is_singular(last):
            return True
        of_animals = end - start == 1 and tokens[start] in words.of_animals
        return (of_animals or last.endswith("old")) and self._precedes_animal(end)  # a two year old horse

    def _precedes_animal(self, start: int) -> bool:
        """Whether an animal follows that is not part of a word for a person: "a male lion", not "a male lion tamer"."""
        words, tokens = non_mention_words(), self._tokens
        for index in range(start, min(start + _MAX_BEFORE_ANIMAL + 1, len(tokens))):
            token = tokens[index]
            if token in words.animals:
                following = tokens[index + 1] if index + 1 < len(tokens) else ""
                return following not in words.people and following not in words.with_animals
            joins = (
                token in ("and", "&")
                and tokens[index + 1 : index + 2]
                and tokens[index + 1] in words.of_animals
            )
            if not joins and token not in words.between_animals and token not in words.of_animals:
                return False
        return False

    def _is_statue(self, start: int) -> bool:
        words, tokens = non_mention_words(), self._tokens
        if words.made_of.isdisjoint(tokens[max(0, start - _MAX_AFTER_STATUE - 1) : start]):
            return False
        for index in range(start - 1, max(0, start - _MAX_AFTER_STATUE), -1):
            if tokens[index] == "of":
                return tokens[index - 1] in words.made_of and tokens[index + 1] != "liberty"
            if tokens[index] in words.ends_a_phrase:
                return False
        return False


# Also as suffixes: women, firemen, schoolchildren.
_PLURAL_ENDINGS = ("men", "people", "children", "folk")


def _is_singular(word: str) -> bool:
    """Whether a word is singular.

    A plural before a thing is its owner ("the girls boots" lacks an apostrophe) or its subject ("two men fish").
    """
    return not word.endswith(_PLURAL_ENDINGS) and (not word.endswith("s") or word.endswith("ss"))


class NonMentionWords:
    """The words of `nobody.toml`, and the `not_naming` phrases of the gender and age lists."""

    def __init__(self, data: dict[str, Any]):
        self.never_people = frozenset(data["never_people"])
        self.objects_too = frozenset(data["objects_too"])
        self.rarely_people = frozenset(data["rarely_people"])
        self.with_animals = frozenset(data["with_animals"])
        self.figures = frozenset(data["figures"])
        self.made_of = frozenset(data["made_of"])
        self.things_of_roles = frozenset(data["things_of_roles"])
        self.pronouns = frozenset(data["pronouns"])
        self.somebody = frozenset(data["somebody"])
        self.of_animals = frozenset(data["of_animals"])
        self.between_animals = frozenset(data["between_animals"])
        self.animals = frozenset(form for animal in data["animals"] for form in (animal, plural(animal)))
        self.ends_a_phrase = frozenset(data["ends_a_phrase"])
        self.people = frozenset(load_identity_list("people").neutral).difference(data["animals_do"])
        phrases = [
            *data["phrases"],
            *load_identity_list("gender").not_naming,
            *load_identity_list("age").not_naming,
        ]
        self.table = PhraseTable((phrase, "") for phrase in phrases)


@cache
def non_mention_words() -> NonMentionWords:
    file = resources.files("portrayal.lexicon") / "words" / "mentions" / "nobody.toml"
    return NonMentionWords(tomllib.loads(file.read_text(encoding="utf-8")))
