"""What the measurements of one call share: the stage, what is held against what, the word lists, the study's limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from portrayal.lexicon import Finder, Lexicon
from portrayal.lexicon.harms import NotImageable, Pair, Taxonomy
from portrayal.metrics.harms.parsed_captions import Lists
from portrayal.models.word_vectors import WordVectors

Stage = Literal["1", "3", "4", "4-without-3"]
STAGES: tuple[Stage, ...] = ("1", "3", "4", "4-without-3")
Truth = Literal["1", "3"]
Reference = Literal["any", "each"]
STAGE_NAMES = {
    "1": "people's labels",
    "3": "people's captions",
    "4": "systems' captions",
    "4-without-3": "systems' captions where people's say nothing of the kind",
}


@dataclass(frozen=True)
class Appearance:
    """How people look, as a table has it: a number per image and physical attribute, nan where it is unknown."""

    names: tuple[str, ...]
    rows: Mapping[str, NDArray[np.float64]]  # image -> a number per attribute


@dataclass(frozen=True)
class Setup:
    """One stage of one call."""

    stage: Stage
    truth: Truth | None
    reference: Reference
    attribute: str
    groups: tuple[str, ...]  # that the study labels
    described: int  # images with captions of people
    labelled: int  # images with labels of objects
    lists: Lists
    labels: tuple[str, ...]  # every label of an object in the study
    pairs: Sequence[Pair]
    framing: frozenset[str]
    not_imageable: NotImageable
    taxonomy: Taxonomy
    vectors: WordVectors | None
    common: frozenset[int]  # senses that people name in so many images that leaving them out is no erasure
    appearance: Appearance | None
    by: str  # whether groups are those labelled or those named, for reification
    lexicon: Lexicon | None
    threshold: float
    seed: int
    n_resamples: int
    top: int
    evidence: int
    show_words: bool
    paired: bool  # whether draws are kept, so that two audits can be compared in pairs

    @property
    def has_references(self) -> bool:
        return self.described > 0

    @property
    def has_objects(self) -> bool:
        return self.labelled > 0

    def named(self, caption: str) -> tuple[str, ...]:
        """The groups of the attribute that a caption names."""
        return () if self.lexicon is None else _finder(self.lexicon).groups(caption)

    @property
    def against(self) -> Truth:
        """What captions are held against, where a measurement can take either: people's captions, unless these are
        what is held against something, or it was asked for."""
        if self.stage == "3":
            return "1"
        return self.truth or "3"


@cache
def _finder(lexicon: Lexicon) -> Finder:
    return Finder(lexicon)
