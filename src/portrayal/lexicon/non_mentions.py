"""Where words for people name nobody: in phrases, before what they describe, in statues, and where nobody is there."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache, cached_property
from importlib import resources
from typing import Any

from portrayal.lexicon.lexicon import load_listed
from portrayal.lexicon.negation import absent
from portrayal.lexicon.objects import plural
from portrayal.lexicon.phrases import PhraseTable

_BETWEEN = 3  # words between "male" and the animal: "male and female African elephants"
_STATUE = 6  # tokens from a statue to whom it is of: "a statue of two men and a woman"


class Nobody:
    """Tells, for the tokens of one caption, which words for a person name nobody.

    Every finder of people and groups asks it, so that all metrics agree on who is mentioned.

    >>> from portrayal.lexicon.tokens import tokenize
    >>> for caption in ("a cowboy in a cowboy hat", "a male lion", "a lion tamer", "a statue of a man", "no man"):
    ...     tokens = tokenize(caption)
    ...     people = [place for place, token in enumerate(tokens) if token in ("cowboy", "male", "tamer", "man")]
    ...     nobody = Nobody(tokens)
    ...     print([tokens[place] for place in people if not nobody.at(place)])
    ['cowboy']
    []
    ['tamer']
    []
    []
    """

    def __init__(self, tokens: Sequence[str]):
        self._tokens = tokens

    def at(self, start: int, length: int = 1) -> bool:
        """Whether the word for a person that stands there names nobody."""
        end = start + length
        if not self._absent.isdisjoint(range(start, end)):
            return True
        for first, last in self._phrases:
            within = start <= first and last <= end and last - first < length
            if (
                first < end and start < last and not within
            ):  # a longer word holds it: "5 year old" holds "year old"
                return True
        return self._describes_what_follows(start, start + length) or self._is_a_statue(start)

    @cached_property
    def _absent(self) -> frozenset[int]:
        """Tokens of who is said not to be there."""
        return frozenset(absent(self._tokens))

    @cached_property
    def _phrases(self) -> list[tuple[int, int]]:
        """Phrases that name nobody, from token to token."""
        return [(match.start, match.start + match.length) for match in lists().table.find(self._tokens)]

    def _describes_what_follows(self, start: int, end: int) -> bool:
        words, tokens = lists(), self._tokens
        if end >= len(tokens) or tokens[start] in words.pronouns:
            return False
        head = tokens[end]
        if head in words.figures:
            return True
        last = tokens[end - 1]
        if head in words.things_of_roles and last not in words.somebody and _is_singular(last):
            return True
        of_animals = end - start == 1 and tokens[start] in words.of_animals
        return (of_animals or last.endswith("old")) and self._before_animal(end)  # a two year old horse

    def _before_animal(self, place: int) -> bool:
        """Whether an animal follows, and nobody who has to do with it: "a male lion", not "a male lion tamer"."""
        words, tokens = lists(), self._tokens
        for index in range(place, min(place + _BETWEEN + 1, len(tokens))):
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

    def _is_a_statue(self, start: int) -> bool:
        words, tokens = lists(), self._tokens
        if words.made_of.isdisjoint(tokens[max(0, start - _STATUE - 1) : start]):
            return False
        for index in range(start - 1, max(0, start - _STATUE), -1):
            if tokens[index] == "of":
                return tokens[index - 1] in words.made_of and tokens[index + 1] != "liberty"
            if tokens[index] in words.ends_a_phrase:
                return False
        return False


_PLURALS = ("men", "people", "children", "folk")  # and what ends in them: women, firemen, schoolchildren


def _is_singular(word: str) -> bool:
    """A plural before a thing is somebody's ("the girls boots" lacks an apostrophe), or does it: "two men fish"."""
    return not word.endswith(_PLURALS) and (not word.endswith("s") or word.endswith("ss"))


class _Lists:
    """The words of `nobody.toml`, and the phrases that the lists of gender and age hold."""

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
        self.people = frozenset(load_listed("people").neutral).difference(data["animals_do"])
        phrases = [*data["phrases"], *load_listed("gender").not_naming, *load_listed("age").not_naming]
        self.table = PhraseTable((phrase, "") for phrase in phrases)


@cache
def lists() -> _Lists:
    file = resources.files("portrayal.lexicon") / "words" / "mentions" / "nobody.toml"
    return _Lists(tomllib.loads(file.read_text(encoding="utf-8")))
