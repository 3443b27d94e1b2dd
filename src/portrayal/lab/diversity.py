"""How varied a set of captions is: a grammar that repeats itself could be learnt by heart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from portrayal.lexicon import tokenize


@dataclass(frozen=True)
class Variety:
    captions: int
    tokens: int
    types: int
    type_token: float | None  # distinct words for each word said
    duplicates: float | None  # share of captions that another one equals, word for word


def variety(captions: Sequence[str]) -> Variety:
    """Counted over all captions given; both shares depend on how many there are, so compare equal numbers.

    >>> variety(["a man", "A man.", "a dog"])
    Variety(captions=3, tokens=6, types=3, type_token=0.5, duplicates=0.6666666666666666)
    """
    said = [tuple(word for word in tokenize(caption) if word[0].isalnum()) for caption in captions]
    words = Counter(word for caption in said for word in caption)
    times = Counter(said)
    repeated = sum(count for count in times.values() if count > 1)
    tokens = words.total()
    return Variety(
        len(said),
        tokens,
        len(words),
        len(words) / tokens if tokens else None,
        repeated / len(said) if said else None,
    )
