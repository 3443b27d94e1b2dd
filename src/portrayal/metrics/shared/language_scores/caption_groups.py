"""Membership of captions in groups, and in `neutral`: captions that mention a person and name no group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon import NEUTRAL, Lexicon
from portrayal.lexicon.phrases import PhraseTable
from portrayal.lexicon.tokens import tokenize
from portrayal.metrics.shared.caption_mentions import CaptionMentions


def group_columns(lexicon: Lexicon) -> tuple[str, ...]:
    """The columns: the groups, and `neutral` where the lexicon has neutral words."""
    return (*lexicon.groups, *((NEUTRAL,) if lexicon.neutral else ()))


def memberships(mentions: CaptionMentions, lexicon: Lexicon, both: str) -> NDArray[np.float64]:
    """Indicator (captions, columns) of the groups that a caption counts for; neutral ones mention a person only."""
    membership = mentions.named.astype(np.float64)
    if both == "neither":
        membership[mentions.n_groups > 1] = 0
    if not lexicon.neutral:
        return membership
    person = mentions_person(mentions.captions, lexicon) & ~mentions.names_any
    return np.column_stack([membership, person.astype(np.float64)])


def mentions_person(captions: Sequence[str], lexicon: Lexicon) -> NDArray[np.bool_]:
    """Whether each caption contains a neutral word for a person."""
    table = PhraseTable((word, NEUTRAL) for word in lexicon.neutral)
    is_person = {caption: any(table.find(tokenize(caption))) for caption in set(captions)}
    return np.fromiter((is_person[caption] for caption in captions), dtype=bool, count=len(captions))
