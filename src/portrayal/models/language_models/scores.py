"""What a language model makes of a text, and the single numbers that are read off it."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import unknown_name

HOW = ("mean", "geometric", "product")
_WORD = re.compile(r"[^\W_]+(?:['’_-][^\W_]+)*")


@dataclass(frozen=True, eq=False)
class Scored:
    """What a language model makes of a text.

    An empty text has the end of the text alone.
    """

    log_probabilities: NDArray[np.float64]  # natural, of each token and last of the end, given all before it
    ends: NDArray[np.int64]  # the place in the text at which each token ends; last, the length of the text


class LanguageModel(Protocol):
    """Anything that can say how likely each token of a text is."""

    @property
    def name(self) -> str:
        """How settings name it."""

    @property
    def digest(self) -> str:
        """Another one whenever what it says could be another; fit for the name of a file."""

    @property
    def about(self) -> dict[str, str]:
        """What a reader of its numbers must know."""

    def scored(self, texts: Sequence[str]) -> list[Scored]:
        """What it makes of each text, in the order given."""


def hypothesis(scored: Scored, how: str = "mean") -> float:
    """How likely a text is, from 0 to 1, the end of the text included.

    `mean` is the arithmetic mean of the tokens' probabilities (Sabir and Padró 2023), `geometric` their geometric mean,
    `product` the probability of the text as a whole, which falls with every token.

    >>> half_and_eighth = Scored(np.log([1 / 2, 1 / 8]), np.array([3, 3]))
    >>> [round(hypothesis(half_and_eighth, how), 6) for how in HOW]
    [0.3125, 0.25, 0.0625]
    """
    logs = scored.log_probabilities
    match how:
        case "mean":
            return float(np.exp(logs).mean())
        case "geometric":
            return math.exp(logs.mean())
        case "product":
            return math.exp(logs.sum())
    raise unknown_name("way to sum up a text's probability", how, HOW)


def last_word(text: str, scored: Scored) -> float | None:
    """The probability of the last word given all before it: the product over its tokens; None where there is no word.

    Marks after the word are left out, unless one token holds both.

    >>> a_pup_py_stop = Scored(np.log([0.5, 0.2, 0.5, 0.4, 0.9]), np.array([1, 5, 7, 8, 8]))
    >>> round(last_word("a puppy.", a_pup_py_stop), 6)
    0.1
    """
    words = list(_WORD.finditer(text))
    if not words:
        return None
    word = words[-1]
    ends = scored.ends[:-1]
    begins = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    # A letter can be made of several tokens, which all end where it ends: the begin alone would lose the later ones.
    inside = (ends > word.start()) & ((ends <= word.end()) | (begins < word.end()))
    return math.exp(scored.log_probabilities[:-1][inside].sum())
