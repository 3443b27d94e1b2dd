"""Match words and phrases in a list of tokens, longest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from portrayal.lexicon.tokens import tokenize


class Match(NamedTuple):
    """A phrase that was matched in a list of tokens."""

    start: int  # the first token
    length: int  # how many tokens
    phrase: str
    value: str


class PhraseTable:
    """Mapping of words and phrases to values. The longest match wins ("hot dog" before "dog")."""

    def __init__(self, entries: Iterable[tuple[str, str]]):
        # Keyed by two tokens, because dozens of phrases share their first word ("baby elephant", "baby carrots").
        self._longer: dict[tuple[str, str], list[tuple[tuple[str, ...], str]]] = {}
        self._single: dict[str, str] = {}
        for text, value in entries:
            phrase = tuple(tokenize(text))
            if len(phrase) == 1:
                self._single.setdefault(phrase[0], value)
            else:
                self._longer.setdefault((phrase[0], phrase[1]), []).append((phrase, value))
        for phrases in self._longer.values():
            phrases.sort(key=lambda entry: -len(entry[0]))
        self._first = frozenset((*self._single, *(first for first, _ in self._longer)))

    @cached_property
    def single_words(self) -> frozenset[str] | None:
        """All entries, if each is a single token; otherwise None."""
        return None if self._longer else frozenset(self._single)

    def find(self, tokens: Sequence[str]) -> Iterator[Match]:
        """Yield the matches from left to right. A token belongs to at most one match."""
        if self._first.isdisjoint(tokens):
            return
        end = 0
        for index, token in enumerate(tokens):
            if index < end or token not in self._first:
                continue
            match = self._match_at(tokens, index, token)
            if match is not None:
                yield match
                end = index + match.length

    def _match_at(self, tokens: Sequence[str], index: int, token: str) -> Match | None:
        if index + 1 < len(tokens):
            for phrase, value in self._longer.get((token, tokens[index + 1]), ()):
                length = len(phrase)
                if length == 2 or tuple(tokens[index : index + length]) == phrase:
                    return Match(index, length, " ".join(phrase), value)
        single = self._single.get(token)
        return None if single is None else Match(index, 1, token, single)
