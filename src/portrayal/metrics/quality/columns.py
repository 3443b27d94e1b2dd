"""Everything that is counted of one speaker's captions, as columns that add up over images.

Scores of a corpus are functions of sums (BLEU, METEOR, CHAIR) or means (the others), so that the same columns give the
score of all images, of a group, and of every draw of a bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.quality import bleu as overlap
from portrayal.metrics.quality import meteor as meteor_program
from portrayal.metrics.quality import spice as spice_program
from portrayal.metrics.quality.chair import chair_parts
from portrayal.metrics.quality.cider import consensus
from portrayal.metrics.quality.ngrams import LONGEST, Array, Places, Round, Sentences
from portrayal.metrics.quality.rouge import rouge_l
from portrayal.stats import divide_columns

BLEU = tuple(f"bleu-{size}" for size in range(1, LONGEST + 1))
BY_REFERENCES = (*BLEU, "rouge-l", "cider", "cider-plain", "meteor", "spice")
BY_OBJECTS = ("chair-i", "chair-s")
Value = Callable[[Array], Array]  # (draws, columns) to (draws,)


@dataclass(frozen=True)
class Captions:
    """What is compared: images in the order of their names, captions and references in the order of their images.

    People's captions are held against each other: `own` is then the place of each caption among the references.
    """

    images: tuple[str, ...]
    image: Places  # of each caption
    captions: tuple[Sequence[str], ...]  # as words
    references: tuple[Sequence[str], ...]
    reference_image: Places
    own: Places | None = None


@dataclass
class Columns:
    """Counts per image, and what each term makes of their sums."""

    images: int
    parts: list[Array] = field(default_factory=list)
    terms: dict[str, Value] = field(default_factory=dict)
    counted: dict[str, Array] = field(default_factory=dict)  # term -> which images it is measured on
    rates: dict[str, int] = field(
        default_factory=dict
    )  # term -> where its successes stand, and next to them trials
    width: int = 0

    def add_rate(self, term: str, successes: Array, trials: Array, counted: Array) -> None:
        """A term that is successes over trials, each a part of 1 or a count."""
        self.rates[term] = self.width
        self.add(np.column_stack([successes, trials]), {term: divide_columns}, counted)

    def add(self, block: Array, terms: Mapping[str, Value], counted: Array) -> None:
        """Columns of a few terms, whose functions see this block alone."""
        start, stop = self.width, self.width + block.shape[1]
        for name, value in terms.items():
            self.terms[name] = lambda sums, value=value: value(sums[:, start:stop])  # type: ignore[misc]
            self.counted[name] = counted
        self.parts.append(block)
        self.width = stop

    @cached_property
    def counts(self) -> Array:
        return np.hstack(self.parts) if self.parts else np.empty((self.images, 0))

    def values(self, sums: Array) -> Array:
        """Every term of summed columns: (draws, columns) to (draws, terms)."""
        return np.column_stack([value(sums) for value in self.terms.values()])


@dataclass(frozen=True)
class Likeness:
    """Scores of captions beside references: a row per caption that has some."""

    caption: Places  # which of the captions
    parts: Array  # of BLEU
    rouge: Array
    cider: Array
    plain: Array
    meteor: Array | None
    spice: Array | None


def likeness(said: Captions, programs: Sequence[str] = ()) -> Likeness | None:
    """None where no caption has a reference. Images are compared in rounds, of one caption each."""
    rounds = list(_rounds(said))
    if not rounds:
        return None
    joined = [*said.captions, *said.references] if said.own is None else list(said.references)
    sentences = Sentences(joined)
    found: list[tuple[NDArray[Any], ...]] = []
    for captions, references, image, fresh in rounds:
        shift = len(said.captions) if said.own is None else 0
        places = captions if said.own is None else said.own[captions]
        round_ = Round(sentences, places, references + shift, image)
        score, plain = consensus(round_)
        asked = {name: _asked(name, said, captions, references, image) for name in programs}
        made = (captions, overlap.overlap_parts(round_), rouge_l(round_), score, plain)
        none = np.empty((len(captions), 0))
        found.append(
            tuple(part[fresh] for part in (*made, asked.get("meteor", none), asked.get("spice", none)))
        )
    caption, parts, rouge, score, plain, meteor, spice = (
        np.concatenate(some) for some in zip(*found, strict=True)
    )
    order = np.argsort(caption, kind="stable")
    return Likeness(
        caption[order],
        parts[order],
        rouge[order],
        score[order],
        plain[order],
        meteor[order] if "meteor" in programs else None,
        spice[order] if "spice" in programs else None,
    )


def _asked(name: str, said: Captions, captions: Places, references: Places, image: Places) -> Array:
    written: list[list[Sequence[str]]] = [[] for _ in captions]
    for place, of in zip(references, image, strict=True):
        written[of].append(said.references[place])
    words = [said.captions[place] for place in captions]
    if name == "meteor":
        return meteor_program.meteor_parts(words, written)
    return spice_program.spice(words, written)


def _rounds(said: Captions) -> list[tuple[Places, Places, Places, NDArray[np.bool_]]]:
    """Captions, references, each reference's place among the captions, and which captions have not had their turn.

    Every image takes part in every round, if need be with its first caption again: how rare a word is depends on all.
    """
    number = _number_within(said.image)
    first = np.flatnonzero(number == 0)
    made = []
    for turn in range(int(number.max(initial=-1)) + 1):
        place = np.full(len(said.images), -1, dtype=np.int64)  # of each image's caption in this round
        place[said.image[first]] = first
        own_turn = np.flatnonzero(number == turn)
        place[said.image[own_turn]] = own_turn
        use = place[said.reference_image] >= 0
        if said.own is not None:
            use[said.own[place[place >= 0]]] = False  # nobody is held against themselves
        references = np.flatnonzero(use)
        several = np.bincount(said.reference_image[references], minlength=len(said.images))
        images = np.flatnonzero((place >= 0) & (several > 0))
        if len(images):
            renumbered = np.full(len(said.images), -1, dtype=np.int64)
            renumbered[images] = np.arange(len(images))
            captions = place[images]
            made.append(
                (captions, references, renumbered[said.reference_image[references]], number[captions] == turn)
            )
    return made


def _number_within(image: Places) -> Places:
    """0, 1, 2, ... for the captions of each image, which stand together."""
    first = np.searchsorted(image, image)
    return np.asarray(np.arange(len(image)) - first)


def per_image(values: Array, image: Places, images: int) -> Array:
    """The mean of each image's captions, 0 where it has none; (captions, k) to (images, k)."""
    sums = np.zeros((images, values.shape[1]))
    np.add.at(sums, image, values)
    return np.asarray(sums / np.maximum(np.bincount(image, minlength=images), 1)[:, None])


