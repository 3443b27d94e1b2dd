"""Adjectives of identity that are used as nouns: a black, the elderly, orientals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from portrayal.lexicon.harms.loading import WordListReader, load_word_list
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize

_PLURAL, _ADJECTIVE = "plural", "adjective"

# The grammar that decides whether an adjective is used as a noun: words before it, and words that show that no noun
# follows.
_ARTICLES = frozenset(("a", "an"))
_COUNTING_WORDS = frozenset(
    "one two three four five six seven eight nine ten some several many few both these those this that another each "
    "every any".split()
)
_GROUP_NOUNS = frozenset("group groups crowd crowds bunch couple pair lot lots number handful".split())
_MODIFIERS = frozenset(
    "young younger old older middle-aged teenage adult little tall short thin male female poor lone single african "
    "american african-american european indian mexican latino latina".split()
)
_MAX_MODIFIERS = 2  # words such as "young" between the article and the adjective, at most
_SENTENCE_ENDS = frozenset((".", "!", "?", ";", ":", ")", '"', ".."))
_CONJUNCTIONS = frozenset(("and", "or", "&"))
_PLACE_PREPOSITIONS = frozenset("in on at near by behind beside inside outside under from next".split())
_PREPOSITIONS = _PLACE_PREPOSITIONS | frozenset(
    "with across along against among around over through toward towards during into onto up down within without "
    "before after beneath between to for while as".split()
)
_RELATIVES_AND_AUXILIARIES = frozenset("who whose whom is are was were has have had".split())
# Animals do not do this: in "a black laying on a car" the black is a cat.
_HUMAN_ACTIONS = frozenset(
    "cooking dancing dressed holding jogging making performing pointing posing reading selling singing smiling smoking "
    "talking using waving wearing working wears holds talks smiles".split()
)
_ACTIONS = _HUMAN_ACTIONS | frozenset(
    """
    being carrying celebrating climbing crossing crouching doing drinking eating enjoying exercising gathered getting
    giving having jumping kneeling laughing laying leaning looking lying playing pulling pushing reaching relaxing
    resting riding running seated sitting sleeping squatting standing staring taking trying waiting walking watching
    carries checks crosses dances does drinks eats enjoys gets leans lies lives looks makes performs plays poses pushes
    reaches reads rests rides runs sells shows sings sits sleeps stands takes teaches uses waits walks watches works
    """.split()
)
_PLURAL_ACTIONS = frozenset("dance eat gather live protest sit sleep stand wait walk work".split())
_AFTER_ACTION = (
    _PREPOSITIONS
    | _ARTICLES
    | _COUNTING_WORDS
    | frozenset("the his her its their and of out alone together there".split())
)
# A colour can mean a person only after one of these, or at the start ("a photo of a black in a suit").
_BEFORE_PERSON = frozenset(
    (",", ".", ";", ":", "of", "by", "and", "while", "as", "where", "behind", "beside", "to")
)


@dataclass(frozen=True, eq=False)
class AdjectivesAsNouns:
    """Adjectives of identity, and the rules by which one is used as a noun.

    `singular` words are nouns after an article or a number and without a following noun, `plural` words always, words
    in `the` stand for a whole group. `colours` may describe things, and have stricter rules; `beside` are plural
    colours next to which other words are colours too. `not_naming` phrases name nobody.
    """

    singular: tuple[str, ...]
    plural: tuple[str, ...]
    the: tuple[str, ...]
    colours: frozenset[str]
    beside: frozenset[str]
    not_naming: tuple[str, ...]
    label: str

    def find(self, tokens: Sequence[str]) -> list[tuple[int, str]]:
        """Find adjectives that are used as nouns in a caption's tokens: the first token, and the words.

        >>> words = adjectives_as_nouns()
        >>> words.find(tokenize("An elderly in a wheelchair and two blacks on a bench"))
        [(0, 'an elderly'), (7, 'blacks')]
        >>> words.find(tokenize("an elderly man in a black and white photo of the white of an egg"))
        []
        """
        if self._words.isdisjoint(tokens):  # a fast path for most captions
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
        """Whether a plural colour means people: two blacks, but not sailor whites, nor blues and whites."""
        before = tokens[start - 1] if start else ","
        no_other_colour = self.beside.isdisjoint(tokens[max(0, start - 2) : end + 2])
        return no_other_colour and (
            before in _BEFORE_PERSON or before in _COUNTING_WORDS or before in ("the", "with", "young")
        )

    def _first(self, tokens: Sequence[str], start: int, phrase: str) -> int | None:
        """The first token of the phrase in which the adjective is a noun (its article); None if there is none."""
        first = start - 1
        while first > 0 and start - first <= _MAX_MODIFIERS and tokens[first] in _MODIFIERS:
            first -= 1
        if first < 0:
            return None
        word = tokens[first]
        before = tokens[first - 1] if first else ","
        if phrase in self.colours:
            return first if word in _ARTICLES and before in _BEFORE_PERSON else None
        if word in _ARTICLES or word in _COUNTING_WORDS:
            return first if phrase in self._singular else None
        if word == "the":
            return first
        return first + 1 if word == "of" and before in _GROUP_NOUNS else None

    def _stands_alone(self, tokens: Sequence[str], first: int, end: int, colour: bool) -> bool:
        """Whether no noun follows that the adjective could describe."""
        after, second, third = (*tokens[end : end + 3], "", "", "")[:3]
        if after in ("", *_SENTENCE_ENDS):
            return not colour  # "a white." is a slip, or a wine
        if after in _RELATIVES_AND_AUXILIARIES:
            return True
        # "an elderly walking with a cane", not "an elderly looking man"; "the elderly dance", not "an elderly dance"
        actions = (
            _HUMAN_ACTIONS
            if colour
            else _ACTIONS
            if tokens[first] in _ARTICLES
            else _ACTIONS | _PLURAL_ACTIONS
        )
        if after in actions:
            return second in _AFTER_ACTION or second in _SENTENCE_ENDS or not second
        if colour:
            at_place = after in _PLACE_PREPOSITIONS and second not in self.colours
            return at_place or (after == "with" and second in _ARTICLES)
        if after in _CONJUNCTIONS:
            if second in self._words:  # "the elderly and disabled"
                return self._stands_alone(tokens, first, end + 2, colour)
            return (
                second in (*_ARTICLES, "the", "those")
                and third not in self._words
                and third not in _MODIFIERS
            )
        return after in _PREPOSITIONS or after == "'s"

    @cached_property
    def _singular(self) -> frozenset[str]:
        return frozenset(self.singular)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The last words of all phrases. A caption without any of them has no match."""
        return frozenset(tokenize(word)[-1] for word in (*self.singular, *self.plural, *self.the))

    @cached_property
    def _table(self) -> PhraseTable:
        kinds = ((self.not_naming, ""), (self.plural, _PLURAL), ((*self.singular, *self.the), _ADJECTIVE))
        return PhraseTable((word, kind) for words, kind in kinds for word in words)


def adjectives_as_nouns(path: str | Path | None = None) -> AdjectivesAsNouns:
    """Load the shipped adjectives of identity, or those of a file."""
    keys = {"singular", "plural", "the", "colours", "beside", "not_naming"}
    return load_word_list("adjective_as_noun", path, keys, _read_adjectives)


def _read_adjectives(reader: WordListReader) -> AdjectivesAsNouns:
    lists = {
        key: reader.words(key, reader.data[key]) if key in reader.data else ()
        for key in ("singular", "plural", "the", "colours", "beside", "not_naming")
    }
    if not any(lists[key] for key in ("singular", "plural", "the")):
        reader.note("lists of words: singular, plural or the", "none")
    return AdjectivesAsNouns(
        lists["singular"], lists["plural"], lists["the"], frozenset(lists["colours"]), frozenset(lists["beside"]),
        lists["not_naming"], reader.label,
    )  # fmt: skip
