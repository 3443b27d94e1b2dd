"""The other text: a caption in which only the group words change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from portrayal.lexicon.find import Finder
from portrayal.lexicon.lexicon import Lexicon
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

_TAKE_SOMEONE_DOING = frozenset("let lets letting make makes making help helps helping watch watches".split())


@dataclass(frozen=True)
class Swapped:
    """A caption with its group words exchanged, what was changed, and what has no counterpart."""

    text: str
    changed: tuple[tuple[str, str], ...]
    left: tuple[str, ...]


@dataclass(frozen=True)
class Swapper:
    """Exchanges the words of a lexicon for their counterparts, keeping case and articles in order."""

    lexicon: Lexicon

    def swap(self, caption: str, to: str | None = None) -> Swapped:
        """Every group word becomes its counterpart; with `to`, only words of other groups change, into that one.

        >>> from portrayal.lexicon import load_lexicon
        >>> Swapper(load_lexicon("gender")).swap("A man gives her his hat.").text
        'A woman gives him her hat.'
        """
        tokens = [(m.group(), m.start(), m.end()) for m in TOKEN.finditer(caption)]
        lowered = [text.lower() for text, _, _ in tokens]
        mentions = {mention.start: mention for mention in self._finder.mentions(caption)}
        pieces: list[str] = []
        changed: list[tuple[str, str]] = []
        left: list[str] = []
        done = 0
        for index, (_, start, _) in enumerate(tokens):
            mention = mentions.get(start)
            if mention is None or mention.group == to:
                continue
            other = self._counterpart(mention.word, lowered, index, to)
            if other is None:
                left.append(mention.word)
                continue
            before = caption[done:start]
            if index and lowered[index - 1] in ("a", "an"):
                before = _with_article(before, other)
            pieces += [before, _cased(caption[start : mention.end], other)]
            changed.append((mention.word, other))
            done = mention.end
        return Swapped("".join([*pieces, caption[done:]]), tuple(changed), tuple(left))

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
        return {word: group for group, words in self.lexicon.groups.items() for word in words}

    @cached_property
    def _table(self) -> dict[str, tuple[str, ...]]:
        """The pairs in both directions; what the file lists first comes first."""
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


def _with_article(before: str, other: str) -> str:
    """`before` ends in "a " or "an "; make it fit the word that follows now."""
    stripped = before.rstrip()
    space = before[len(stripped) :]
    stem = stripped[:-2] if stripped.lower().endswith("an") else stripped[:-1]
    article = stripped[len(stem)] + ("n" if other[0] in "aeiou" else "")
    return stem + article + space