def likeness_columns(columns: Columns, said: Captions, scores: Likeness) -> None:
    """BLEU, ROUGE-L, CIDEr and what was asked of Java programs."""
    image = said.image[scores.caption]
    there = (np.bincount(image, minlength=columns.images) > 0).astype(np.float64)

    def put(block: Array, terms: Mapping[str, Value]) -> None:
        columns.add(np.column_stack([per_image(block, image, columns.images), there]), terms, there)

    def bleu(size: int) -> Value:
        return lambda sums: np.where(sums[:, -1] > 0, overlap.bleu(sums[:, :-1])[:, size], np.nan)

    put(scores.parts, {name: bleu(size) for size, name in enumerate(BLEU)})
    put(scores.rouge[:, None], {"rouge-l": divide_columns})
    rare = int(there.sum()) > 1  # how rare a word is needs several images
    if rare:
        put(scores.cider[:, None], {"cider": divide_columns})
        put(scores.plain[:, None], {"cider-plain": divide_columns})
    if scores.meteor is not None:
        put(scores.meteor, {"meteor": lambda sums: np.where(
            sums[:, -1] > 0, meteor_program.meteor(sums[:, :-1]), np.nan)})  # fmt: skip
    if scores.spice is not None:
        put(scores.spice[:, None], {"spice": divide_columns})


def chair_columns(
    columns: Columns,
    image: Places,
    said: Sequence[Sequence[str]],
    false: Sequence[Sequence[str]],
    counted: Array,
) -> None:
    """CHAIR of the captions of images whose objects are known."""
    parts = per_image(chair_parts(said, false), image, columns.images) * counted[:, None]
    columns.add_rate("chair-i", parts[:, 0], parts[:, 1], counted)
    columns.add_rate("chair-s", parts[:, 2], counted, counted)
