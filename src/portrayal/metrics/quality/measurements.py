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
from portrayal.metrics.quality.scores import SourceScores
from portrayal.results import TOO_FEW
from portrayal.stats import (
    Estimate,
    GroupedCounts,
    clustered_wilson,
    resampler,
)

GAP = "-gap"
STYLE = ("length", "repeated")
# Number of references that are shown with a caption.
_MAX_SHOWN_REFERENCES = 5


class QualityMeasurements:
    """Adds the measurements of one source: over all images, by group, and gaps between groups.

    `labels` has the group of each labelled image.
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
        measured = [images > 0 for images in self.columns.measured_images.values()]
        self.grouped = GroupedCounts(
            counts=self.columns.counts,
            measured=np.array(measured, dtype=bool).reshape(len(measured), len(self.images)),
            statistic=self.columns.values,
            resampler=resampler(self.images, seed, n_resamples),
            group_by_cluster=[labels.get(image) for image in self.images],
            min_size=TOO_FEW,
        )

    def add_all(self, programs: Mapping[str, str | None], image_objects: ImageObjects | None) -> None:
        """Add all rows. `programs` are the requested Java programs, each with the reason why it cannot run, or None."""
        index_by_term = {term: index for index, term in enumerate(self.columns.terms)} if self.images else {}
        for term in (*REFERENCE_TERMS, *OBJECT_TERMS, *STYLE):
            if term in index_by_term:
                self._add_term(term, index_by_term[term])
                continue
            reason = _undefined_reason(term, self.captions, programs, image_objects)
            if reason is not None:
                self.builder.add(term, None, system=self.source, n=0, reason=reason)
        self._add_vocabulary()
        if len(self.grouped.groups) > 1:
            for term, index in index_by_term.items():
                self._add_gap(term, index)

    def _add_term(self, term: str, index: int) -> None:
        for position, group in enumerate((None, *self.grouped.groups)):
            image_mask = self.grouped.measured[index] & self.grouped.members(group)
            estimate = self._rate_interval(term, self.grouped.estimates[index][position], image_mask)
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
                resampler=self.grouped.resampler,
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

    def _add_gap(self, term: str, index: int) -> None:
        """Add the largest difference between two groups with enough images."""
        gap, image_mask = self.grouped.gap(index), self.grouped.compared(index)
        if gap is None:
            reason = f"fewer than two groups have {TOO_FEW} images to compare"
            self.builder.add(term + GAP, None, system=self.source, n=int(image_mask.sum()), reason=reason)
            return
        self.builder.add(
            term + GAP,
            gap.estimate,
            system=self.source,
            n=int(image_mask.sum()),
            p=gap.p,
            evidence=self._evidence_frame(term, image_mask),
            in_brief=True,
            resampler=self.grouped.resampler,
        )

    def _add_vocabulary(self) -> None:
        """Add the number of distinct words.

        It has no interval: it grows with the number of distinct captions, so that resamples would underestimate it.
        """
        caption_words = self.captions.tokens.captions
        for group in (None, *self.grouped.groups):
            image_mask = self.grouped.members(group)
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
