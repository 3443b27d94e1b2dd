"""Does a system name a group more or less often than people do?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.mentions import CaptionMentions, choose_lexicon, find_mentions
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
    title="Naming a group as often as people do",
    question="How many captions of the system name a group, for each that people wrote of the same images?",
    formula=(
        "ratio(g) = captions of the system naming g / captions of people naming g, over the images both describe. "
        "People's count of an image is the share of its references that name g (people='mean'), whether any does "
        "('any'), or whether more than half do ('majority'). For all people: captions naming any group."
    ),
    range="0 and up; 1 where the system names the group as often as people.",
    needs=("captions", "references"),
    paper="Called leakage in Sabir and Padro, 2023 (Table 3), whose rule for counting people's captions is unstated.",
    caveats=(
        "It compares totals: a system may name a group as often as people do, on other images.",
        "A caption naming several groups counts for each.",
    ),
    terms=(
        Term(
            "ratio", "captions of the system naming the group, for each of people's", "ratio", "closer", 1.0
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
    cautioned={LENGTH: ("ratio",)},
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
        Literal["mean", "any", "majority"], "When the people describing an image count as naming a group."
    ] = "mean",
) -> ResultBuilder:
    """One ratio per group and system.

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
    described = find_mentions(study, HUMAN, words)
    for system in sources:
        if system == HUMAN:  # people are what the others are held against
            continue
        mentions = find_mentions(study, system, words)
        shared = sorted(set(mentions.images) & set(described.images))
        mentions, references = mentions.only(shared), described.only(shared)
        said = _with_any(mentions.share_per_image(mentions.named.astype(np.float64)), mentions)
        heard = _people_count(references, human)
        draw = resampler(mentions.images, seed, bootstrap)
        for index, group in ((-1, None), *enumerate(mentions.groups)):
            counts = np.column_stack([said[:, index], heard[:, index]])
            reason = (
                None if heard[:, index].any() else f"no person names {group or 'a group'} on these images"
            )
            estimate, p = (None, None) if reason else _ratio(counts, draw)
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
                resampler=draw,
            )
    return builder


def _ratio(counts: NDArray[np.float64], draw: Resampler) -> tuple[Estimate, float | None]:
    """Named by the system / named in references, and p of its being 1.

    Where the system never names the group, resamples say nothing of how often it would on other images: the interval
    then reaches as far as that of a share of 0 of these images.
    """
    (estimate,) = bootstrap(counts, divide_columns, draw)
    said, heard = counts.T
    most = rate(said, np.ones(len(said)), draw).high
    if said.any() or most is None:
        return estimate, bootstrap_p(estimate.replicates, null=1.0)
    high = most / float(heard.mean())
    return replace(estimate, high=high), Interval(0.0, 0.0, high).p(1.0)


def _with_any(per_group: NDArray[np.float64], mentions: CaptionMentions) -> NDArray[np.float64]:
    """The groups' columns, and one for captions that name any group."""
    named = mentions.names_any.astype(np.float64)[:, None]
    return np.hstack([per_group, mentions.share_per_image(named)])


def _people_count(human: CaptionMentions, people: str) -> NDArray[np.float64]:
    if people == "mean":
        return _with_any(human.share_per_image(human.named.astype(np.float64)), human)
    named = np.column_stack([human.named, human.names_any]).astype(np.float64)
    votes = human.count_per_image(named)
    voters = human.count_per_image(np.ones((len(human.captions), 1)))
    return np.asarray(votes > 0 if people == "any" else 2 * votes > voters, dtype=np.float64)
