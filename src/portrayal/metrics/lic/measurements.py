"""The measurements of LIC for one system under one configuration."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from portrayal.errors import Undefined
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.lic.settings import LicSettings
from portrayal.metrics.shared.classifier.aggregation import RepeatedEstimate, difference
from portrayal.metrics.shared.classifier.corpus_builder import REFERENCES, CorpusBuilder
from portrayal.metrics.shared.classifier.cross_validation import Corpora, Protocol
from portrayal.metrics.shared.classifier.evidence import repeated_captions
from portrayal.metrics.shared.classifier.source_evaluation import (
    ACCURACY,
    CALIBRATED,
    CONFIDENCE,
    SourceEvaluation,
)
from portrayal.metrics.shared.classifier.splits import not_in_training
from portrayal.metrics.shared.classifier.word_attributions import caption_totals, word_attributions
from portrayal.metrics.shared.classifier.word_contributions import WordContribution, word_contributions
from portrayal.models.text_classifiers.tasks import ClassificationTask
from portrayal.results import TOO_FEW
from portrayal.stats import Estimate, benjamini_hochberg, resampler

MAX_CAPTIONS_PER_WORD = 20  # evidence of one word
_EXTRA_SCORES = {"lic_m_calibrated": CALIBRATED, "accuracy": ACCURACY, "confidence": CONFIDENCE}


@dataclass(frozen=True)
class _PairedCorpora:
    """Corpora of the system and of humans on the images with enough human captions, and a note on what is
    left out.
    """

    system: Corpora
    human: Corpora
    note: str | None


@dataclass(frozen=True, eq=False)
class LicMeasurements:
    """One system under one configuration, and the builder that collects its rows."""

    builder: ResultBuilder
    system: str
    settings: LicSettings
    corpus_builder: CorpusBuilder
    groups: tuple[str, ...]
    seed: int
    n_resamples: int

    @cached_property
    def _protocol(self) -> Protocol:
        return self.settings.protocol(len(self.groups))

    @cached_property
    def _system_corpora(self) -> Corpora:
        """Corpora of the system's captions."""
        return self._require_groups(
            [[corpus] for corpus in self.corpus_builder.system_corpora(self.system, self.settings.seeds)]
        )

    def _require_groups(self, corpora: Corpora) -> Corpora:
        counts = np.bincount(corpora[0][0].group, minlength=len(self.groups))
        missing = [group for group, count in zip(self.groups, counts, strict=True) if not count]
        if missing:
            raise Undefined(f"no captioned image of {' or '.join(missing)}")
        return corpora

    @cached_property
    def _paired_corpora(self) -> _PairedCorpora:
        if not self.corpus_builder.study.references.height:
            raise Undefined("the study has no human captions (references)")
        images = self._system_corpora[0][0].images
        counts = self.corpus_builder.reference_counts()
        typical = Counter(counts[image] for image in images if counts[image]).most_common(1)
        if not typical:
            raise Undefined("none of the images has human captions")
        n_references = self.settings.references or min(REFERENCES, typical[0][0])
        indices = [index for index, image in enumerate(images) if counts[image] >= n_references]
        if not indices:
            raise Undefined(f"no image has {n_references} human captions")
        paired, note = self._system_corpora, None
        if len(indices) < len(images):
            left_out = f"{len(images) - len(indices):,} of {len(images):,} images"
            note = f"{left_out} have fewer than {n_references} human captions and are left out"
            smaller = {id(repeat[0]): repeat[0].subset(indices) for repeat in self._system_corpora}
            paired = self._require_groups([[smaller[id(repeat[0])]] for repeat in self._system_corpora])
        vocabulary = self.corpus_builder.vocabulary(self.system, str(self.builder.settings["vocabulary"]))
        gap_note = self.corpus_builder.vocabulary_gap(self._system_corpora[0][0], vocabulary)
        human = self.corpus_builder.human_corpora(
            paired[0][0].images, self.settings.seeds, n_references, vocabulary
        )
        return _PairedCorpora(paired, human, "; ".join(filter(None, (note, gap_note))) or None)

    def tasks(self) -> list[ClassificationTask]:
        """All training tasks of a neural classifier, except those of permutations."""
        all_tasks: list[ClassificationTask] = []
        try:
            all_tasks += self._protocol.tasks(self._system_corpora)
            if self._paired_corpora.system is not self._system_corpora:
                all_tasks += self._protocol.tasks(self._paired_corpora.system)
            all_tasks += self._protocol.tasks(self._paired_corpora.human)
        except Undefined:
            pass  # the row of the number states the reason
        return all_tasks

    def measure(self, in_full: bool) -> None:
        """Add all rows; with `in_full`, for the first configuration only, also word contributions."""
        try:
            system = self._evaluate(self._system_corpora, extra_scores=True)
            # computed on demand: an undefined number must be known before the first row
            _ = system.caption_scores
        except Undefined as reason:
            self.builder.add("lic_m", None, system=self.system, n=0, reason=str(reason))
            return
        self._add_system(system)
        try:
            self._add_paired(system)
        except Undefined as reason:
            for term in (
                "lic_d",
                "lic_m_paired",
                "lic",
                *(("null_d", "lic_excess") if self.settings.permutations else ()),
            ):
                self.builder.add(
                    term, None, system=self.system, n=int(system.n_tested.sum()), reason=str(reason)
                )
        self._add_extra_scores(system)
        self._add_duplicates(system)
        if in_full and self.settings.explained:
            self._add_words(system)

    def _evaluate(self, corpora: Corpora, extra_scores: bool = False) -> SourceEvaluation:
        """Predict these captions; with `extra_scores` also accuracy, confidence and calibrated scores."""
        return SourceEvaluation(
            self._protocol,
            corpora,
            self._protocol.cross_val_predict(corpora),
            self.groups,
            self.seed,
            self.n_resamples,
            self.settings.permutations,
            extra_scores,
        )

    def _add_extra_scores(self, evaluation: SourceEvaluation) -> None:
        for term, column in _EXTRA_SCORES.items():
            if column == CALIBRATED and not self._protocol.can_calibrate:
                reason = "calibration needs predictions of other seeds, and there is only one seed"
                self.builder.add(
                    term, None, system=self.system, n=int(evaluation.n_tested.sum()), reason=reason
                )
                continue
            for group in self._groups_and_mean:
                self._add(
                    term,
                    evaluation,
                    evaluation.estimate(group, column),
                    group,
                    evaluation.evidence.rows(group),
                )

    @property
    def _groups_and_mean(self) -> tuple[int | None, ...]:
        """None for the mean over groups, then the index of each group."""
        return (None, *range(len(self.groups)))

    def _add_system(self, evaluation: SourceEvaluation) -> None:
        note = self._common_folds_note(evaluation)
        for group in self._groups_and_mean:
            self._add(
                "lic_m",
                evaluation,
                evaluation.estimate(group),
                group,
                self._evidence(evaluation, group),
                chance=True,
                note=note,
            )
        self._add_null("null_m", evaluation)

    def _evidence(self, evaluation: SourceEvaluation, group: int | None) -> pl.DataFrame:
        """Captions with their scores; for the mean over groups all of them, so that two systems can be
        compared.
        """
        if group is not None or self.settings.published:
            return evaluation.evidence.rows(group)
        return evaluation.evidence.rows(max_rows=None, details=evaluation.image_effects())

    def _add_paired(self, evaluation: SourceEvaluation) -> None:
        pair, note = self._paired_corpora, self._paired_corpora.note
        paired = evaluation if pair.system is self._system_corpora else self._evaluate(pair.system)
        human = self._evaluate(pair.human)
        if self.settings.split == "paper-unseen":
            counts = [f"{side.n_tested.sum():,.0f}" for side in (paired, human)]
            sizes_note = (
                f"tested on {counts[0]} images for the system and {counts[1]} for humans, each unseen"
            )
            note = "; ".join(filter(None, (note, sizes_note)))
        for group in self._groups_and_mean:
            self._add(
                "lic_d",
                human,
                human.estimate(group),
                group,
                human.evidence.rows(group),
                chance=True,
                note=note,
            )
        self._add_null("null_d", human)
        for group in self._groups_and_mean:
            captions = self._evidence(paired, group)
            self._add("lic_m_paired", paired, paired.estimate(group), group, captions, chance=True, note=note)
        score = human.caption_scores.mean_by_image()

        def human_score(image: str) -> dict[str, float]:
            return {"human score": round(score[image], 3)} if image in score else {}

        for group in self._groups_and_mean:
            captions = paired.evidence.rows(group, details=human_score)
            lic = difference(paired.caption_scores, human.caption_scores, group, self.seed, self.n_resamples)
            self._add("lic", paired, lic, group, captions, p=lic.p, note=note)
            system_chance, human_chance = paired.chance_level(group), human.chance_level(group)
            if (
                system_chance is not None
                and human_chance is not None
                and system_chance.value is not None
                and human_chance.value is not None
            ):
                error = math.hypot(paired.chance_se(group), human.chance_se(group))
                excess = lic.shifted(human_chance.value - system_chance.value, error)
                self._add("lic_excess", paired, excess, group, captions, p=excess.p, note=note)

    def _add_duplicates(self, evaluation: SourceEvaluation) -> None:
        """Share of repeated captions, and the score of the test captions that are not in the training set."""
        corpus = evaluation.corpus
        text_counts = corpus.design.text_counts[corpus.design.row]
        captions = repeated_captions(corpus.captions, corpus.images, text_counts)
        if not self.settings.published:
            share = RepeatedEstimate.of([float(np.mean(text_counts > 1))])
            self._add("duplicates", evaluation, share, None, captions, n=len(text_counts))
            return
        paper_protocol = replace(evaluation.protocol, split="paper")
        predictions = (
            evaluation.predictions
            if evaluation.protocol == paper_protocol
            else paper_protocol.cross_val_predict(evaluation.corpora)
        )
        splits = [paper_protocol.splits(repeat[0], seed)[0]
                 for seed, repeat in zip(self.settings.seeds, evaluation.corpora, strict=True)]  # fmt: skip
        unseen = {
            "raw": [
                not_in_training(repeat[0].captions, split)
                for split, repeat in zip(splits, evaluation.corpora, strict=True)
            ],
            "masked": [
                not_in_training(repeat[0].words, split)
                for split, repeat in zip(splits, evaluation.corpora, strict=True)
            ],
        }
        share = RepeatedEstimate.of([1 - float(mask.mean()) for mask in unseen["masked"]])
        self._add("duplicates", evaluation, share, None, captions, n=len(splits[0].test))
        for item, unseen_masks in unseen.items():
            if not any(mask.any() for mask in unseen_masks):
                reason = "every test caption is in the training set"
                self.builder.add(
                    "unseen", None, system=self.system, item=item, n=0, n_unit="caption", reason=reason
                )
                continue
            unseen_predictions = [
                [repeat[0].subset(mask)] for repeat, mask in zip(predictions, unseen_masks, strict=True)
            ]
            unseen_evaluation = replace(
                evaluation, protocol=paper_protocol, predictions=unseen_predictions, extra_scores=False
            )
            count = round(float(np.mean([mask.sum() for mask in unseen_masks])))
            self._add(
                "unseen",
                unseen_evaluation,
                unseen_evaluation.estimate(None),
                None,
                unseen_evaluation.evidence.rows(),
                item=item,
                n=count,
            )

    def _add_words(self, evaluation: SourceEvaluation) -> None:
        """Word contributions: from the weights of a linear classifier, or the gradients of a neural one."""
        predictions = [repeat[0] for repeat in evaluation.predictions]
        exact = predictions[0].weights is not None
        if exact and any(pred.corpus is not predictions[0].corpus for pred in predictions):
            predictions = predictions[:1]  # several captions per image: each repeat has another corpus
        by_text = self._protocol.clusters == "text"
        if not exact:
            self._add_totals(evaluation, by_text)
        for index, group in enumerate(self.groups):
            contributions = (
                word_contributions(predictions, index, TOO_FEW)
                if exact
                else word_attributions(predictions, index, TOO_FEW, by_text)
            )
            contributions = [
                contribution
                for contribution in contributions
                if contribution.word not in self.settings.mask.tokens
            ]
            q = benjamini_hochberg(
                [
                    contribution.p if contribution.captions >= TOO_FEW else None
                    for contribution in contributions
                ]
            )
            for contribution, adjusted_p in zip(contributions, q, strict=True):
                captions = evaluation.evidence.rows(
                    index, word=contribution.word, max_rows=MAX_CAPTIONS_PER_WORD
                )
                self._add_contribution(
                    "word", contribution, group, captions, item=contribution.word, q=adjusted_p
                )

    def _add_totals(self, evaluation: SourceEvaluation, by_text: bool) -> None:
        """Total attribution of a caption's words, for each group and summed over groups as in the paper."""
        totals = caption_totals([repeat[0] for repeat in evaluation.predictions], len(self.groups), by_text)
        if not totals:
            reason = "no caption of one of the groups was classified correctly"
            self.builder.add("attribution", None, system=self.system, n=0, reason=reason)
        for total, index in zip(totals, (*range(len(self.groups)), None), strict=bool(totals)):
            group = None if index is None else self.groups[index]
            self._add_contribution("attribution", total, group, evaluation.evidence.rows(index))

    def _add_contribution(
        self,
        term: str,
        contribution: WordContribution,
        group: str | None,
        captions: pl.DataFrame,
        *,
        item: str | None = None,
        q: float | None = None,
    ) -> None:
        self.builder.add(
            term,
            Estimate(contribution.value, contribution.low, contribution.high, contribution.se, np.empty(0)),
            system=self.system,
            group=group,
            item=item,
            n=contribution.captions,
            n_unit="caption",
            std_seed=contribution.std_seed,
            p=contribution.p,
            q=q,
            evidence=captions,
        )

    def _common_folds_note(self, evaluation: SourceEvaluation) -> str | None:
        """Note on the training captions that common folds remove because their text is in the test set."""
        if self.settings.split != "common":
            return None
        splits = evaluation.protocol.splits(evaluation.corpus, self.settings.seeds[0])
        tested = sum(len(split.test) for split in splits)
        kept_share = sum(len(split.train) for split in splits) / sum(
            tested - len(split.test) for split in splits
        )
        return (
            f"common folds keep {kept_share:.0%} of the training captions; the others repeat a test caption"
        )

    def _add_null(self, term: str, evaluation: SourceEvaluation) -> None:
        for group in self._groups_and_mean:
            estimate = evaluation.chance_level(group)
            if estimate is not None:
                self._add(term, evaluation, estimate, group, evaluation.evidence.rows(group))

    def _add(
        self,
        term: str,
        evaluation: SourceEvaluation,
        estimate: RepeatedEstimate,
        group: int | None,
        captions: pl.DataFrame | None,
        *,
        item: str | None = None,
        n: int | None = None,
        chance: bool = False,
        p: float | None = None,
        note: str | None = None,
    ) -> None:
        """Add a row. With `chance` its ideal is the mean under permuted labels, which also gives p; `n`
        counts captions.
        """
        images = round(float(evaluation.n_tested.sum() if group is None else evaluation.n_tested[group]))
        support = round(float(evaluation.n_tested.min())) if group is None else images
        if term == "duplicates":
            support = n or 0  # counts captions, not images
        chance_level = evaluation.chance_level(group) if chance else None
        if estimate.value is None:
            note = "no caption of one of the groups was tested"
        elif support < TOO_FEW:
            note = None  # the builder reports too few images instead
        self.builder.add(
            term,
            estimate.estimate,
            system=self.system,
            group=None if group is None else self.groups[group],
            item=item,
            n=images if n is None else n,
            n_unit="image" if n is None else "caption",
            support=support,
            std_seed=estimate.std_seed,
            p=evaluation.p(group) if chance else p,
            ideal=None if chance_level is None else chance_level.value,
            reason=note,
            evidence=captions,
            resampler=resampler(evaluation.caption_scores.images, self.seed, self.n_resamples),
        )
