"""Swap the group words of a caption with their counterparts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from portrayal.lexicon.lexicon import Lexicon
from portrayal.lexicon.mention_finder import Mention, MentionFinder
from portrayal.lexicon.tokens import TOKEN

# Grammatical roles of English pronouns. "her" is his or him, and "his" is her or hers, depending on the role.
_DETERMINER, _OBJECT, _POSSESSIVE = "determiner", "object", "possessive"
_PRONOUN_ROLES = {
    "his": {_DETERMINER, _POSSESSIVE},
    "him": {_OBJECT},
    "her": {_DETERMINER, _OBJECT},
    "hers": {_POSSESSIVE},
    "their": {_DETERMINER},
    "them": {_OBJECT},
    "theirs": {_POSSESSIVE},
}
# A possessive determiner is followed by the possession. These words are no possessions ("gives her a cake",
# "looks at her while", "the bag is his and"), so the pronoun before them stands alone.
_NOT_POSSESSIONS = frozenset(
    "a an the this that these those and or but of with without in on at by to from for near behind beside "
    "between over under into onto through during while as is are was were be if so than then when where who "
    "which up down off out away back around along there here it them him his her hers their my your our its".split()
)

# "back" is a possession after these words ("on her back", "behind his back"), else an adverb ("brings her back").
_BEFORE_BACK = frozenset("on behind off across against over upon".split())

_ARTICLE = re.compile(r"(?<![\w-])(a)n?(\s+)$", re.IGNORECASE)
_CAUSATIVE_VERBS = frozenset("let lets letting make makes making help helps helping watch watches".split())


@dataclass(frozen=True)
class SwapResult:
    """A caption with swapped group words.

    Parameters
    ----------
    text : str
        The new caption.
    changed : tuple of (str, str)
        Swapped words with their counterparts.
    unswapped : tuple of str
        Group words without a counterpart.
    """

    text: str
    changed: tuple[tuple[str, str], ...]
    unswapped: tuple[str, ...]


@dataclass(frozen=True)
class Swapper:
    """Swaps the words of a lexicon with their counterparts and adapts case and articles.

    Parameters
    ----------
    lexicon : Lexicon
        The word list.
    table : mapping of str to tuple of str, optional
        Counterparts, used in this direction only. Default: the lexicon's `swap` table in both directions.
    """

    lexicon: Lexicon
    table: Mapping[str, tuple[str, ...]] | None = None

    def swap(self, caption: str, to: str | None = None) -> SwapResult:
        """Swap every group word with its counterpart.

        Parameters
        ----------
        caption : str
            The caption.
        to : str, optional
            Change only the words of other groups, into this group.

        Returns
        -------
        SwapResult

        Examples
        --------
        >>> from portrayal.lexicon import load_lexicon
        >>> Swapper(load_lexicon("gender")).swap("A man gives her his hat.").text
        'A woman gives him her hat.'
        """
        counterparts = [pair for pair in self.counterparts(caption, to) if pair[0].group != to]
        replacements = [
            (mention.start, mention.end, other) for mention, other in counterparts if other is not None
        ]
        changed = tuple((mention.word, other) for mention, other in counterparts if other is not None)
        unswapped = tuple(mention.word for mention, other in counterparts if other is None)
        return SwapResult(replace_spans(caption, replacements), changed, unswapped)

    def counterparts(self, caption: str, to: str | None = None) -> list[tuple[Mention, str | None]]:
        """All mentions of a caption with their counterparts; None for a mention without one."""
        tokens = [(m.group().lower(), m.start()) for m in TOKEN.finditer(caption)]
        lowered = [text for text, _ in tokens]
        mentions = {mention.start: mention for mention in self._finder.find(caption)}
        return [
            (mentions[start], self._counterpart(mentions[start].word, lowered, index, to))
            for index, (_, start) in enumerate(tokens)
            if start in mentions
        ]

    def _counterpart(self, word: str, words: Sequence[str], index: int, to: str | None) -> str | None:
        others = self._table.get(word, ())
        if to is not None:
            others = tuple(other for other in others if self._group_of_word.get(other, to) == to)
        if len(others) > 1 and word in _PRONOUN_ROLES:
            role = _pronoun_role(word, words[index - 1] if index else "", words[index + 1 :])
            same_role = [other for other in others if role in _PRONOUN_ROLES.get(other, ())]
            others = tuple(same_role) or others
        return others[0] if others else None

    @cached_property
    def _finder(self) -> MentionFinder:
        return MentionFinder(self.lexicon)

    @cached_property
    def _group_of_word(self) -> dict[str, str]:
        return {word: group for group, words in self.lexicon.naming_words.items() for word in words}

    @cached_property
    def _table(self) -> dict[str, tuple[str, ...]]:
        """Counterparts in both directions, in the order of the file."""
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


def _pronoun_role(word: str, before: str, after: Sequence[str]) -> str:
    """The grammatical role of a pronoun, from the words around it."""
    following, second = (*after[:2], "", "")[:2]
    stands_alone = not _is_possession(following)
    if following == "back" and (_OBJECT not in _PRONOUN_ROLES[word] or before in _BEFORE_BACK):
        stands_alone = False
    if following.endswith("ing") and not _is_possession(
        second
    ):  # "a photo of her smiling", not "her smiling face"
        stands_alone = True
    if before in _CAUSATIVE_VERBS:
        stands_alone = True
    standalone_role = next(
        role for role in (_OBJECT, _POSSESSIVE, _DETERMINER) if role in _PRONOUN_ROLES[word]
    )
    return standalone_role if stands_alone or _DETERMINER not in _PRONOUN_ROLES[word] else _DETERMINER


def _is_possession(word: str) -> bool:
    return bool(word) and word[0].isalnum() and word not in _NOT_POSSESSIONS


def _match_case(original: str, other: str) -> str:
    if len(original) > 1 and original.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if original[:1].isupper() else other


def replace_spans(caption: str, replacements: Sequence[tuple[int, int, str]]) -> str:
    """Replace character spans (start, end, word) of a caption and adapt the case of the words and the articles.

    An empty word also removes the space after it.

    >>> replace_spans("An old actor", [(3, 6, ""), (7, 12, "waiter")])
    'A waiter'
    """
    text, position, removed = "", 0, False
    for start, end, word in replacements:
        between = caption[position:start]
        text = _join(text, between) if removed else text + between
        if word:
            text = _join(text, _match_case(caption[start:end], word))
        removed, position = not word, end
        if removed:
            position += len(caption[end:]) - len(caption[end:].lstrip())
    return _join(text, caption[position:]) if removed else text + caption[position:]


def _join(before: str, after: str) -> str:
    """Concatenate two texts. An article at the end of the first is adapted to the second."""
    article = _ARTICLE.search(before)
    if article is None or not after[:1].isalpha():
        return before + after
    return before[: article.end(1)] + ("n" if after[0].lower() in "aeiou" else "") + article.group(2) + after
