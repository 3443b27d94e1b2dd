"""Lexical diversity of a set of captions: a model could memorise a grammar that repeats itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from portrayal.lexicon import tokenize


@dataclass(frozen=True)
class CaptionDiversity:
    """Counts and shares that describe how diverse captions are."""

    captions: int
    tokens: int
    types: int
    # Distinct words per word.
    type_token_ratio: float | None
    # Share of captions that equal another one, word for word.
    duplicate_share: float | None


def caption_diversity(captions: Sequence[str]) -> CaptionDiversity:
    """Return the lexical diversity of captions.

    Both shares depend on the number of captions, so compare sets of equal size.

    >>> caption_diversity(["a man", "A man.", "a dog"])
    CaptionDiversity(captions=3, tokens=6, types=3, type_token_ratio=0.5, duplicate_share=0.6666666666666666)
    """
    tokenized = [tuple(word for word in tokenize(caption) if word[0].isalnum()) for caption in captions]
    word_counts = Counter(word for caption in tokenized for word in caption)
    caption_counts = Counter(tokenized)
    repeated = sum(count for count in caption_counts.values() if count > 1)
    tokens = word_counts.total()
    return CaptionDiversity(
        len(tokenized),
        tokens,
        len(word_counts),
        len(word_counts) / tokens if tokens else None,
        repeated / len(tokenized) if tokenized else None,
    )
