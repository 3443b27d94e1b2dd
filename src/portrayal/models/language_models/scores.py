"""Token scores of a text, and the summary numbers that are computed from them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from portrayal.errors import unknown_name

AGGREGATIONS = ("mean", "geometric", "product")
_WORD = re.compile(r"[^\W_]+(?:['’_-][^\W_]+)*")


@dataclass(frozen=True, eq=False)
class TokenScores:
    """The log-probabilities of a text's tokens.

    An empty text has its end alone.
    """

    log_probabilities: NDArray[np.float64]  # natural; of each token given all before it, and last of the end
    ends: NDArray[np.int64]  # position in the text at which each token ends; last, the length of the text


class LanguageModel(Protocol):
    """A model that gives the probability of each token of a text."""

    @property
    def name(self) -> str:
        """The name in settings."""

    @property
    def digest(self) -> str:
        """Changes whenever the scores could change; fit for the name of a file."""

    @property
    def metadata(self) -> dict[str, str]:
        """Facts about the model that are stored with results."""

    def score(self, texts: Sequence[str]) -> list[TokenScores]:
        """Return the token scores of each text, in order."""


def text_probability(scores: TokenScores, aggregation: str = "mean") -> float:
    """Return the probability of a text, the end included, aggregated over tokens.

    Parameters
    ----------
    scores
        The token scores of the text.
    aggregation
        "mean": arithmetic mean of the tokens' probabilities (Sabir and Padró 2023). "geometric": their
        geometric mean. "product": the probability of the whole text, which falls with every token.

    Examples
    --------

    >>> half_and_eighth = TokenScores(np.log([1 / 2, 1 / 8]), np.array([3, 3]))
    >>> [round(text_probability(half_and_eighth, name), 6) for name in AGGREGATIONS]
    [0.3125, 0.25, 0.0625]
    """
    logs = scores.log_probabilities
    match aggregation:
        case "mean":
            return float(np.exp(logs).mean())
        case "geometric":
            return math.exp(logs.mean())
        case "product":
            return math.exp(logs.sum())
    raise unknown_name("aggregation of a text's probability", aggregation, AGGREGATIONS)


def last_word_probability(text: str, scores: TokenScores) -> float | None:
    """Return the probability of the last word given all before it; None if there is no word.

    It is the product over the tokens of the word. Punctuation after the word does not count, unless it shares a
    token with the word.

    >>> a_pup_py_stop = TokenScores(np.log([0.5, 0.2, 0.5, 0.4, 0.9]), np.array([1, 5, 7, 8, 8]))
    >>> round(last_word_probability("a puppy.", a_pup_py_stop), 6)
    0.1
    """
    words = list(_WORD.finditer(text))
    if not words:
        return None
    word = words[-1]
    ends = scores.ends[:-1]
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends])[:-1]
    # A letter can have several tokens, which all end where it ends: the start alone would lose the later ones.
    in_word = (ends > word.start()) & ((ends <= word.end()) | (starts < word.end()))
    return math.exp(scores.log_probabilities[:-1][in_word].sum())
