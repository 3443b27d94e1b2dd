"""Ratio of captions naming a group: those of a system to human captions of the same images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.options import Bootstrap, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.registry import metric
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.caption_mentions import CaptionMentions, choose_lexicon, find_mentions
from portrayal.results import HUMAN
from portrayal.statements import GROUPS, Statement
from portrayal.stats import (
    RESAMPLES,
    Estimate,
    Interval,
    Resampler,
    bootstrap,
    bootstrap_p,
    divide_columns,
    rate,
    resampler,
)
from portrayal.study import Study
from portrayal.study.cautions import LENGTH

CARD = Card(
    name="naming-ratio",
    answers="names",
    title="Naming a group as often as human captions do",
    question="How many captions of the system name a group, for each human caption of the same images that does?",
    formula=(
        "ratio(g) = captions of the system naming g / human captions naming g, over the images both describe. "
        "The human count of an image is the share of its references that name g (human='mean'), whether any does "
        "('any'), or whether more than half do ('majority'). For all people: captions naming any group."
    ),
    range="0 and up; 1 where the system names the group as often as human captions.",
    needs=("captions", "references"),
    paper="Called leakage in Sabir and Padro, 2023 (Table 3), whose rule for counting human captions is unstated.",
    caveats=(
        "It compares totals: a system may name a group as often as human captions do, on other images.",
        "A caption naming several groups counts for each.",
    ),
    terms=(
        Term(
            "ratio",
            "captions of the system naming the group, for each human caption that does",
            "ratio",
            "closer",
            1.0,
        ),
    ),
    statements=(
        Statement(
            "ratio",
            GROUPS,
            "Relative to human captions (1 = as often as they do), {system} names {group} less often than {other}",
            "relative to human captions, {system} names one group of {attribute} less often than another",
            worse="lower",
            smallest=0.03,
            factor=1.05,
        ),
    ),
    caution_terms={LENGTH: ("ratio",)},
    responds_to={"ratio": "-erasure", "ratio@one": "-wrong-group@one"},
    should_ignore=("amplification", "hallucination", "length", "vocabulary", "repetition", "data-bias"),
)


@metric(CARD)
def naming_ratio(
    study: Study,
    *,
    attribute: str,
    sources: Sequence[str],
    seed: int = 0,
    bootstrap: Bootstrap = RESAMPLES,
    lexicon: Words = None,
    human: Annotated[
        Literal["mean", "any", "majority"], "When the human captions of an image count as naming a group."
    ] = "mean",
) -> ResultBuilder:
    """Naming ratio of every system: one row per group, and one for all groups.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": [1, 2], "system": ["s"] * 2, "caption": ["a man", "a man"]}),
    ...     references=pl.DataFrame({"image_id": [1, 1, 2], "caption": ["a man", "a person", "a man"]}))
    >>> results = portrayal.metrics.naming_ratio(study, attribute="gender")
    >>> [m.value for m in results.measurements if m.group == "male"]
    [1.3333333333333333]
    """
    words = choose_lexicon(lexicon, attribute)
    preconditions_met()
    builder = ResultBuilder(CARD, attribute, {"lexicon": words.label, "human": human})
    human_mentions = find_mentions(study, HUMAN, words)
    for system in sources:
        # Human captions are the reference of all others.
        if system == HUMAN:
            continue
        mentions = find_mentions(study, system, words)
        shared = sorted(set(mentions.images) & set(human_mentions.images))
        mentions, references = mentions.only(shared), human_mentions.only(shared)
        system_counts = _append_any_group(
            mentions.mean_per_image(mentions.named.astype(np.float64)), mentions
        )
        human_counts = _human_counts(references, human)
        resamples = resampler(mentions.images, seed, bootstrap)
        for index, group in ((-1, None), *enumerate(mentions.groups)):
            counts = np.column_stack([system_counts[:, index], human_counts[:, index]])
            reason = (
                None
                if human_counts[:, index].any()
                else f"no person names {group or 'a group'} on these images"
            )
            estimate, p = (None, None) if reason else _estimate_ratio(counts, resamples)
            named = mentions.names_any if group is None else mentions.named[:, index]
            builder.add(
                "ratio",
                estimate,
                system=system,
                group=group,
                n=len(shared),
                support=int((counts > 0).any(axis=1).sum()),
                reason=reason if shared else "no image has a caption and a reference",
                p=p,
                evidence=mentions.evidence(named),
                resampler=resamples,
            )
    return builder


def _estimate_ratio(counts: NDArray[np.float64], resamples: Resampler) -> tuple[Estimate, float | None]:
    """The ratio of system counts to human counts, and p of the hypothesis that it is 1.

    Where the system never names the group, resamples do not vary: the upper limit is then that of a share of 0 of these
    images.
    """
    (estimate,) = bootstrap(counts, divide_columns, resamples)
    system_counts, human_counts = counts.T
    upper_rate = rate(system_counts, np.ones(len(system_counts)), resamples).high
    if system_counts.any() or upper_rate is None:
        return estimate, bootstrap_p(estimate.replicates, null=1.0)
    high = upper_rate / float(human_counts.mean())
    return replace(estimate, high=high), Interval(0.0, 0.0, high).p(1.0)


def _append_any_group(per_group: NDArray[np.float64], mentions: CaptionMentions) -> NDArray[np.float64]:
    """The columns of the groups, and one for captions that name any group."""
    named = mentions.names_any.astype(np.float64)[:, None]
    return np.hstack([per_group, mentions.mean_per_image(named)])


def _human_counts(mentions: CaptionMentions, rule: str) -> NDArray[np.float64]:
    if rule == "mean":
        return _append_any_group(mentions.mean_per_image(mentions.named.astype(np.float64)), mentions)
    named = np.column_stack([mentions.named, mentions.names_any]).astype(np.float64)
    votes = mentions.sum_per_image(named)
    n_references = mentions.sum_per_image(np.ones((len(mentions.captions), 1)))
    return np.asarray(votes > 0 if rule == "any" else 2 * votes > n_references, dtype=np.float64)
