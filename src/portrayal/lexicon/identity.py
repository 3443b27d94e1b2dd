"""Words by which captions say what social group people belong to, on several axes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from portrayal.errors import PortrayalError
from portrayal.lexicon.lexicon import Lexicon, load_lexicon, load_listed
from portrayal.lexicon.mentions import ALSO_DESCRIBE
from portrayal.lexicon.non_mentions import Nobody
from portrayal.lexicon.tokens import tokenize

NORP = ("nationality", "religion", "politics")  # spaCy's name for the three together
AXES = ("gender", "age", "ethnicity", *NORP)

# More words that may stand between "young" or "french" and the person, beside those that a Finder knows and the
# words of all axes. Colours are not among them: "an old blue and white police car".
_DESCRIBE = ALSO_DESCRIBE | frozenset(
    """
    , blond brunette redheaded red-headed haired long-haired short-haired curly-haired dark-haired brown-haired
    black-haired blond-haired blonde-haired red-haired gray-haired grey-haired white-haired dark-skinned light-skinned
    fair-skinned skinned bald balding shirtless barefoot bespectacled tattooed chubby overweight heavyset thin skinny
    slender muscular attractive cute lovely gorgeous adorable sweet sad serious angry curious tired laughing naked
    pregnant married single lone lonely homeless poor rich wealthy famous unidentified unknown fellow looking dressed
    baseball softball tennis soccer football basketball hockey volleyball rugby cricket golf lacrosse badminton
    martial sumo rodeo school college university police army military navy marine street folk pop rock hip hop jazz
    country film tv television movie theatre theater stage fashion opera ballet business office construction farm
    factory flower professional amateur traditional
    """.split()
)
_REACH = 3  # how many of them may stand in between


class Named(NamedTuple):
    """One place where a caption names a group, on one axis."""

    axis: str
    word: str  # the phrase as it is listed
    group: str
    start: int  # its first token
    length: int  # how many tokens it has


class _Use(NamedTuple):
    """What a phrase is on one axis."""

    axis: int
    group: str | None  # None where it names nobody
    conditional: bool  # it names the group only in front of a word for a person
    nobody: tuple[int, ...] = ()  # which of its tokens would be a person elsewhere: lady in "lady bug"


_Entry = tuple[tuple[str, ...], tuple[_Use, ...]]  # a phrase, and what it is on each axis that lists it


class IdentityWords:
    """Finds the words of several axes in one pass over a caption's tokens.

    On each axis words match as they do for a Finder: longest first, adjectives only in front of a word for a person,
    and not where they name nobody, which all finders tell alike
    (`Nobody`). What is a word for a person, and what may stand in between, is told by all
    lists together. A word stands for each axis that lists it.

    >>> words = identity_words()
    >>> [(one.axis, one.word) for one in words.find(tokenize("a young French girl with french fries"))]
    [('age', 'young'), ('nationality', 'french'), ('gender', 'girl'), ('age', 'girl')]
    """

    def __init__(self, lexicons: Mapping[str, Lexicon]):
        self.lexicons = dict(lexicons)
        self.axes = tuple(self.lexicons)
        uses: dict[tuple[str, ...], list[_Use]] = {}
        conditional: set[str] = set()
        people: set[str] = set()
        for axis, lexicon in enumerate(self.lexicons.values()):
            adjectives = {" ".join(tokenize(word)) for word in lexicon.before_person}
            conditional |= adjectives
            people.update(lexicon.neutral)
            for group, words in lexicon.groups.items():
                for word in words:
                    tokens = tuple(tokenize(word))
                    bound = " ".join(tokens) in adjectives
                    uses.setdefault(tokens, []).append(_Use(axis, group, bound))
                    if not bound:
                        people.add(word)
            named = {word for words in lexicon.groups.values() for word in words}
            for phrase in lexicon.not_naming:
                tokens = tuple(tokenize(phrase))
                nobody = tuple(place for place, token in enumerate(tokens) if token in named)
                uses.setdefault(tokens, []).append(_Use(axis, None, False, nobody))
        self._people = frozenset(people - conditional)
        self._describe = _DESCRIBE.union(*(phrase.split() for phrase in conditional))
        self._naming = frozenset(
            tokens[0] for tokens, used in uses.items() if any(use.group is not None for use in used)
        )
        # By two tokens, since dozens of phrases that name nobody begin with one word ("baby elephant", "baby carrots").
        self._longer: dict[tuple[str, str], list[_Entry]] = {}
        self._single: dict[str, list[_Entry]] = {}
        for tokens, used in sorted(uses.items(), key=lambda entry: -len(entry[0])):
            if len(tokens) == 1:
                self._single[tokens[0]] = [(tokens, tuple(used))]
            else:
                self._longer.setdefault((tokens[0], tokens[1]), []).append((tokens, tuple(used)))

    def find(self, tokens: Sequence[str]) -> list[Named]:
        """Every place where a group is named, from left to right.

        >>> [(one.word, one.start, one.length) for one in identity_words().find(tokenize("African American men"))]
        [('african american', 0, 2), ('men', 2, 1)]
        """
        if self._naming.isdisjoint(tokens):  # most captions of most systems end here
            return []
        found: list[tuple[int, int, _Use, str]] = []
        nobody: set[int] = set()
        taken = [0] * len(self.axes)  # on each axis, a token belongs to one phrase at most
        for start, pair in enumerate(zip_longest(tokens, tokens[1:], fillvalue="")):
            for phrase, uses in (*self._longer.get(pair, ()), *self._single.get(pair[0], ())):
                length = len(phrase)
                if length > 2 and tuple(tokens[start : start + length]) != phrase:
                    continue
                for use in uses:
                    if taken[use.axis] > start:
                        continue
                    taken[use.axis] = start + length
                    if use.group is None:
                        nobody.update(start + place for place in use.nobody)
                    else:
                        found.append((start, length, use, " ".join(phrase)))
        if not found:
            return []
        nowhere = Nobody(tokens)
        return [
            Named(self.axes[use.axis], word, use.group or "", start, length)
            for start, length, use, word in found
            if (
                self._before_person(tokens, start + length, nobody, nowhere)
                if use.conditional
                else not nowhere.at(start, length)
            )
        ]

    @property
    def label(self) -> str:
        """How settings name it: each list with its version and digest."""
        return " ".join(lexicon.label for lexicon in self.lexicons.values())

    def _before_person(
        self, tokens: Sequence[str], start: int, nobody: AbstractSet[int], nowhere: Nobody
    ) -> bool:
        for index, token in enumerate(tokens[start : start + _REACH + 1], start):
            if token in self._people and index not in nobody and not nowhere.at(index):
                return True
            if token not in self._describe:
                return False
        return False


def identity_words(own: Sequence[str | Path | Lexicon] = ()) -> IdentityWords:
    """The shipped axes. A list of one's own takes the place of the axis that its `attribute` names, or adds one.

    >>> identity_words().axes
    ('gender', 'age', 'ethnicity', 'nationality', 'religion', 'politics')
    """
    if not own:
        return _shipped()
    mine: dict[str, Lexicon] = {}
    for lexicon in map(load_lexicon, own):
        if not lexicon.attribute or not lexicon.groups:
            raise PortrayalError(
                f"The lexicon '{lexicon.name}' names no axis: it needs an attribute and a table [groups]."
            )
        if lexicon.attribute == "norp":
            raise PortrayalError(
                f"The lexicon '{lexicon.name}' names the axis 'norp', which is {', '.join(NORP)} together; "
                "name one of them."
            )
        if lexicon.attribute in mine:
            names = f"'{mine[lexicon.attribute].name}' and '{lexicon.name}'"
            raise PortrayalError(f"One lexicon for each axis; {names} both name '{lexicon.attribute}'.")
        mine[lexicon.attribute] = lexicon
    return IdentityWords(_shipped().lexicons | mine)


@cache
def _shipped() -> IdentityWords:
    # What stands for a person is the same on every axis and kept in one file.
    people = load_listed("people").neutral
    lexicons = {axis: load_listed(axis) for axis in AXES}
    for axis, lexicon in lexicons.items():
        named = {word for words in lexicon.groups.values() for word in words}
        lexicons[axis] = replace(lexicon, neutral=tuple(word for word in people if word not in named))
    return IdentityWords(lexicons)
