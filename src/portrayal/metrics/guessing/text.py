"""What a guesser reads of a caption: its words, with those that name the group hidden."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from portrayal.errors import PortrayalError, Undefined
from portrayal.lexicon import Finder, Lexicon, lexicon_for, load_lexicon, tokenize
from portrayal.study import COMBINED

UNKNOWN = "<unk>"
_MASK = "{attribute}word"


def mask_token(attribute: str) -> str:
    """The one token that stands for every word naming a group, as the published code has it (`genderword`)."""
    return _MASK.format(attribute=attribute)


@dataclass(frozen=True)
class Mask:
    """The word lists that are hidden, each behind its own token; with `remove`, words leave no trace instead."""

    lists: tuple[tuple[Lexicon, str], ...] = ()
    remove: bool = False

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
        (unless it is `always` hidden). Of attributes combined, each has its own list.
        """
        if mask is False:
            if lexicon is not None:
                raise PortrayalError("A list of words to hide was given, and not to hide any; leave one out.")
            return cls()
        if lexicon is not None:
            return cls(((load_lexicon(lexicon), mask_token(attribute)),), remove)
        found = []
        for part in attribute.split(COMBINED):
            try:
                words = lexicon_for(part)
            except Undefined:
                continue  # nothing is known to name this attribute, so there is nothing to hide
            if mask or always or words.hide:
                found.append((words, mask_token(part)))
        if mask and not found:
            raise Undefined(
                f"No shipped lexicon has words that name '{attribute}', so there is nothing to hide; give one with "
                "--lexicon FILE (or lexicon=...)."
            )
        return cls(tuple(found), remove)

    @property
    def tokens(self) -> set[str]:
        return set() if self.remove else {token for _, token in self.lists}

    @property
    def label(self) -> str | None:
        """How settings name it."""
        return "+".join(words.label for words, _ in self.lists) or None

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


def within_vocabulary(words: Sequence[tuple[str, ...]], vocabulary: Collection[str]) -> list[tuple[str, ...]]:
    """The same captions as told by somebody who knows these words only: every other word is the unknown one.

    >>> within_vocabulary([("a", "unicycle", "genderword")], {"a", "genderword"})
    [('a', '<unk>', 'genderword')]
    """
    kept = set(vocabulary)
    return [tuple(word if word in kept else UNKNOWN for word in caption) for caption in words]
