"""Matching words and phrases in a list of tokens, longest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from portrayal.lexicon.tokens import tokenize


class Match(NamedTuple):
    start: int  # the first token
    length: int  # how many tokens
    phrase: str
    value: str


class PhraseTable:
    """What each word or phrase stands for. Where two begin alike, the longer one wins ("hot dog" before "dog")."""

    def __init__(self, entries: Iterable[tuple[str, str]]):
        self._by_first: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for text, value in entries:
            phrase = tuple(tokenize(text))
            self._by_first.setdefault(phrase[0], []).append((phrase, value))
        for phrases in self._by_first.values():
            phrases.sort(key=lambda entry: -len(entry[0]))

    @cached_property
    def single_words(self) -> frozenset[str] | None:
        """The words, where no entry has more than one token; else None."""
        if any(len(phrase) > 1 for phrases in self._by_first.values() for phrase, _ in phrases):
            return None
        return frozenset(self._by_first)

    def find(self, tokens: Sequence[str]) -> Iterator[Match]:
        """The matches from left to right; a token belongs to one match at most."""
        index = 0
        while index < len(tokens):
            step = 1
            for phrase, value in self._by_first.get(tokens[index], ()):
                if tuple(tokens[index : index + len(phrase)]) == phrase:
                    yield Match(index, len(phrase), " ".join(phrase), value)
                    step = len(phrase)
                    break
            index += step
