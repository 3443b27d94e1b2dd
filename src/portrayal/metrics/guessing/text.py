"""What a guesser reads of a caption: its words, with those that name the group hidden."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from portrayal.lexicon import Finder, Lexicon, tokenize

UNKNOWN = "<unk>"
_MASK = "{attribute}word"


def mask_token(attribute: str) -> str:
    """The one token that stands for every word naming a group, as the published code has it (`genderword`)."""
    return _MASK.format(attribute=attribute)


def masked_words(captions: Sequence[str], hidden: Lexicon | None, token: str) -> list[tuple[str, ...]]:
    """The words of each caption; those that the lexicon hides become the token. Without a lexicon nothing is hidden."""
    finder = None if hidden is None else Finder(hidden)
    known: dict[str, tuple[str, ...]] = {}  # generated captions repeat a lot
    for caption in captions:
        if caption not in known:
            known[caption] = tuple(tokenize(caption if finder is None else finder.mask(caption, token)))
    return [known[caption] for caption in captions]


def within_vocabulary(words: Sequence[tuple[str, ...]], vocabulary: Collection[str]) -> list[tuple[str, ...]]:
    """The same captions as told by somebody who knows these words only: every other word is the unknown one.

    >>> within_vocabulary([("a", "unicycle", "genderword")], {"a", "genderword"})
    [('a', '<unk>', 'genderword')]
    """
    kept = set(vocabulary)
    return [tuple(word if word in kept else UNKNOWN for word in caption) for caption in words]
