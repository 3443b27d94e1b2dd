"""Identity words: words that name the social group of people, on several axes at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from portrayal.errors import PortrayalError
from portrayal.lexicon.lexicon import Lexicon, load_identity_list, load_lexicon
from portrayal.lexicon.mention_finder import PERSON_MODIFIERS
from portrayal.lexicon.non_mentions import NonMentions
from portrayal.lexicon.tokens import tokenize

NORP = ("nationality", "religion", "politics")  # spaCy's name for the three together
AXES = ("gender", "age", "ethnicity", *NORP)

# Words allowed between "young" or "french" and the person, in addition to those of MentionFinder and the words of all
# axes. Colours are excluded: "an old blue and white police car".
_MODIFIERS = PERSON_MODIFIERS | frozenset(
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
_MAX_MODIFIERS = 3  # maximum number of words in between


class IdentityMention(NamedTuple):
    """A word or phrase of a caption that names a group on one axis."""

    axis: str
    word: str  # the phrase as it is listed
    group: str
    start: int  # its first token
    length: int  # how many tokens it has


class PhraseUse(NamedTuple):
    """Meaning of a phrase on one axis."""

    axis: int
    group: str | None  # None if it names nobody
    needs_person: bool  # it names the group only before a word for a person
    non_person_tokens: tuple[int, ...] = ()  # tokens that name a person elsewhere: lady in "lady bug"


_Entry = tuple[tuple[str, ...], tuple[PhraseUse, ...]]  # a phrase and its meaning on each axis that lists it


class IdentityWords:
    """Finds the words of several axes in one pass over a caption's tokens.

    On each axis words match as in `MentionFinder`: longest first, adjectives only before a word for a person, and not
    where they name nobody (`NonMentions`). The words for a person and the words allowed in between come from all lists
    together. A word counts on each axis that lists it.

    Parameters
    ----------
    lexicons : mapping of str to Lexicon
        One lexicon for each axis.

    Examples
    --------
    >>> words = identity_words()
    >>> [(mention.axis, mention.word) for mention in words.find(tokenize("a young French girl with french fries"))]
    [('age', 'young'), ('nationality', 'french'), ('gender', 'girl'), ('age', 'girl')]
    """

    def __init__(self, lexicons: Mapping[str, Lexicon]):
        self.lexicons = dict(lexicons)
        self.axes = tuple(self.lexicons)
        uses: dict[tuple[str, ...], list[PhraseUse]] = {}
        conditional: set[str] = set()
        people: set[str] = set()
        for axis, lexicon in enumerate(self.lexicons.values()):
            adjectives = {" ".join(tokenize(word)) for word in lexicon.before_person}
            conditional |= adjectives
            people.update(lexicon.neutral)
            for group, words in lexicon.groups.items():
                for word in words:
                    tokens = tuple(tokenize(word))
                    needs_person = " ".join(tokens) in adjectives
                    uses.setdefault(tokens, []).append(PhraseUse(axis, group, needs_person))
                    if not needs_person:
                        people.add(word)
            group_words = {word for words in lexicon.groups.values() for word in words}
            for phrase in lexicon.not_naming:
                tokens = tuple(tokenize(phrase))
                non_person_tokens = tuple(index for index, token in enumerate(tokens) if token in group_words)
                uses.setdefault(tokens, []).append(PhraseUse(axis, None, False, non_person_tokens))
        self._person_words = frozenset(people - conditional)
        self._modifiers = _MODIFIERS.union(*(phrase.split() for phrase in conditional))
        self._first_tokens = frozenset(
            tokens[0]
            for tokens, uses_of_phrase in uses.items()
            if any(use.group is not None for use in uses_of_phrase)
        )
        # Keyed by two tokens, because dozens of phrases that name nobody share their first word ("baby elephant",
        # "baby carrots").
        self._longer: dict[tuple[str, str], list[_Entry]] = {}
        self._single: dict[str, list[_Entry]] = {}
        for tokens, uses_of_phrase in sorted(uses.items(), key=lambda entry: -len(entry[0])):
            if len(tokens) == 1:
                self._single[tokens[0]] = [(tokens, tuple(uses_of_phrase))]
            else:
                self._longer.setdefault((tokens[0], tokens[1]), []).append((tokens, tuple(uses_of_phrase)))

    def find(self, tokens: Sequence[str]) -> list[IdentityMention]:
        """Find all mentions of a group, from left to right.

        >>> mentions = identity_words().find(tokenize("African American men"))
        >>> [(mention.word, mention.start, mention.length) for mention in mentions]
        [('african american', 0, 2), ('men', 2, 1)]
        """
        if self._first_tokens.isdisjoint(tokens):  # most captions return here
            return []
        candidates: list[tuple[int, int, PhraseUse, str]] = []
        non_person_indices: set[int] = set()
        end_of_last = [0] * len(self.axes)  # on each axis, a token belongs to at most one phrase
        for start, pair in enumerate(zip_longest(tokens, tokens[1:], fillvalue="")):
            for phrase, uses in (*self._longer.get(pair, ()), *self._single.get(pair[0], ())):
                length = len(phrase)
                if length > 2 and tuple(tokens[start : start + length]) != phrase:
                    continue
                for use in uses:
                    if end_of_last[use.axis] > start:
                        continue
                    end_of_last[use.axis] = start + length
                    if use.group is None:
                        non_person_indices.update(start + offset for offset in use.non_person_tokens)
                    else:
                        candidates.append((start, length, use, " ".join(phrase)))
        if not candidates:
            return []
        non_mentions = NonMentions(tokens)
        return [
            IdentityMention(self.axes[use.axis], word, use.group or "", start, length)
            for start, length, use, word in candidates
            if (
                self._precedes_person(tokens, start + length, non_person_indices, non_mentions)
                if use.needs_person
                else not non_mentions.covers(start, length)
            )
        ]

    @property
    def label(self) -> str:
        """Label in result settings: each list with its version and digest."""
        return " ".join(lexicon.label for lexicon in self.lexicons.values())

    def _precedes_person(
        self,
        tokens: Sequence[str],
        start: int,
        non_person_indices: AbstractSet[int],
        non_mentions: NonMentions,
    ) -> bool:
        for index, token in enumerate(tokens[start : start + _MAX_MODIFIERS + 1], start):
            if (
                token in self._person_words
                and index not in non_person_indices
                and not non_mentions.covers(index)
            ):
                return True
            if token not in self._modifiers:
                return False
        return False


def identity_words(lexicons: Sequence[str | Path | Lexicon] = ()) -> IdentityWords:
    """The shipped axes, with a user's lexicons added or replacing them.

    Parameters
    ----------
    lexicons : sequence of str, Path or Lexicon
        User lexicons. Each replaces the axis that its `attribute` names, or adds one.

    Returns
    -------
    IdentityWords

    Examples
    --------
    >>> identity_words().axes
    ('gender', 'age', 'ethnicity', 'nationality', 'religion', 'politics')
    """
    if not lexicons:
        return _shipped()
    by_axis: dict[str, Lexicon] = {}
    for lexicon in map(load_lexicon, lexicons):
        if not lexicon.attribute or not lexicon.groups:
            raise PortrayalError(
                f"The lexicon '{lexicon.name}' names no axis: it needs an attribute and a table [groups]."
            )
        if lexicon.attribute == "norp":
            raise PortrayalError(
                f"The lexicon '{lexicon.name}' names the axis 'norp', which is {', '.join(NORP)} together; "
                "name one of them."
            )
        if lexicon.attribute in by_axis:
            names = f"'{by_axis[lexicon.attribute].name}' and '{lexicon.name}'"
            raise PortrayalError(f"One lexicon for each axis; {names} both name '{lexicon.attribute}'.")
        by_axis[lexicon.attribute] = lexicon
    return IdentityWords(_shipped().lexicons | by_axis)


@cache
def _shipped() -> IdentityWords:
    # The neutral words for a person are the same on every axis and stored in one file.
    people = load_identity_list("people").neutral
    lexicons = {axis: load_identity_list(axis) for axis in AXES}
    for axis, lexicon in lexicons.items():
        group_words = {word for words in lexicon.groups.values() for word in words}
        lexicons[axis] = replace(lexicon, neutral=tuple(word for word in people if word not in group_words))
    return IdentityWords(lexicons)
