"""Measurements of quality for one source: all images, each group, and gaps between groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.quality.captions import ImageObjects, SourceCaptions
from portrayal.metrics.quality.columns import OBJECT_TERMS, REFERENCE_TERMS
from portrayal.metrics.quality.ngrams import Array
from portrayal.metrics.quality.scores import SourceScores
from portrayal.results import TOO_FEW
from portrayal.stats import (
    Estimate,
    bootstrap,
    clustered_wilson,
    paired_difference,
    permutation_test,
    resampler,
)

GAP = "-gap"
STYLE = ("length", "repeated")
# Number of references that are shown with a caption.
_MAX_SHOWN_REFERENCES = 5


class QualityMeasurements:
    """Adds the measurements of one source: over all images, by group, and gaps between groups.

    `labels` has the group of each labelled image. `is_member` has the shape (groups, images).
    """

    def __init__(
        self,
        builder: ResultBuilder,
        source: str,
        captions: SourceCaptions,
        scores: SourceScores,
        labels: Mapping[str, str],
        seed: int,
        n_resamples: int,
        evidence_limit: int,
    ):
        self.builder, self.source, self.captions, self.scores = builder, source, captions, scores
        self.columns, self.evidence_limit = scores.columns, evidence_limit
        self.images, self.image_index = captions.tokens.images, captions.tokens.image_index
        image_groups = [labels.get(image) for image in self.images]
        self.groups = sorted({group for group in image_groups if group is not None})
        self.is_member = np.array(
            [[group == name for group in image_groups] for name in self.groups], dtype=bool
        )
        self.is_member = self.is_member.reshape(len(self.groups), len(self.images))
        self.seed, self.n_resamples = seed, n_resamples
        self.resamples = resampler(self.images, seed, n_resamples)

    def add_all(self, programs: Mapping[str, str | None], image_objects: ImageObjects | None) -> None:
        """Add all rows. `programs` are the requested Java programs, each with the reason why it cannot run, or None."""
        for term in (*REFERENCE_TERMS, *OBJECT_TERMS, *STYLE):
            if term in self.estimates:
                self._add_term(term)
                continue
            reason = _undefined_reason(term, self.captions, programs, image_objects)
            if reason is not None:
                self.builder.add(term, None, system=self.source, n=0, reason=reason)
        self._add_vocabulary()
        if len(self.groups) > 1:
            self._add_gaps()

    @cached_property
    def estimates(self) -> dict[str, list[Estimate]]:
        """The estimates of each term, for all images and then each group, from the same resamples of images."""
        if not self.images:
            return {}
        counts = self.columns.counts
        blocks = np.hstack([counts, *(counts * membership[:, None] for membership in self.is_member)])
        n_blocks = 1 + len(self.groups)

        def statistic(sums: Array) -> Array:
            return np.hstack([self.columns.values(block) for block in np.split(sums, n_blocks, axis=1)])

        flat_estimates = bootstrap(blocks, statistic, self.resamples)
        names = list(self.columns.terms)
        return {name: flat_estimates[index :: len(names)] for index, name in enumerate(names)}

    def _add_term(self, term: str) -> None:
        measured_images = self.columns.measured_images[term] > 0
        for index, group in enumerate((None, *self.groups)):
            image_mask = measured_images if group is None else measured_images & self.is_member[index - 1]
            estimate = self._rate_interval(term, self.estimates[term][index], image_mask)
            group_text = f"of '{group}' " if group is not None else ""
            self.builder.add(
                term,
                estimate,
                system=self.source,
                group=group,
                n=int(image_mask.sum()),
                reason=None
                if estimate.value is not None
                else f"no image {group_text}has what it is counted from",
                evidence=self._evidence_frame(term, image_mask),
                in_brief=group is not None,
                resampler=self.resamples,
            )

    def _rate_interval(self, term: str, estimate: Estimate, image_mask: NDArray[np.bool_]) -> Estimate:
        """The estimate, with Wilson's interval if it is a rate.

        Bootstrap resamples of a rate of 0 are all 0, so that their interval would have no width.
        """
        if term not in self.columns.rate_columns or estimate.value is None:
            return estimate
        column = self.columns.rate_columns[term]
        successes, trials = self.columns.counts[image_mask, column : column + 2].T
        low, high = clustered_wilson(successes, trials)
        return replace(estimate, low=low, high=high)

    def _add_gaps(self) -> None:
        """Add the largest difference between two groups with enough images, for each term."""
        p_values = self._gap_p_values()
        for index, (term, estimates) in enumerate(self.estimates.items()):
            comparable_groups = np.flatnonzero(self._is_comparable[:, index]).tolist()
            image_mask = (self.columns.measured_images[term] > 0) & self.is_member[comparable_groups].any(
                axis=0
            )
            if len(comparable_groups) < 2:
                reason = f"fewer than two groups have {TOO_FEW} images to compare"
                self.builder.add(term + GAP, None, system=self.source, n=int(image_mask.sum()), reason=reason)
                continue
            ranked_estimates = sorted(
                (estimates[group_index + 1] for group_index in comparable_groups),
                key=lambda estimate: estimate.value or 0.0,
            )
            lowest, highest = ranked_estimates[0], ranked_estimates[-1]
            difference = paired_difference(
                lowest.value or 0.0, highest.value or 0.0, lowest.replicates, highest.replicates
            )
            self.builder.add(
                term + GAP,
                Estimate(
                    difference.value,
                    difference.low,
                    difference.high,
                    difference.se,
                    highest.replicates - lowest.replicates,
                ),
                system=self.source,
                n=int(image_mask.sum()),
                p=float(p_values[index]),
                evidence=self._evidence_frame(term, image_mask),
                in_brief=True,
                resampler=self.resamples,
            )

    @cached_property
    def _is_comparable(self) -> NDArray[np.bool_]:
        """Whether a group has a value from enough images, of shape (groups, terms)."""
        is_measured = np.array(
            [measured_images > 0 for measured_images in self.columns.measured_images.values()]
        )
        n_images_by_group = self.is_member.astype(np.int64) @ is_measured.T.astype(np.int64)
        has_value = np.array(
            [
                [estimate.value is not None for estimate in estimates[1:]]
                for estimates in self.estimates.values()
            ]
        ).T
        return np.asarray((n_images_by_group >= TOO_FEW) & has_value, dtype=bool)

    def _gap_p_values(self) -> Array:
        """The p value of each gap, from permutations of groups among the labelled images."""
        labelled = np.flatnonzero(self.is_member.any(axis=0))
        counts = self.columns.counts[labelled]
        is_member = self.is_member[:, labelled].astype(np.float64)

        def gap(order: NDArray[np.int64]) -> Array:
            values = np.where(self._is_comparable, self.columns.values(is_member[:, order] @ counts), np.nan)
            high = np.where(np.isnan(values), -np.inf, values).max(axis=0)
            low = np.where(np.isnan(values), np.inf, values).min(axis=0)
            return np.where(np.isfinite(high), high - low, np.nan)

        return permutation_test(gap, len(labelled), self.seed, self.n_resamples)

    def _add_vocabulary(self) -> None:
        """Add the number of distinct words.

        It has no interval: it grows with the number of distinct captions, so that resamples would underestimate it.
        """
        all_images = np.ones(len(self.images), dtype=bool)
        caption_words = self.captions.tokens.captions
        for group, image_mask in ((None, all_images), *zip(self.groups, self.is_member, strict=True)):
            caption_indices = np.flatnonzero(image_mask[self.image_index]) if len(self.image_index) else ()
            distinct = {word for index in caption_indices for word in caption_words[index]}
            self.builder.add(
                "vocabulary",
                float(len(distinct)),
                system=self.source,
                group=group,
                n=int(image_mask.sum()),
                evidence=self._evidence_frame("length", image_mask),
                in_brief=True,
            )

    def _evidence_frame(self, term: str, image_mask: NDArray[np.bool_]) -> pl.DataFrame:
        """The evidence for a term: captions in order of their value, or evenly spaced ones if there are too many."""
        values = self.scores.per_caption[term]
        indices = np.flatnonzero(image_mask[self.image_index] & np.isfinite(values))
        indices = indices[np.argsort(values[indices], kind="stable")]
        if self.evidence_limit and len(indices) > self.evidence_limit:
            indices = indices[np.linspace(0, len(indices) - 1, self.evidence_limit).astype(np.int64)]
        rows = [self._evidence_row(index) for index in indices.tolist()]
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")

    def _evidence_row(self, index: int) -> tuple[str, str, str]:
        """The image, the caption and the details of a caption as JSON."""
        detail = self.scores.details[index] | {"references": self._shown_references[self.image_index[index]]}
        return (
            self.images[self.image_index[index]],
            self.captions.captions[index],
            json.dumps(detail, ensure_ascii=False),
        )

    @cached_property
    def _shown_references(self) -> list[list[str]]:
        """The first references of each image, up to `_MAX_SHOWN_REFERENCES`."""
        references: list[list[str]] = [[] for _ in self.images]
        for image, caption in zip(
            self.captions.tokens.reference_image.tolist(), self.captions.references, strict=True
        ):
            if len(references[image]) < _MAX_SHOWN_REFERENCES:
                references[image].append(caption)
        return references


def _undefined_reason(
    term: str,
    captions: SourceCaptions,
    programs: Mapping[str, str | None],
    image_objects: ImageObjects | None,
) -> str | None:
    """The reason why a term has no value; None if the term was not requested."""
    if term in ("meteor", "spice") and term not in programs:
        return None
    if programs.get(term):
        return programs[term]
    if term in OBJECT_TERMS and image_objects is None:
        return "the study has no labels of objects"
    if term in REFERENCE_TERMS:
        if term.startswith("cider") and len(captions.references) > (
            captions.tokens.identical_reference is not None
        ):
            return "document frequencies need two images with references or more"
        compares_human_captions = captions.tokens.identical_reference is not None
        return "no image has two human captions" if compares_human_captions else "no caption has a reference"
    return "there is no caption"
