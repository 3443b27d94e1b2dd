"""Counts of the captions of one source, as columns that are summed over images.

Scores of a corpus are functions of sums (BLEU, METEOR, CHAIR) or means (the others), so that the same columns give the
score of all images, of a group, and of every bootstrap resample.
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
from portrayal.metrics.quality.chair import chair_counts
from portrayal.metrics.quality.cider import cider_scores
from portrayal.metrics.quality.ngrams import MAX_N, Array, Indices, ReferenceComparison, Sentences
from portrayal.metrics.quality.rouge import rouge_l
from portrayal.stats import divide_columns

BLEU = tuple(f"bleu-{size}" for size in range(1, MAX_N + 1))
REFERENCE_TERMS = (*BLEU, "rouge-l", "cider", "cider-plain", "meteor", "spice")
OBJECT_TERMS = ("chair-i", "chair-s")
TermFunction = Callable[[Array], Array]  # (resamples, columns) to (resamples,)


@dataclass(frozen=True)
class TokenizedCaptions:
    """Tokenized captions and references, both sorted by image; images are sorted by name.

    Human captions are compared with each other: `own_reference` is then the index of each caption in the references.
    """

    images: tuple[str, ...]
    image_index: Indices  # image of each caption
    captions: tuple[Sequence[str], ...]  # as words
    references: tuple[Sequence[str], ...]
    reference_image: Indices
    own_reference: Indices | None = None


@dataclass
class ScoreColumns:
    """Counts per image, and for each term the function of their sums."""

    n_images: int
    blocks: list[Array] = field(default_factory=list)
    terms: dict[str, TermFunction] = field(default_factory=dict)
    measured_images: dict[str, Array] = field(default_factory=dict)  # term -> images it is measured on
    # term -> column of its successes, which is followed by that of its trials
    rate_columns: dict[str, int] = field(default_factory=dict)
    width: int = 0

    def add_rate(self, term: str, successes: Array, trials: Array, measured_images: Array) -> None:
        """Add a term that is successes over trials."""
        self.rate_columns[term] = self.width
        self.add(np.column_stack([successes, trials]), {term: divide_columns}, measured_images)

    def add(self, block: Array, terms: Mapping[str, TermFunction], measured_images: Array) -> None:
        """Add a block of columns and the terms that are functions of their sums."""
        start, stop = self.width, self.width + block.shape[1]
        for name, value in terms.items():
            self.terms[name] = lambda sums, value=value: value(sums[:, start:stop])  # type: ignore[misc]
            self.measured_images[name] = measured_images
        self.blocks.append(block)
        self.width = stop

    @cached_property
    def counts(self) -> Array:
        """All columns: (images, columns)."""
        return np.hstack(self.blocks) if self.blocks else np.empty((self.n_images, 0))

    def values(self, sums: Array) -> Array:
        """Every term from summed columns: (resamples, columns) to (resamples, terms)."""
        return np.column_stack([value(sums) for value in self.terms.values()])


@dataclass(frozen=True)
class ReferenceScores:
    """Scores of captions against their references, with an entry for each caption that has references."""

    caption_index: Indices  # index of the caption
    bleu_counts: Array  # of BLEU
    rouge: Array
    cider: Array
    cider_plain: Array
    meteor_counts: Array | None
    spice: Array | None


def score_captions(tokens: TokenizedCaptions, programs: Sequence[str] = ()) -> ReferenceScores | None:
    """Scores of captions against references; None without references. One comparison scores a caption per image."""
    comparisons = list(_comparisons(tokens))
    if not comparisons:
        return None
    texts = (
        [*tokens.captions, *tokens.references] if tokens.own_reference is None else list(tokens.references)
    )
    sentences = Sentences(texts)
    parts_per_comparison: list[tuple[NDArray[Any], ...]] = []
    for captions, references, image, is_new in comparisons:
        offset = len(tokens.captions) if tokens.own_reference is None else 0
        caption_indices = captions if tokens.own_reference is None else tokens.own_reference[captions]
        comparison = ReferenceComparison(sentences, caption_indices, references + offset, image)
        score, plain = cider_scores(comparison)
        program_scores = {name: _run_program(name, tokens, captions, references, image) for name in programs}
        base_scores = (captions, overlap.bleu_counts(comparison), rouge_l(comparison), score, plain)
        empty = np.empty((len(captions), 0))
        parts_per_comparison.append(
            tuple(
                part[is_new]
                for part in (
                    *base_scores,
                    program_scores.get("meteor", empty),
                    program_scores.get("spice", empty),
                )
            )
        )
    caption, parts, rouge, score, plain, meteor, spice = (
        np.concatenate(arrays) for arrays in zip(*parts_per_comparison, strict=True)
    )
    order = np.argsort(caption, kind="stable")
    return ReferenceScores(
        caption[order],
        parts[order],
        rouge[order],
        score[order],
        plain[order],
        meteor[order] if "meteor" in programs else None,
        spice[order] if "spice" in programs else None,
    )


def _run_program(
    name: str, tokens: TokenizedCaptions, captions: Indices, references: Indices, image: Indices
) -> Array:
    references_of: list[list[Sequence[str]]] = [[] for _ in captions]
    for index, caption in zip(references, image, strict=True):
        references_of[caption].append(tokens.references[index])
    words = [tokens.captions[index] for index in captions]
    if name == "meteor":
        return meteor_program.meteor_counts(words, references_of)
    return spice_program.spice(words, references_of)


def _comparisons(tokens: TokenizedCaptions) -> list[tuple[Indices, Indices, Indices, NDArray[np.bool_]]]:
    """Captions, references, index of the caption of each reference, and whether the caption is new.

    Every image is in every comparison, if need be with its first caption again, since document frequencies depend on
    all images.
    """
    number = _caption_numbers(tokens.image_index)
    first = np.flatnonzero(number == 0)
    comparisons = []
    for number_of_comparison in range(int(number.max(initial=-1)) + 1):
        chosen = np.full(len(tokens.images), -1, dtype=np.int64)  # caption of each image in this comparison
        chosen[tokens.image_index[first]] = first
        due = np.flatnonzero(number == number_of_comparison)
        chosen[tokens.image_index[due]] = due
        used = chosen[tokens.reference_image] >= 0
        if tokens.own_reference is not None:
            used[tokens.own_reference[chosen[chosen >= 0]]] = (
                False  # no human caption is compared with itself
            )
        references = np.flatnonzero(used)
        n_references = np.bincount(tokens.reference_image[references], minlength=len(tokens.images))
        images = np.flatnonzero((chosen >= 0) & (n_references > 0))
        if len(images):
            renumbered = np.full(len(tokens.images), -1, dtype=np.int64)
            renumbered[images] = np.arange(len(images))
            captions = chosen[images]
            comparisons.append(
                (
                    captions,
                    references,
                    renumbered[tokens.reference_image[references]],
                    number[captions] == number_of_comparison,
                )
            )
    return comparisons


def _caption_numbers(image: Indices) -> Indices:
    """Number 0, 1, 2, ... of each caption within its image."""
    first = np.searchsorted(image, image)
    return np.asarray(np.arange(len(image)) - first)


def mean_per_image(values: Array, image: Indices, images: int) -> Array:
    """Mean over the captions of each image, 0 where it has none: (captions, k) to (images, k)."""
    sums = np.zeros((images, values.shape[1]))
    np.add.at(sums, image, values)
    return np.asarray(sums / np.maximum(np.bincount(image, minlength=images), 1)[:, None])


def add_score_columns(columns: ScoreColumns, tokens: TokenizedCaptions, scores: ReferenceScores) -> None:
    """Add the columns of BLEU, ROUGE-L, CIDEr and the scores of Java programs."""
    image = tokens.image_index[scores.caption_index]
    has_score = (np.bincount(image, minlength=columns.n_images) > 0).astype(np.float64)

    def add(block: Array, terms: Mapping[str, TermFunction]) -> None:
        columns.add(
            np.column_stack([mean_per_image(block, image, columns.n_images), has_score]), terms, has_score
        )

    def bleu(size: int) -> TermFunction:
        return lambda sums: np.where(sums[:, -1] > 0, overlap.bleu(sums[:, :-1])[:, size], np.nan)

    add(scores.bleu_counts, {name: bleu(size) for size, name in enumerate(BLEU)})
    add(scores.rouge[:, None], {"rouge-l": divide_columns})
    has_document_frequency = int(has_score.sum()) > 1  # document frequencies need several images
    if has_document_frequency:
        add(scores.cider[:, None], {"cider": divide_columns})
        add(scores.cider_plain[:, None], {"cider-plain": divide_columns})
    if scores.meteor_counts is not None:
        add(scores.meteor_counts, {"meteor": lambda sums: np.where(
            sums[:, -1] > 0, meteor_program.meteor(sums[:, :-1]), np.nan)})  # fmt: skip
    if scores.spice is not None:
        add(scores.spice[:, None], {"spice": divide_columns})


def add_chair_columns(
    columns: ScoreColumns,
    image: Indices,
    mentioned: Sequence[Sequence[str]],
    hallucinated: Sequence[Sequence[str]],
    measured_images: Array,
) -> None:
    """Add the columns of CHAIR, over images whose objects are known."""
    counts = (
        mean_per_image(chair_counts(mentioned, hallucinated), image, columns.n_images)
        * measured_images[:, None]
    )
    columns.add_rate("chair-i", counts[:, 0], counts[:, 1], measured_images)
    columns.add_rate("chair-s", counts[:, 2], measured_images, measured_images)
