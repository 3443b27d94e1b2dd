"""What a guesser reads of a caption: its words, with those that name the group hidden."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import Finder, Lexicon, canonical_name, find_lexicon, load_lexicon, tokenize
from portrayal.lexicon.phrases import PhraseTable
from portrayal.study import COMBINED

UNKNOWN = "<unk>"
_MASK = "{attribute}word"


def mask_token(attribute: str) -> str:
    """The one token that stands for every word naming a group, as the published code has it (`genderword`).

    It is the same for every name of an attribute, so that a column called "Sex" gives the numbers of "gender".
    """
    return _MASK.format(attribute=COMBINED.join(map(canonical_name, attribute.split(COMBINED))))


@dataclass(frozen=True)
class Mask:
    """The word lists that are hidden, each behind its own token; with `remove`, words leave no trace instead."""

    lists: tuple[tuple[Lexicon, str], ...] = ()
    remove: bool = False
    visible: str | None = None  # why words that name the group can still be read, as a sentence

    @classmethod
    def for_attribute(
        cls,
        attribute: str,
        lexicon: str | Lexicon | None,
        mask: bool | None,
        remove: bool = False,
        always: bool = False,
    ) -> Mask:
        """The list asked for, else the default ones of the attribute; none where nothing is to be hidden.

        Unless it is said whether to mask, a list that is asked for is hidden, and a default one says so itself
        (unless it is `always` hidden). Of attributes combined, each has its own list. An attribute without a list is
        refused: its words would stay readable, and the number would be that of another question.
        """
        parts = attribute.split(COMBINED)
        if mask is False:
            if lexicon is not None:
                raise PortrayalError("A list of words to hide was given, and not to hide any; leave one out.")
            return cls(visible=f"No words for {_all(parts)} were hidden, as was asked (--no-mask).")
        if lexicon is not None:
            words = load_lexicon(lexicon)
            others = [part for part in parts if not words.is_about(part)] if len(parts) > 1 else []
            visible = (
                f"No words for {_all(others)} were hidden: the list is '{words.name}'." if others else None
            )
            return cls(((words, mask_token(attribute)),), remove, visible)
        found, left = [], []
        for part in parts:
            default = find_lexicon(part)
            if default is None:
                raise Undefined(
                    f"No shipped lexicon has words that name '{part}', so nothing can be hidden; give one with "
                    "--lexicon FILE (lexicon=...), or leave all words in with --no-mask (mask=False)."
                )
            if mask or always or default.hide:
                found.append((default, mask_token(part)))
            else:
                left.append(part)
        visible = f"No words for {_all(left)} were hidden, as published; --mask hides them." if left else None
        return cls(tuple(found), remove, visible)

    def checked(self, captions: Iterable[str]) -> Mask:
        """The same, refused where a list cannot hide a word in any of these captions.

        Captions that speak of people in neutral words only are read all right, and hold nothing to hide: that is said.
        """
        if not self.lists:
            return self
        captions = list(dict.fromkeys(captions))
        unused = [words for words, _ in self.lists if captions and not _holds(captions, _hidden_words(words))]
        for words in unused:
            if not words.neutral or not _holds(captions, words.neutral):
                raise Undefined(
                    f"No caption has a word of the lexicon '{words.name}' (language: {words.language}), so nothing can "
                    "be hidden; give a list for these captions with --lexicon FILE (lexicon=...), or leave all words "
                    "in with --no-mask (mask=False)."
                )
        if not unused:
            return self
        names = _all([f"'{words.name}'" for words in unused])
        return replace(
            self, visible=f"No word of the lexicon {names} stands in a caption: nothing was hidden."
        )

    @property
    def tokens(self) -> set[str]:
        return set() if self.remove else {token for _, token in self.lists}

    @property
    def label(self) -> str | None:
        """How settings name it."""
        return "+".join(words.mask_label for words, _ in self.lists) or None

    def read(self, captions: Sequence[str]) -> list[tuple[str, ...]]:
        """The words of each caption, lower-cased."""
        finders = [(Finder(words), token) for words, token in self.lists]
        read = []
        for caption in captions:
            words = tokenize(caption)
            for finder, token in finders:
                words = finder.mask_words(words, None if self.remove else token)
            read.append(tuple(words))
        return read


def _hidden_words(lexicon: Lexicon) -> tuple[str, ...]:
    return (*(word for words in lexicon.groups.values() for word in words), *lexicon.mask_also)


def _holds(captions: Iterable[str], words: Sequence[str]) -> bool:
    """Whether any caption has any of the words."""
    table = PhraseTable([(word, "") for word in words])
    return any(next(table.find(tokenize(caption)), None) is not None for caption in captions)


def _all(names: Sequence[str]) -> str:
    """
    >>> _all(["gender", "age", "race"])
    'gender, age and race'
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def within_vocabulary(words: Sequence[tuple[str, ...]], vocabulary: Collection[str]) -> list[tuple[str, ...]]:
    """The same captions as told by somebody who knows these words only: every other word is the unknown one.

    >>> within_vocabulary([("a", "unicycle", "genderword")], {"a", "genderword"})
    [('a', '<unk>', 'genderword')]
    """
    kept = set(vocabulary)
    return [tuple(word if word in kept else UNKNOWN for word in caption) for caption in words]
