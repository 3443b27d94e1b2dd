"""Captions with the groups they name, and, beside those, the ones that speak of a person and name no group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon import NEUTRAL, Lexicon
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize
from portrayal.metrics.shared.mentions import CaptionMentions


def columns_of(lexicon: Lexicon) -> tuple[str, ...]:
    """The groups, and `neutral` where the lexicon has words for it."""
    return (*lexicon.groups, *((NEUTRAL,) if lexicon.neutral else ()))


def memberships(mentions: CaptionMentions, lexicon: Lexicon, both: str) -> NDArray[np.float64]:
    """(captions, columns): 1 where a caption counts for a group; a neutral one names none, but speaks of a person."""
    counted = mentions.named.astype(np.float64)
    if both == "neither":
        counted[mentions.how_many > 1] = 0
    if not lexicon.neutral:
        return counted
    person = speaks_of_a_person(mentions.captions, lexicon) & ~mentions.names_any
    return np.column_stack([counted, person.astype(np.float64)])


def speaks_of_a_person(captions: Sequence[str], lexicon: Lexicon) -> NDArray[np.bool_]:
    table = PhraseTable((word, NEUTRAL) for word in lexicon.neutral)
    known = {caption: any(table.find(tokenize(caption))) for caption in set(captions)}
    return np.fromiter((known[caption] for caption in captions), dtype=bool, count=len(captions))
