"""Runs of one to four words, counted in every sentence of a corpus at once.

Words and runs are numbers here, so that a corpus is a few long arrays and nothing is done sentence by sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

LONGEST = 4
Array = NDArray[np.float64]
Places = NDArray[np.signedinteger[Any]]
_SMALL = (
    np.int32
)  # of places and numbers: half the memory to go through, and enough for two thousand million words


@dataclass(frozen=True)
class Runs:
    """The different runs of n words in each sentence, ordered by run and then by sentence.

    A run that is nowhere else cannot be shared, so it is not kept: `alone` says how many a sentence has.
    """

    sentence: Places
    run: Places  # a number for every different run
    count: Places
    alone: Places


class Sentences:
    """Sentences as word lists. What is counted of them is counted once, whatever is compared with what."""

    def __init__(self, sentences: Sequence[Sequence[str]]):
        self.lengths: Places = np.fromiter(map(len, sentences), np.int64, len(sentences))
        known = dict.fromkeys(chain.from_iterable(sentences))
        known = dict(zip(known, range(len(known)), strict=True))
        numbers = map(known.__getitem__, chain.from_iterable(sentences))
        self.words: Places = np.fromiter(numbers, _SMALL, int(self.lengths.sum()))
        self.start: Places = np.concatenate([[0], np.cumsum(self.lengths)[:-1]]).astype(np.int64)
        self.different = len(known)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def runs(self) -> tuple[Runs, ...]:
        """Of one word, two, three and four. One sort for each finds which are alike, how often each is in a sentence,
        and puts those of captions and of references into an order in which they meet. A run can only be in two places
        if the two shorter ones in it are, so most of the long ones need no sorting."""
        owner = np.repeat(np.arange(len(self), dtype=_SMALL), self.lengths)
        same = np.append(owner[1:] == owner[:-1], False)  # whether the next word is of the same sentence
        number = self.words  # of the run that begins at each word
        place = np.arange(len(self.words), dtype=_SMALL)
        made = []
        for size in range(1, LONGEST + 1):
            key: NDArray[Any] = number[place]
            if size > 1:
                key = key.astype(np.int64) * self.different + self.words[place + (size - 1)]
            elif self.different <= 1 << 16:  # numpy sorts so short ones by counting
                key = key.astype(np.uint16)
            order = np.argsort(key, kind="stable")
            place, key = place[order], key[order]
            new = _changes(key)
            again = ~new
            again[:-1] |= again[
                1:
            ]  # whether a run is elsewhere too: it is the last one's, or the next one is it
            place, new = place[again], new[again]
            run, sentence = np.cumsum(new, dtype=_SMALL) - _SMALL(1), owner[place]
            first = np.flatnonzero(new | _changes(sentence))
            count = np.diff(first, append=len(run))
            there = np.bincount(sentence, minlength=len(self))
            alone = np.maximum(self.lengths - size + 1, 0) - there
            made.append(Runs(sentence[first], run[first], count, alone))
            number = np.full(len(self.words) + 1, -1, dtype=_SMALL)
            number[place] = run
            # A longer one begins where one that is elsewhere too is followed by another such, in the same sentence.
            place = np.flatnonzero((number[:-1] >= 0) & (number[1:] >= 0) & same).astype(_SMALL)
        return tuple(made)

    def table(self, places: Places) -> Places:
        """The words of some sentences, a row each, filled up with -1."""
        width = int(self.lengths[places].max(initial=0))
        columns = np.arange(width)
        inside = columns < self.lengths[places, None]
        made = np.full((len(places), width), -1, dtype=np.int64)
        made[inside] = self.words[(self.start[places, None] + columns)[inside]]
        return made


@dataclass(frozen=True)
class Round:
    """One caption of each image, held against references of the same image. Places are those of `sentences`.

    Captions and references stand in the order of images, and have later places for later images; every image has one
    caption and at least one reference.
    """

    sentences: Sentences
    captions: Places
    references: Places
    image: Places  # of each reference: the place of its caption

    def __len__(self) -> int:
        return len(self.captions)

    @cached_property
    def per_image(self) -> Places:
        """How many references each image has."""
        return np.bincount(self.image, minlength=len(self))

    @cached_property
    def shared(self) -> tuple[Shared, ...]:
        """For each length of run, those of captions beside those of references."""
        return tuple(self._shared(runs) for runs in self.sentences.runs)

    def _shared(self, runs: Runs) -> Shared:
        said, said_by = _taken(runs, self.captions, len(self.sentences))
        written, written_by = _taken(runs, self.references, len(self.sentences))
        said_run, written_run, of_image = runs.run[said], runs.run[written], self.image[written_by]
        # Both are in the order of runs and images, so each looks for the other just ahead of where it found the last.
        keys = said_run.astype(np.int64) * len(self) + said_by
        wanted = written_run.astype(np.int64) * len(self) + of_image
        at = np.searchsorted(keys, wanted)
        at[at == len(keys)] = 0
        both = keys[at] == wanted if len(keys) else np.zeros(len(wanted), dtype=bool)
        different = int(runs.run[-1]) + 1 if len(runs.run) else 1
        frequency = np.bincount(written_run[_changes(wanted)], minlength=different)
        return Shared(
            said_by,
            runs.count[said],
            frequency[said_run],
            written_by,
            runs.count[written],
            frequency[written_run],
            np.flatnonzero(both),
            at[both],
            runs.alone[self.captions],
            runs.alone[self.references],
        )


@dataclass(frozen=True)
class Shared:
    """Runs of one length: in captions, in references, and which of them are the same in the same image."""

    caption: Places  # per run of a caption: whose
    caption_count: Places
    caption_frequency: Places  # in how many images' references it is
    reference: Places  # per run of a reference: whose
    reference_count: Places
    reference_frequency: Places
    of_reference: Places  # pairs: a place among the references' runs ...
    of_caption: Places  # ... and the same run's place among the caption's
    caption_alone: Places  # runs that are in no other place, of each caption
    reference_alone: Places


def _taken(runs: Runs, places: Places, sentences: int) -> tuple[Places, Places]:
    """Which runs are of these sentences, and of which of them (by its number among them)."""
    number = np.full(sentences, -1, dtype=_SMALL)
    number[places] = np.arange(len(places), dtype=_SMALL)
    owner = number[runs.sentence]
    taken = np.flatnonzero(owner >= 0)
    return taken, owner[taken]


def _changes(values: Places) -> NDArray[np.bool_]:
    """Which values differ from the one before; the first does."""
    made = np.ones(len(values), dtype=bool)
    np.not_equal(values[1:], values[:-1], out=made[1:])
    return made
