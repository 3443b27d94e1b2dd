"""Adjectives of identity that stand as nouns: a black, the elderly, orientals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from portrayal.lexicon.harms.loading import Checked, loaded
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize

_PLURAL, _ADJECTIVE = "plural", "adjective"

# The grammar by which an adjective is told from a noun: what may stand before it, and what shows that no noun follows.
_ARTICLES = frozenset(("a", "an"))
_COUNTING = frozenset(
    "one two three four five six seven eight nine ten some several many few both these those this that another each "
    "every any".split()
)
_OF_MANY = frozenset("group groups crowd crowds bunch couple pair lot lots number handful".split())
_ALSO = frozenset(
    "young younger old older middle-aged teenage adult little tall short thin male female poor lone single african "
    "american african-american european indian mexican latino latina".split()
)
_STEPS_BACK = 2  # how many words such as "young" may stand between the article and the adjective
_END = frozenset((".", "!", "?", ";", ":", ")", '"', ".."))
_AND = frozenset(("and", "or", "&"))
_SOMEWHERE = frozenset("in on at near by behind beside inside outside under from next".split())
_BEHIND = _SOMEWHERE | frozenset(
    "with across along against among around over through toward towards during into onto up down within without "
    "before after beneath between to for while as".split()
)
_WHO = frozenset("who whose whom is are was were has have had".split())
# What animals do not do: "a black laying on a car" is a cat, with the word left out.
_ONLY_PEOPLE = frozenset(
    "cooking dancing dressed holding jogging making performing pointing posing reading selling singing smiling smoking "
    "talking using waving wearing working wears holds talks smiles".split()
)
_DOING = _ONLY_PEOPLE | frozenset(
    """
    being carrying celebrating climbing crossing crouching doing drinking eating enjoying exercising gathered getting
    giving having jumping kneeling laughing laying leaning looking lying playing pulling pushing reaching relaxing
    resting riding running seated sitting sleeping squatting standing staring taking trying waiting walking watching
    carries checks crosses dances does drinks eats enjoys gets leans lies lives looks makes performs plays poses pushes
    reaches reads rests rides runs sells shows sings sits sleeps stands takes teaches uses waits walks watches works
    """.split()
)
_MANY_DO = frozenset("dance eat gather live protest sit sleep stand wait walk work".split())
_GO_ON = (
    _BEHIND
    | _ARTICLES
    | _COUNTING
    | frozenset("the his her its their and of out alone together there".split())
)
# Before a colour as a noun there may be a person only where a person could be named ("a photo of a black in a suit").
_NAMING = frozenset((",", ".", ";", ":", "of", "by", "and", "while", "as", "where", "behind", "beside", "to"))


@dataclass(frozen=True, eq=False)
class AdjectivesAsNouns:
    """Adjectives of identity, and how to tell that one stands as a noun.

    `singular` ones do after an article or a number and before nothing that they could describe, `plural` ones always,
    those in `the` stand for a whole group. `colours` may be of things, and count as people more rarely; `beside` are
    colours in the plural beside which others are colours too. `not_naming` phrases name nobody.
    """

    singular: tuple[str, ...]
    plural: tuple[str, ...]
    the: tuple[str, ...]
    colours: frozenset[str]
    beside: frozenset[str]
    not_naming: tuple[str, ...]
    label: str

    def find(self, tokens: Sequence[str]) -> list[tuple[int, str]]:
        """Where such an adjective is a noun, in a caption's tokens: the first token, and the words.

        >>> words = adjectives_as_nouns()
        >>> words.find(tokenize("An elderly in a wheelchair and two blacks on a bench"))
        [(0, 'an elderly'), (7, 'blacks')]
        >>> words.find(tokenize("an elderly man in a black and white photo of the white of an egg"))
        []
        """
        if self._words.isdisjoint(tokens):  # most captions end here
            return []
        found = []
        for start, length, phrase, kind in self._table.find(tokens):
            end = start + length
            if kind == _PLURAL:
                if phrase not in self.colours or self._of_people(tokens, start, end):
                    found.append((start, phrase))
            elif kind == _ADJECTIVE:
                first = self._first(tokens, start, phrase)
                if first is not None and self._stands_alone(tokens, first, end, phrase in self.colours):
                    found.append((first, " ".join(tokens[first:end])))
        return found

    def _of_people(self, tokens: Sequence[str], start: int, end: int) -> bool:
        """Whether colours in the plural are people: two blacks, but not sailor whites, nor blues and whites."""
        before = tokens[start - 1] if start else ","
        alone = self.beside.isdisjoint(tokens[max(0, start - 2) : end + 2])
        return alone and (before in _NAMING or before in _COUNTING or before in ("the", "with", "young"))

    def _first(self, tokens: Sequence[str], start: int, phrase: str) -> int | None:
        """Where the words begin that make a noun of an adjective; None where there are none."""
        first = start - 1
        while first > 0 and start - first <= _STEPS_BACK and tokens[first] in _ALSO:
            first -= 1
        if first < 0:
            return None
        word = tokens[first]
        before = tokens[first - 1] if first else ","
        if phrase in self.colours:
            return first if word in _ARTICLES and before in _NAMING else None
        if word in _ARTICLES or word in _COUNTING:
            return first if phrase in self._singular else None
        if word == "the":
            return first
        return first + 1 if word == "of" and before in _OF_MANY else None

    def _stands_alone(self, tokens: Sequence[str], first: int, end: int, colour: bool) -> bool:
        """Whether nothing follows that the adjective could describe."""
        after, second, third = (*tokens[end : end + 3], "", "", "")[:3]
        if after in ("", *_END):
            return not colour  # "a white." is a slip, or a wine
        if after in _WHO:
            return True
        # "an elderly walking with a cane", not "an elderly looking man"; "the elderly dance", not "an elderly dance"
        do = _ONLY_PEOPLE if colour else _DOING if tokens[first] in _ARTICLES else _DOING | _MANY_DO
        if after in do:
            return second in _GO_ON or second in _END or not second
        if colour:
            there = after in _SOMEWHERE and second not in self.colours
            return there or (after == "with" and second in _ARTICLES)
        if after in _AND:
            if second in self._words:  # "the elderly and disabled"
                return self._stands_alone(tokens, first, end + 2, colour)
            return second in (*_ARTICLES, "the", "those") and third not in self._words and third not in _ALSO
        return after in _BEHIND or after == "'s"

    @cached_property
    def _singular(self) -> frozenset[str]:
        return frozenset(self.singular)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The last words of all phrases: without one of them, nothing is found."""
        return frozenset(tokenize(word)[-1] for word in (*self.singular, *self.plural, *self.the))

    @cached_property
    def _table(self) -> PhraseTable:
        kinds = ((self.not_naming, ""), (self.plural, _PLURAL), ((*self.singular, *self.the), _ADJECTIVE))
        return PhraseTable((word, kind) for words, kind in kinds for word in words)


def adjectives_as_nouns(path: str | Path | None = None) -> AdjectivesAsNouns:
    """The shipped adjectives of identity that should not be nouns, or those of a file."""
    keys = {"singular", "plural", "the", "colours", "beside", "not_naming"}
    return loaded("adjective_as_noun", path, keys, _adjectives)


def _adjectives(file: Checked) -> AdjectivesAsNouns:
    lists = {
        key: file.words(key, file.data[key]) if key in file.data else ()
        for key in ("singular", "plural", "the", "colours", "beside", "not_naming")
    }
    if not any(lists[key] for key in ("singular", "plural", "the")):
        file.note("lists of words: singular, plural or the", "none")
    return AdjectivesAsNouns(
        lists["singular"], lists["plural"], lists["the"], frozenset(lists["colours"]), frozenset(lists["beside"]),
        lists["not_naming"], file.label,
    )  # fmt: skip
