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
# Number of references shown with a caption.
_SHOWN_REFERENCES = 5


class QualityMeasurements:
    """Measurements of one source, whose images are split into groups."""

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
        group_of = [labels.get(image) for image in self.images]
        self.groups = sorted({group for group in group_of if group is not None})
        self.is_member = np.array([[group == name for group in group_of] for name in self.groups], dtype=bool)
        self.is_member = self.is_member.reshape(len(self.groups), len(self.images))
        self.seed, self.n_resamples = seed, n_resamples
        self.resamples = resampler(self.images, seed, n_resamples)

    def add_all(self, programs: Mapping[str, str | None], image_objects: ImageObjects | None) -> None:
        """Add all rows. `programs`: the requested Java programs, each with the reason why it cannot run."""
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
        """Estimates of each term: all images, then each group. They share the resamples of images."""
        if not self.images:
            return {}
        counts = self.columns.counts
        by_group = np.hstack([counts, *(counts * in_group[:, None] for in_group in self.is_member)])
        n_blocks = 1 + len(self.groups)

        def statistic(sums: Array) -> Array:
            return np.hstack([self.columns.values(block) for block in np.split(sums, n_blocks, axis=1)])

        all_estimates = bootstrap(by_group, statistic, self.resamples)
        names = list(self.columns.terms)
        return {name: all_estimates[index :: len(names)] for index, name in enumerate(names)}

    def _add_term(self, term: str) -> None:
        measured = self.columns.measured_images[term] > 0
        for index, group in enumerate((None, *self.groups)):
            images = measured if group is None else measured & self.is_member[index - 1]
            estimate = self._rate_interval(term, self.estimates[term][index], images)
            of_group = f"of '{group}' " if group is not None else ""
            self.builder.add(
                term,
                estimate,
                system=self.source,
                group=group,
                n=int(images.sum()),
                reason=None
                if estimate.value is not None
                else f"no image {of_group}has what it is counted from",
                evidence=self._evidence_frame(term, images),
                in_brief=group is not None,
                resampler=self.resamples,
            )

    def _rate_interval(self, term: str, estimate: Estimate, images: NDArray[np.bool_]) -> Estimate:
        """The estimate with Wilson's interval where it is a rate: without successes, resamples would have no spread."""
        if term not in self.columns.rate_columns or estimate.value is None:
            return estimate
        column = self.columns.rate_columns[term]
        successes, trials = self.columns.counts[images, column : column + 2].T
        low, high = clustered_wilson(successes, trials)
        return replace(estimate, low=low, high=high)

    def _add_gaps(self) -> None:
        """Add the largest difference between two groups with enough images, for every term."""
        p_values = self._gap_p_values()
        for index, (term, estimates) in enumerate(self.estimates.items()):
            groups = np.flatnonzero(self._is_comparable[:, index]).tolist()
            images = (self.columns.measured_images[term] > 0) & self.is_member[groups].any(axis=0)
            if len(groups) < 2:
                reason = f"fewer than two groups have {TOO_FEW} images to compare"
                self.builder.add(term + GAP, None, system=self.source, n=int(images.sum()), reason=reason)
                continue
            ranked = sorted(
                (estimates[group + 1] for group in groups), key=lambda estimate: estimate.value or 0.0
            )
            low, high = ranked[0], ranked[-1]
            difference = paired_difference(
                low.value or 0.0, high.value or 0.0, low.replicates, high.replicates
            )
            self.builder.add(
                term + GAP,
                Estimate(
                    difference.value,
                    difference.low,
                    difference.high,
                    difference.se,
                    high.replicates - low.replicates,
                ),
                system=self.source,
                n=int(images.sum()),
                p=float(p_values[index]),
                evidence=self._evidence_frame(term, images),
                in_brief=True,
                resampler=self.resamples,
            )

    @cached_property
    def _is_comparable(self) -> NDArray[np.bool_]:
        """Whether a group has a value from enough images: (groups, terms)."""
        measured = np.array([images > 0 for images in self.columns.measured_images.values()])
        sizes = self.is_member.astype(np.int64) @ measured.T.astype(np.int64)
        has_value = np.array(
            [
                [estimate.value is not None for estimate in estimates[1:]]
                for estimates in self.estimates.values()
            ]
        ).T
        return np.asarray((sizes >= TOO_FEW) & has_value, dtype=bool)

    def _gap_p_values(self) -> Array:
        """Permutation p value of each gap: groups are permuted among the labelled images."""
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
        """Add the number of distinct words; resamples do not give its error, since it grows with the captions."""
        all_images = np.ones(len(self.images), dtype=bool)
        words = self.captions.tokens.captions
        for group, images in ((None, all_images), *zip(self.groups, self.is_member, strict=True)):
            chosen = np.flatnonzero(images[self.image_index]) if len(self.image_index) else ()
            distinct = {word for index in chosen for word in words[index]}
            self.builder.add(
                "vocabulary",
                float(len(distinct)),
                system=self.source,
                group=group,
                n=int(images.sum()),
                evidence=self._evidence_frame("length", images),
                in_brief=True,
            )

    def _evidence_frame(self, term: str, images: NDArray[np.bool_]) -> pl.DataFrame:
        """Evidence: captions in order of their value; a sample of them contains both ends."""
        values = self.scores.per_caption[term]
        indices = np.flatnonzero(images[self.image_index] & np.isfinite(values))
        indices = indices[np.argsort(values[indices], kind="stable")]
        if self.evidence_limit and len(indices) > self.evidence_limit:
            indices = indices[np.linspace(0, len(indices) - 1, self.evidence_limit).astype(np.int64)]
        rows = [self._evidence_row(index) for index in indices.tolist()]
        columns = ("image_id", "caption", "detail")
        return pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String()), orient="row")

    def _evidence_row(self, index: int) -> tuple[str, str, str]:
        detail = self.scores.details[index] | {"references": self._shown_references[self.image_index[index]]}
        return (
            self.images[self.image_index[index]],
            self.captions.captions[index],
            json.dumps(detail, ensure_ascii=False),
        )

    @cached_property
    def _shown_references(self) -> list[list[str]]:
        """The first references of each image."""
        references: list[list[str]] = [[] for _ in self.images]
        for image, caption in zip(
            self.captions.tokens.reference_image.tolist(), self.captions.references, strict=True
        ):
            if len(references[image]) < _SHOWN_REFERENCES:
                references[image].append(caption)
        return references


def _undefined_reason(
    term: str,
    captions: SourceCaptions,
    programs: Mapping[str, str | None],
    image_objects: ImageObjects | None,
) -> str | None:
    """The reason why a term has no value; None where it was not requested."""
    if term in ("meteor", "spice") and term not in programs:
        return None
    if programs.get(term):
        return programs[term]
    if term in OBJECT_TERMS and image_objects is None:
        return "the study has no labels of objects"
    if term in REFERENCE_TERMS:
        if term.startswith("cider") and len(captions.references) > (
            captions.tokens.own_reference is not None
        ):
            return "document frequencies need two images with references or more"
        has_own = captions.tokens.own_reference is not None
        return "no image has two human captions" if has_own else "no caption has a reference"
    return "there is no caption"
