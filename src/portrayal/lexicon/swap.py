"""The other text: a caption in which only the group words change."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from portrayal.lexicon.lexicon import Lexicon
from portrayal.lexicon.mentions import Finder, Mention
from portrayal.lexicon.tokens import TOKEN

# English pronouns by the part they play. "her" is his or him, and "his" is her or hers; the part decides.
_DETERMINER, _OBJECT, _POSSESSIVE = "determiner", "object", "possessive"
_PARTS = {
    "his": {_DETERMINER, _POSSESSIVE},
    "him": {_OBJECT},
    "her": {_DETERMINER, _OBJECT},
    "hers": {_POSSESSIVE},
    "their": {_DETERMINER},
    "them": {_OBJECT},
    "theirs": {_POSSESSIVE},
}
# After a possessive stands what is owned; before one of these words nothing is owned ("gives her a cake",
# "looks at her while", "the bag is his and"), so the pronoun stands alone.
_NO_OWNED_THING = frozenset(
    "a an the this that these those and or but of with without in on at by to from for near behind beside "
    "between over under into onto through during while as is are was were be if so than then when where who "
    "which up down off out away back around along there here it them him his her hers their my your our its".split()
)

# "back" is owned ("on her back", "behind his back") unless somebody is taken back ("brings her back").
_BESIDE_A_BACK = frozenset("on behind off across against over upon".split())

_ARTICLE = re.compile(r"(?<![\w-])(a)n?(\s+)$", re.IGNORECASE)
_TAKE_SOMEONE_DOING = frozenset("let lets letting make makes making help helps helping watch watches".split())


@dataclass(frozen=True)
class Swapped:
    """A caption with its group words exchanged, what was changed, and what has no counterpart."""

    text: str
    changed: tuple[tuple[str, str], ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Swapper:
    """Exchanges the words of a lexicon for their counterparts, keeping case and articles in order.

    With a `table` of its own, words become what it says, and not the other way round.
    """

    lexicon: Lexicon
    table: Mapping[str, tuple[str, ...]] | None = None

    def swap(self, caption: str, to: str | None = None) -> Swapped:
        """Every group word becomes its counterpart; with `to`, only words of other groups change, into that one.

        >>> from portrayal.lexicon import load_lexicon
        >>> Swapper(load_lexicon("gender")).swap("A man gives her his hat.").text
        'A woman gives him her hat.'
        """
        found = [one for one in self.counterparts(caption, to) if one[0].group != to]
        places = [(mention.start, mention.end, other) for mention, other in found if other is not None]
        changed = tuple((mention.word, other) for mention, other in found if other is not None)
        left = tuple(mention.word for mention, other in found if other is None)
        return Swapped(replaced(caption, places), changed, left)

    def counterparts(self, caption: str, to: str | None = None) -> list[tuple[Mention, str | None]]:
        """Every place where a group is named, with the word that would stand there; None where there is none."""
        tokens = [(m.group().lower(), m.start()) for m in TOKEN.finditer(caption)]
        lowered = [text for text, _ in tokens]
        mentions = {mention.start: mention for mention in self._finder.mentions(caption)}
        return [
            (mentions[start], self._counterpart(mentions[start].word, lowered, index, to))
            for index, (_, start) in enumerate(tokens)
            if start in mentions
        ]

    def _counterpart(self, word: str, words: Sequence[str], index: int, to: str | None) -> str | None:
        others = self._table.get(word, ())
        if to is not None:
            others = tuple(other for other in others if self._group.get(other, to) == to)
        if len(others) > 1 and word in _PARTS:
            part = _part_of(word, words[index - 1] if index else "", words[index + 1 :])
            fitting = [other for other in others if part in _PARTS.get(other, ())]
            others = tuple(fitting) or others
        return others[0] if others else None

    @cached_property
    def _finder(self) -> Finder:
        return Finder(self.lexicon)

    @cached_property
    def _group(self) -> dict[str, str]:
        return {word: group for group, words in self.lexicon.naming.items() for word in words}

    @cached_property
    def _table(self) -> dict[str, tuple[str, ...]]:
        """The pairs in both directions; what the file lists first comes first."""
        if self.table is not None:
            return dict(self.table)
        table: dict[str, list[str]] = {}
        for word, others in self.lexicon.swap.items():
            table.setdefault(word, []).extend(others)
        for word, others in self.lexicon.swap.items():
            for other in others:
                if word not in table.setdefault(other, []):
                    table[other].append(word)
        return {word: tuple(others) for word, others in table.items()}


def _part_of(word: str, before: str, after: Sequence[str]) -> str:
    """The part a pronoun plays, from the words around it."""
    following, second = (*after[:2], "", "")[:2]
    stands_alone = not _can_be_owned(following)
    if following == "back" and (_OBJECT not in _PARTS[word] or before in _BESIDE_A_BACK):
        stands_alone = False
    if following.endswith("ing") and not _can_be_owned(
        second
    ):  # "a photo of her smiling", not "her smiling face"
        stands_alone = True
    if before in _TAKE_SOMEONE_DOING:
        stands_alone = True
    alone = next(part for part in (_OBJECT, _POSSESSIVE, _DETERMINER) if part in _PARTS[word])
    return alone if stands_alone or _DETERMINER not in _PARTS[word] else _DETERMINER


def _can_be_owned(word: str) -> bool:
    return bool(word) and word[0].isalnum() and word not in _NO_OWNED_THING


def _cased(original: str, other: str) -> str:
    if len(original) > 1 and original.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if original[:1].isupper() else other


def replaced(caption: str, places: Sequence[tuple[int, int, str]]) -> str:
    """The caption with new words in some places (start, end, word), in their case, articles made to fit.

    A word that gives way to nothing takes the space behind it along.

    >>> replaced("An old actor", [(3, 6, ""), (7, 12, "waiter")])
    'A waiter'
    """
    made, done, gone = "", 0, False
    for start, end, word in places:
        between = caption[done:start]
        made = _joined(made, between) if gone else made + between
        if word:
            made = _joined(made, _cased(caption[start:end], word))
        gone, done = not word, end
        if gone:
            done += len(caption[end:]) - len(caption[end:].lstrip())
    return _joined(made, caption[done:]) if gone else made + caption[done:]


def _joined(before: str, after: str) -> str:
    """Two pieces of text; an article at the end of the first is made to fit the second."""
    article = _ARTICLE.search(before)
    if article is None or not after[:1].isalpha():
        return before + after
    return before[: article.end(1)] + ("n" if after[0].lower() in "aeiou" else "") + article.group(2) + after
