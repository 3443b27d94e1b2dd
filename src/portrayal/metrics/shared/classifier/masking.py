"""Masking: the tokens of a caption, with the words that name the group hidden."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import Lexicon, MentionFinder, canonical_name, find_lexicon, load_lexicon, tokenize
from portrayal.lexicon.phrases import PhraseTable
from portrayal.study import COMBINED

UNKNOWN = "<unk>"
_MASK = "{attribute}word"


def mask_token(attribute: str) -> str:
    """Return the token that replaces every word naming a group, as in the published code (`genderword`).

    It is the same for every name of an attribute: a column called "Sex" gives the same numbers as "gender".
    """
    return _MASK.format(attribute=COMBINED.join(map(canonical_name, attribute.split(COMBINED))))


@dataclass(frozen=True)
class Mask:
    """Word lists to hide, each with its mask token; with `remove`, words are deleted instead of replaced."""

    lists: tuple[tuple[Lexicon, str], ...] = ()
    remove: bool = False
    caution: str | None = None  # why words that name the group remain visible, as a sentence

    @classmethod
    def for_attribute(
        cls,
        attribute: str,
        lexicon: str | Lexicon | None,
        mask: bool | None,
        remove: bool = False,
        always: bool = False,
    ) -> Mask:
        """Build the mask of an attribute.

        Parameters
        ----------
        attribute
            Name of the attribute. Parts of a combined attribute have a lexicon each.
        lexicon
            Word list to use instead of the default one.
        mask
            Whether to hide words. By default a given list is hidden, and a default list states itself whether
            it is.
        remove
            Delete words instead of replacing them by the mask token.
        always
            Hide default lists even if they state that they are not hidden.

        Raises
        ------
        Undefined
            If an attribute has no list: its words would stay visible, and the number would answer another
            question.
        """
        parts = attribute.split(COMBINED)
        if mask is False:
            if lexicon is not None:
                raise PortrayalError("A list of words to hide was given, and masking is off; leave one out.")
            return cls(caution=f"No words for {_listed(parts)} were hidden, as was asked (--no-mask).")
        if lexicon is not None:
            words = load_lexicon(lexicon)
            others = [part for part in parts if not words.matches_attribute(part)] if len(parts) > 1 else []
            visible = (
                f"No words for {_listed(others)} were hidden: the list is '{words.name}'." if others else None
            )
            return cls(((words, mask_token(attribute)),), remove, visible)
        hidden, shown_parts = [], []
        for part in parts:
            default = find_lexicon(part)
            if default is None:
                raise Undefined(
                    f"No shipped lexicon has words that name '{part}', so nothing can be hidden; give one with "
                    "--lexicon FILE (lexicon=...), or leave all words in with --no-mask (mask=False)."
                )
            if mask or always or default.hide:
                hidden.append((default, mask_token(part)))
            else:
                shown_parts.append(part)
        visible = (
            f"No words for {_listed(shown_parts)} were hidden, as published; --mask hides them."
            if shown_parts
            else None
        )
        return cls(tuple(hidden), remove, visible)

    def checked(self, captions: Iterable[str]) -> Mask:
        """Return this mask, or raise Undefined if a list has no word in any of these captions.

        If captions have neutral words for people only, the list fits but there is nothing to hide; `caution`
        says so.
        """
        if not self.lists:
            return self
        captions = list(dict.fromkeys(captions))
        unused = [
            words for words, _ in self.lists if captions and not _any_contains(captions, _masked_words(words))
        ]
        for words in unused:
            if not words.neutral or not _any_contains(captions, words.neutral):
                raise Undefined(
                    f"No caption has a word of the lexicon '{words.name}' (language: {words.language}), so nothing can "
                    "be hidden; give a list for these captions with --lexicon FILE (lexicon=...), or leave all words "
                    "in with --no-mask (mask=False)."
                )
        if not unused:
            return self
        names = _listed([f"'{words.name}'" for words in unused])
        return replace(
            self, caution=f"No word of the lexicon {names} stands in a caption: nothing was hidden."
        )

    @property
    def tokens(self) -> set[str]:
        return set() if self.remove else {token for _, token in self.lists}

    @property
    def label(self) -> str | None:
        """Name of the mask in the settings of a row."""
        return "+".join(words.mask_label for words, _ in self.lists) or None

    def apply(self, captions: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the lower-cased, masked tokens of each caption."""
        finders = [(MentionFinder(words), token) for words, token in self.lists]
        read = []
        for caption in captions:
            words = tokenize(caption)
            for finder, token in finders:
                words = finder.mask_words(words, None if self.remove else token)
            read.append(tuple(words))
        return read


def _masked_words(lexicon: Lexicon) -> tuple[str, ...]:
    return (*(word for words in lexicon.groups.values() for word in words), *lexicon.mask_also)


def _any_contains(captions: Iterable[str], words: Sequence[str]) -> bool:
    """Whether any caption contains any of the words."""
    table = PhraseTable([(word, "") for word in words])
    return any(next(table.find(tokenize(caption)), None) is not None for caption in captions)


def _listed(names: Sequence[str]) -> str:
    """Join names in a sentence.

    >>> _listed(["gender", "age", "race"])
    'gender, age and race'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def within_vocabulary(words: Sequence[tuple[str, ...]], vocabulary: Collection[str]) -> list[tuple[str, ...]]:
    """Replace every word outside the vocabulary by the unknown token.

    >>> within_vocabulary([("a", "unicycle", "genderword")], {"a", "genderword"})
    [('a', '<unk>', 'genderword')]
    """
    known = set(vocabulary)
    return [tuple(word if word in known else UNKNOWN for word in caption) for caption in words]
