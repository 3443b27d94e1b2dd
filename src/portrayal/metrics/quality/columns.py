"""Counts and scores of the captions of one source, as columns that are summed over images.

Each corpus score is a function of sums (BLEU, METEOR, CHAIR) or of means (the others). The same columns thus give the
score of all images, of a group, and of each bootstrap resample.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.quality import bleu
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
    """Tokenized captions and references, both sorted by image. Images are sorted by name.

    Human captions are compared with each other. `identical_reference` is then the index of the reference that is the
    caption itself.
    """

    images: tuple[str, ...]
    image_index: Indices  # index of each caption's image
    captions: tuple[Sequence[str], ...]  # the words of each caption
    references: tuple[Sequence[str], ...]
    reference_image: Indices  # index of each reference's image
    identical_reference: Indices | None = None


@dataclass
class ScoreColumns:
    """Columns of counts per image, and for each term a function of their sums."""

    n_images: int
    blocks: list[Array] = field(default_factory=list)
    terms: dict[str, TermFunction] = field(default_factory=dict)
    measured_images: dict[str, Array] = field(default_factory=dict)  # term -> 1 for images it is measured on
    # term -> index of the column of its successes; the next column has its trials
    rate_columns: dict[str, int] = field(default_factory=dict)
    n_columns: int = 0

    def add_rate(self, term: str, successes: Array, trials: Array, measured_images: Array) -> None:
        """Add a term that is successes over trials."""
        self.rate_columns[term] = self.n_columns
        self.add(np.column_stack([successes, trials]), {term: divide_columns}, measured_images)

    def add(self, block: Array, terms: Mapping[str, TermFunction], measured_images: Array) -> None:
        """Add a block of columns and the terms that are functions of their sums."""
        start, stop = self.n_columns, self.n_columns + block.shape[1]
        for name, function in terms.items():
            self.terms[name] = lambda sums, function=function: function(sums[:, start:stop])  # type: ignore[misc]
            self.measured_images[name] = measured_images
        self.blocks.append(block)
        self.n_columns = stop

    @cached_property
    def counts(self) -> Array:
        """All columns, of shape (images, columns)."""
        return np.hstack(self.blocks) if self.blocks else np.empty((self.n_images, 0))

    def values(self, sums: Array) -> Array:
        """The value of each term from summed columns: shape (resamples, columns) to (resamples, terms)."""
        return np.column_stack([function(sums) for function in self.terms.values()])


@dataclass(frozen=True)
class ReferenceScores:
    """Scores of captions against their references, with a row for each caption that has references."""

    caption_index: Indices  # index of the caption
    bleu_counts: Array
    rouge: Array
    cider: Array
    cider_plain: Array
    meteor_counts: Array | None
    spice: Array | None


def score_captions(tokens: TokenizedCaptions, programs: Sequence[str] = ()) -> ReferenceScores | None:
    """Scores of captions against references; None without references.

    Each comparison scores one caption per image.
    """
    comparison_inputs = list(_comparison_inputs(tokens))
    if not comparison_inputs:
        return None
    word_lists = (
        [*tokens.captions, *tokens.references]
        if tokens.identical_reference is None
        else list(tokens.references)
    )
    sentences = Sentences(word_lists)
    arrays_per_comparison: list[tuple[NDArray[Any], ...]] = []
    for captions, references, caption_position, is_new in comparison_inputs:
        reference_offset = len(tokens.captions) if tokens.identical_reference is None else 0
        caption_indices = (
            captions if tokens.identical_reference is None else tokens.identical_reference[captions]
        )
        comparison = ReferenceComparison(
            sentences, caption_indices, references + reference_offset, caption_position
        )
        cider_d, cider_plain = cider_scores(comparison)
        program_scores = {
            name: _run_program(name, tokens, captions, references, caption_position) for name in programs
        }
        base_scores = (captions, bleu.bleu_counts(comparison), rouge_l(comparison), cider_d, cider_plain)
        empty = np.empty((len(captions), 0))
        arrays_per_comparison.append(
            tuple(
                array[is_new]
                for array in (
                    *base_scores,
                    program_scores.get("meteor", empty),
                    program_scores.get("spice", empty),
                )
            )
        )
    caption_index, bleu_counts, rouge, cider_d, cider_plain, meteor, spice = (
        np.concatenate(arrays) for arrays in zip(*arrays_per_comparison, strict=True)
    )
    order = np.argsort(caption_index, kind="stable")
    return ReferenceScores(
        caption_index[order],
        bleu_counts[order],
        rouge[order],
        cider_d[order],
        cider_plain[order],
        meteor[order] if "meteor" in programs else None,
        spice[order] if "spice" in programs else None,
    )


def _run_program(
    name: str, tokens: TokenizedCaptions, captions: Indices, references: Indices, caption_position: Indices
) -> Array:
    """The scores or counts that a Java program computes for the captions of one comparison."""
    references_by_caption: list[list[Sequence[str]]] = [[] for _ in captions]
    for index, position in zip(references, caption_position, strict=True):
        references_by_caption[position].append(tokens.references[index])
    caption_words = [tokens.captions[index] for index in captions]
    if name == "meteor":
        return meteor_program.meteor_counts(caption_words, references_by_caption)
    return spice_program.spice(caption_words, references_by_caption)


def _comparison_inputs(
    tokens: TokenizedCaptions,
) -> list[tuple[Indices, Indices, Indices, NDArray[np.bool_]]]:
    """The inputs of each comparison, which has one caption of each image.

    They are the indices of captions and references, the position of each reference's caption, and whether each caption
    is new. Document frequencies depend on all images, so images with fewer captions repeat their first one.
    """
    caption_rank = _caption_ranks(tokens.image_index)
    first_captions = np.flatnonzero(caption_rank == 0)
    comparisons = []
    for rank in range(int(caption_rank.max(initial=-1)) + 1):
        # The caption of each image in this comparison.
        caption_of_image = np.full(len(tokens.images), -1, dtype=np.int64)
        caption_of_image[tokens.image_index[first_captions]] = first_captions
        new_captions = np.flatnonzero(caption_rank == rank)
        caption_of_image[tokens.image_index[new_captions]] = new_captions
        is_used = caption_of_image[tokens.reference_image] >= 0
        if tokens.identical_reference is not None:
            # A human caption is not compared with itself.
            is_used[tokens.identical_reference[caption_of_image[caption_of_image >= 0]]] = False
        references = np.flatnonzero(is_used)
        n_references = np.bincount(tokens.reference_image[references], minlength=len(tokens.images))
        images = np.flatnonzero((caption_of_image >= 0) & (n_references > 0))
        if len(images):
            position_of_image = np.full(len(tokens.images), -1, dtype=np.int64)
            position_of_image[images] = np.arange(len(images))
            captions = caption_of_image[images]
            comparisons.append(
                (
                    captions,
                    references,
                    position_of_image[tokens.reference_image[references]],
                    caption_rank[captions] == rank,
                )
            )
    return comparisons


def _caption_ranks(image_index: Indices) -> Indices:
    """The rank 0, 1, 2, ... of each caption among the captions of its image."""
    first_caption = np.searchsorted(image_index, image_index)
    return np.asarray(np.arange(len(image_index)) - first_caption)


def mean_per_image(values: Array, image_index: Indices, n_images: int) -> Array:
    """The mean over the captions of each image, 0 without captions: shape (captions, k) to (images, k)."""
    sums = np.zeros((n_images, values.shape[1]))
    np.add.at(sums, image_index, values)
    return np.asarray(sums / np.maximum(np.bincount(image_index, minlength=n_images), 1)[:, None])


def add_score_columns(columns: ScoreColumns, tokens: TokenizedCaptions, scores: ReferenceScores) -> None:
    """Add the columns of BLEU, ROUGE-L, CIDEr and the scores of Java programs."""
    image_index = tokens.image_index[scores.caption_index]
    has_score = (np.bincount(image_index, minlength=columns.n_images) > 0).astype(np.float64)

    def add(block: Array, terms: Mapping[str, TermFunction]) -> None:
        columns.add(
            np.column_stack([mean_per_image(block, image_index, columns.n_images), has_score]),
            terms,
            has_score,
        )

    def bleu_n(size_index: int) -> TermFunction:
        return lambda sums: np.where(sums[:, -1] > 0, bleu.bleu(sums[:, :-1])[:, size_index], np.nan)

    add(scores.bleu_counts, {name: bleu_n(size_index) for size_index, name in enumerate(BLEU)})
    add(scores.rouge[:, None], {"rouge-l": divide_columns})
    # Document frequencies need several images.
    has_document_frequency = int(has_score.sum()) > 1
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
    image_index: Indices,
    mentioned: Sequence[Sequence[str]],
    hallucinated: Sequence[Sequence[str]],
    measured_images: Array,
) -> None:
    """Add the columns of CHAIR, over images whose objects are known."""
    counts = (
        mean_per_image(chair_counts(mentioned, hallucinated), image_index, columns.n_images)
        * measured_images[:, None]
    )
    columns.add_rate("chair-i", counts[:, 0], counts[:, 1], measured_images)
    columns.add_rate("chair-s", counts[:, 2], measured_images, measured_images)
