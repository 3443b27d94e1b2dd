"""Errors in naming the group of the person shown: error rate, ratio of groups, and shares of outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.base.card import BeforeAfter, Card, Term
from portrayal.metrics.base.options import Bootstrap, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import (
    CaptionMentions,
    choose_lexicon,
    find_mentions,
    lexicon_names,
)
from portrayal.statements import GROUPS, HUMAN_CAPTIONS, Statement
from portrayal.stats import RESAMPLES, bootstrap, bootstrap_p, divide_columns, rate, resampler
from portrayal.study import Study

OUTCOMES = ("right", "wrong", "neutral", "both")

CARD = Card(
    name="error",
    answers="names",
    title="Naming the person's group",
    question="How often do captions name the group of the person shown, the wrong group, none, or several?",
    formula=(
        "Over the images of a group: right, wrong, neutral and both are the shares of captions that name only "
        "that group, only another one, none, and several; they add up to 1. "
        "error = captions naming only another group / captions naming exactly one. "
        "ratio = captions naming only this group / captions naming only another one; its p tests whether it equals the "
        "ratio of the labels."
    ),
    range="right, wrong, neutral, both, error: 0 to 1. ratio: 0 and up.",
    needs=("captions", "attributes"),
    paper=(
        "Burns, Hendricks, Saenko, Darrell and Rohrbach, Women also Snowboard, ECCV 2018 (error and ratio); "
        "reported beside LIC by Hirota, Nakashima and Garcia, CVPR 2022."
    ),
    caveats=(
        "Error alone misleads: a system that always writes 'person' has no error, since it names no group. "
        "Read right, wrong, neutral and both together.",
        "Naming the group of fewer people is not worse in itself, so right, neutral and both have no ideal.",
        "The label is what annotators saw, not how the person identifies.",
        "A caption may rightly name several people; then it counts as 'both' and enters neither right nor wrong.",
        "A word outside the list names nobody; see how the numbers move with another list (--lexicon).",
    ),
    terms=(
        Term("right", "captions naming only the labelled group", "share"),
        Term("wrong", "captions naming only another group", "share", "lower", 0.0),
        Term("neutral", "captions naming no group", "share"),
        Term("both", "captions naming several groups", "share"),
        Term("error", "wrong among captions naming exactly one group", "share", "lower", 0.0),
        Term("ratio", "captions naming this group for each naming another (ideal: as labelled)", "ratio", "closer"),
    ),
    statements=(
        Statement(
            "error",
            GROUPS,
            "When {system} names one {attribute}, it is the wrong one more often for {group} than for {other}",
            "{system} names the wrong {attribute} more often for one group, when it names one",
            smallest=0.005,
            factor=1.25,
        ),
        Statement(
            "error",
            HUMAN_CAPTIONS,
            "When {system} names one {attribute}, it is the wrong one more often than in human captions",
            "{system} names the wrong {attribute} more often than human captions do, when it names one",
            "When {system} names one {attribute}, it is the wrong one less often than in human captions",
            smallest=0.005,
            factor=1.25,
        ),
    ),
    before_after=BeforeAfter(order=2, printed=OUTCOMES, printed_by_group=("wrong", "neutral")),
    responds_to={"wrong": "wrong-group", "error": "wrong-group", "neutral": "neutral", "ratio@one": "-wrong-group@one"},
    should_ignore=("amplification", "hallucination", "length", "vocabulary", "repetition", "data-bias"),
    lab_notes=dict.fromkeys(
        ("wrong", "error"),
        "where no caption names a wrong group the share is 0, and an interval from 0 up contains 0",
    ),
)  # fmt: skip


@metric(CARD)
def error(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Words = None,
) -> ResultBuilder:
    """Shares of right, wrong, neutral and both per group, with the error and the ratio.

    Right, wrong, neutral and both are shares of images: an image with several captions (samples, or references)
    counts once, with an equal weight for each of its captions. Error and ratio count captions.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": [1, 2, 3], "system": ["s"] * 3,
    ...                            "caption": ["a man", "a man", "a person"]}),
    ...     attributes=pl.DataFrame({"image_id": [1, 2, 3], "gender": ["male", "female", "female"]}))
    >>> {m.term: m.value for m in portrayal.metrics.error(study).measurements if m.group == "female"}
    {'right': 0.0, 'wrong': 0.5, 'neutral': 0.5, 'both': 0.0, 'error': 1.0, 'ratio': 0.0}
    """
    words = choose_lexicon(lexicon, attribute)
    groups = study.groups(attribute)
    names = lexicon_names(groups, words, attribute)
    preconditions_met()
    truth = dict(study.labels(attribute).iter_rows())
    builder = ResultBuilder(CARD, attribute, {"lexicon": words.label})
    for source in sources:
        outcomes = _classify_captions(find_mentions(study, source, words), truth, names)
        for group in (None, *groups):
            if group is not None and names[group] is None:
                reason = f"the lexicon '{words.name}' has no words for the group '{group}'"
                n = sum(truth.get(image) == group for image in study.captions_of(source)["image_id"].unique())
                for term in CARD.terms:
                    builder.add(term.name, None, system=source, group=group, n=n, reason=reason)
            else:
                _measure_outcomes(builder, source, group, outcomes, seed, bootstrap)
                _measure_ratio(builder, source, group, outcomes, seed, bootstrap)
    return builder


@dataclass(frozen=True)
class _CaptionOutcomes:
    """The captions of labelled images, with the outcome of each."""

    mentions: CaptionMentions
    groups: tuple[str, ...]  # groups of the study that the lexicon has words for
    truth: NDArray[np.int64]  # per image: index into `groups`
    outcome: NDArray[np.int64]  # per caption: index into OUTCOMES
    # Per caption: index of the group that it names; -1 where it names none, several, or one outside `groups`.
    named_group: NDArray[np.int64]

    @cached_property
    def evidence_table(self) -> pl.DataFrame:
        return self.mentions.evidence_table(
            labelled=[self.groups[self.truth[image]] for image in self.mentions.image_index]
        )


def _classify_captions(
    mentions: CaptionMentions, truth: dict[str, str], names: dict[str, str | None]
) -> _CaptionOutcomes:
    groups = tuple(group for group, lexicon_name in names.items() if lexicon_name is not None)
    mentions = mentions.only([image for image in mentions.images if truth.get(image) in groups])
    index_of = {group: index for index, group in enumerate(groups)}
    labels = np.array([index_of[truth[image]] for image in mentions.images], dtype=np.int64)
    # The lexicon's columns in the order of the study's groups; the lexicon may have further groups.
    lexicon_columns = [mentions.groups.index(str(names[group])) for group in groups]
    n_groups = mentions.n_groups
    named = mentions.named[:, lexicon_columns]
    named_group = np.where((n_groups == 1) & named.any(axis=1), named.argmax(axis=1), -1)
    right = named_group == labels[mentions.image_index]
    outcome = np.select([n_groups == 0, n_groups > 1, right], [2, 3, 0], default=1)
    return _CaptionOutcomes(mentions, groups, labels, outcome, named_group)


def _measure_outcomes(
    builder: ResultBuilder,
    source: str,
    group: str | None,
    outcomes: _CaptionOutcomes,
    seed: int,
    n_resamples: int,
) -> None:
    """Right, wrong, neutral, both and error of one group, or of all images where `group` is None."""
    mentions = outcomes.mentions
    in_group = (
        np.ones(len(mentions.images), dtype=bool)
        if group is None
        else outcomes.truth == outcomes.groups.index(group)
    )
    images = tuple(name for name, keep in zip(mentions.images, in_group, strict=True) if keep)
    counts = mentions.mean_per_image(np.eye(len(OUTCOMES))[outcomes.outcome])[in_group]
    undefined_reason = (
        None if images else "no captioned image of this group" if group else "no captioned image with a label"
    )
    resamples = resampler(images, seed, n_resamples)
    n_captions = float(in_group[mentions.image_index].sum())
    for index, outcome in enumerate(OUTCOMES):
        estimate = (
            rate(counts[:, index], np.ones(len(images)), resamples, max_effective=n_captions)
            if images
            else None
        )
        evidence = mentions.evidence(
            in_group[mentions.image_index] & (outcomes.outcome == index), outcomes.evidence_table
        )
        builder.add(
            outcome,
            estimate,
            system=source,
            group=group,
            n=len(images),
            reason=undefined_reason,
            evidence=evidence,
            resampler=resamples,
        )
    # Captions are counted here, not images: an image with two captions that name a group counts twice.
    right, wrong = mentions.sum_per_image(np.eye(len(OUTCOMES))[outcomes.outcome])[in_group, :2].T
    decided = in_group[mentions.image_index] & (outcomes.outcome <= 1)
    builder.add(
        "error",
        rate(wrong, right + wrong, resamples) if decided.any() else None,
        system=source,
        group=group,
        n=int(decided.sum()),
        n_unit="caption",
        support=len(np.unique(mentions.image_index[decided])),
        reason=undefined_reason or (None if decided.any() else "no caption names exactly one group"),
        evidence=mentions.evidence(decided & (outcomes.outcome == 1), outcomes.evidence_table),
        resampler=resamples,
    )


def _measure_ratio(
    builder: ResultBuilder,
    source: str,
    group: str | None,
    outcomes: _CaptionOutcomes,
    seed: int,
    n_resamples: int,
) -> None:
    """Ratio of captions that name one group to those that name another; overall: the rarest to the most common.

    The labels decide which group is rarest, so that the ratio has the same direction for every source. The mix of
    groups is itself random, so images of all groups are resampled together.
    """
    mentions, group_indices = outcomes.mentions, range(len(outcomes.groups))
    label_counts = np.bincount(outcomes.truth, minlength=len(outcomes.groups))
    ranked = sorted(group_indices, key=lambda index: (label_counts[index], outcomes.groups[index]))
    if group is not None:
        numerator = [outcomes.groups.index(group)]
        denominator = [index for index in group_indices if index not in numerator]
    else:
        numerator, denominator = ranked[:1], ranked[-1:]
    named = np.isin(outcomes.named_group, numerator + denominator)
    sides = np.column_stack(
        [np.isin(outcomes.named_group, numerator), np.isin(outcomes.named_group, denominator)]
    ).astype(np.float64)
    counts = mentions.sum_per_image(sides)
    reason = None
    if len(outcomes.groups) < 2:
        reason = "the study has one group only that the lexicon names"
    elif not mentions.images:
        reason = "no captioned image with a label"
    elif not counts[:, 1].any():
        reason = f"no caption names only {' or '.join(outcomes.groups[index] for index in denominator)}"
    # With two groups, the overall row repeats the number of one group: it states which.
    caution = None
    if group is None and reason is None:
        rarest, commonest = outcomes.groups[numerator[0]], outcomes.groups[denominator[0]]
        caution = f"The ratio of all people is that of {rarest}, the rarest group, to {commonest}."
    resamples = resampler(mentions.images, seed, n_resamples)
    # The ratio of the labels is resampled along with it: other images would have had other labels.
    labelled = np.column_stack(
        [np.isin(outcomes.truth, numerator), np.isin(outcomes.truth, denominator)]
    ).astype(np.float64)
    ratio_over_labels = (
        None if reason else bootstrap(np.hstack([counts, labelled]), _ratio_over_labels, resamples)[0]
    )
    builder.add(
        "ratio",
        None if reason else bootstrap(counts, divide_columns, resamples)[0],
        p=None if ratio_over_labels is None else bootstrap_p(ratio_over_labels.replicates, null=1.0),
        system=source,
        group=group,
        n=int(named.sum()),
        n_unit="caption",
        support=len(np.unique(mentions.image_index[named])),
        reason=reason,
        caution=caution,
        ideal=float(label_counts[numerator].sum() / label_counts[denominator].sum())
        if label_counts[denominator].sum()
        else None,
        evidence=mentions.evidence(named, outcomes.evidence_table),
        resampler=resamples,
    )


def _ratio_over_labels(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    return divide_columns(np.column_stack([totals[:, 0] * totals[:, 3], totals[:, 1] * totals[:, 2]]))
