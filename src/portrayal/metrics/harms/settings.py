"""Settings that all measurements of one call share: the stage, the comparison, the word lists, facts of the study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon import Lexicon, MentionFinder
from portrayal.lexicon.harms import HarmfulPair, NotImageableWords, Taxonomy
from portrayal.metrics.harms.parsed_captions import WordLists
from portrayal.models.word_vectors import WordVectors

Stage = Literal["1", "3", "4", "4-without-3"]
STAGES: tuple[Stage, ...] = ("1", "3", "4", "4-without-3")
Truth = Literal["1", "3"]
Reference = Literal["any", "each"]
STAGE_NAMES = {
    "1": "human labels",
    "3": "human captions",
    "4": "captions of systems",
    "4-without-3": "captions of systems where human captions say nothing of the kind",
}


@dataclass(frozen=True)
class Appearance:
    """A table of physical attributes: one number for each image and attribute, nan where it is unknown."""

    names: tuple[str, ...]
    rows: Mapping[str, NDArray[np.float64]]  # image -> a number per attribute


@dataclass(frozen=True)
class HarmSettings:
    """The settings of one stage of one call."""

    stage: Stage
    truth: Truth | None
    reference: Reference
    attribute: str
    groups: tuple[str, ...]  # labelled in the study
    images_with_references: int
    images_with_labels: int  # of objects
    word_lists: WordLists
    labels: tuple[str, ...]  # all object labels of the study
    pairs: Sequence[HarmfulPair]
    framing_words: frozenset[str]
    not_imageable: NotImageableWords
    taxonomy: Taxonomy
    vectors: WordVectors | None
    # Senses that human captions name in so many images that leaving them out is no erasure.
    common_senses: frozenset[int]
    appearance: Appearance | None
    by: str  # groups of reification: "labelled", or "named" in captions
    lexicon: Lexicon | None
    threshold: float
    seed: int
    n_resamples: int
    top: int
    evidence: int
    show_words: bool
    paired: bool  # whether bootstrap resamples are kept, so that two audits can be compared in pairs

    @property
    def has_references(self) -> bool:
        return self.images_with_references > 0

    @property
    def has_objects(self) -> bool:
        return self.images_with_labels > 0

    def groups_named(self, caption: str) -> tuple[str, ...]:
        """The groups of the attribute that a caption names, by the lexicon."""
        return () if self.lexicon is None else _finder(self.lexicon).groups(caption)

    @property
    def compared_with(self) -> Truth:
        """What captions are compared with where both are possible: human captions ("3") or human labels ("1").

        At stage 3 human captions are themselves compared with labels; else `truth` decides, by default "3".
        """
        if self.stage == "3":
            return "1"
        return self.truth or "3"


@cache
def _finder(lexicon: Lexicon) -> MentionFinder:
    return MentionFinder(lexicon)
