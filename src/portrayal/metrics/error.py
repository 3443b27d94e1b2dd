"""Does the caption name the group of the person shown?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from portrayal.metrics.base.card import Card, Term
from portrayal.metrics.base.metric import metric
from portrayal.metrics.base.options import Bootstrap, Words
from portrayal.metrics.base.preconditions import preconditions_met
from portrayal.metrics.base.result_builder import ResultBuilder
from portrayal.metrics.shared.mentions import CaptionMentions, choose_lexicon, find_mentions, lexicon_names
from portrayal.statements import GROUPS, HUMAN_CAPTIONS, Statement
from portrayal.stats import RESAMPLES, bootstrap, bootstrap_p, divide_columns, rate, resampler
from portrayal.study import Study

OUTCOMES = ("right", "wrong", "neutral", "both")

CARD = Card(
    name="error",
    title="Naming the person's group",
    question="How often do captions name the group of the person shown, the wrong group, none, or several?",
    formula=(
        "Over the images of a group: right, wrong, neutral and both are the shares of captions that name only "
        "that group, only another one, none, and several; they add up to 1. "
        "error = captions naming only another group / captions naming exactly one. "
        "ratio = captions naming only this group / captions naming only another one; its p asks whether it is the "
        "ratio of the labels."
    ),
    range="right, wrong, neutral, both, error: 0 to 1. ratio: 0 and up.",
    needs=("captions", "attributes"),
    paper=(
        "Burns, Hendricks, Saenko, Darrell and Rohrbach, Women also Snowboard, ECCV 2018 (error and ratio); "
        "reported beside LIC by Hirota, Nakashima and Garcia, CVPR 2022."
    ),
    caveats=(
        "Error alone misleads: a system that always says 'person' has no error, since it names no group. "
        "Read right, wrong, neutral and both together.",
        "Naming fewer people's group is not worse in itself, so right, neutral and both have no ideal.",
        "The label is what annotators saw, not what the person would say of themselves.",
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
    responds_to={"wrong": "wrong-group", "error": "wrong-group", "neutral": "neutral", "ratio@one": "-wrong-group@one"},
    should_ignore=("amplification", "hallucination", "length", "vocabulary", "repetition", "data-bias"),
    lab_notes=dict.fromkeys(
        ("wrong", "error"),
        "where no caption names a wrong group the share is 0, and an interval from 0 up holds 0",
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
    """Right, wrong, neutral and both per group, and the error and ratio made from them.

    Right, wrong, neutral and both are shares of images: an image with several captions (samples, or people's
    references) counts once, each of its captions having an equal part in it. Error and ratio count captions.

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
        judged = _judge(find_mentions(study, source, words), truth, names)
        for group in (None, *groups):
            if group is not None and names[group] is None:
                reason = f"the lexicon '{words.name}' has no words for the group '{group}'"
                n = sum(truth.get(image) == group for image in study.spoken(source)["image_id"].unique())
                for term in CARD.terms:
                    builder.add(term.name, None, system=source, group=group, n=n, reason=reason)
            else:
                _measure_outcomes(builder, source, group, judged, seed, bootstrap)
                _measure_ratio(builder, source, group, judged, seed, bootstrap)
    return builder


@dataclass(frozen=True)
class _Judged:
    """The captions of labelled images, and how each names the person shown."""

    mentions: CaptionMentions
    groups: tuple[str, ...]  # the study's groups that the lexicon has words for
    truth: NDArray[np.int64]  # per image: which of `groups`
    outcome: NDArray[np.int64]  # per caption: which of OUTCOMES
    names: NDArray[
        np.int64
    ]  # per caption: the one of `groups` it names; -1 where it names none, several or another

    @cached_property
    def described(self) -> pl.DataFrame:
        return self.mentions.described(
            labelled=[self.groups[self.truth[image]] for image in self.mentions.image]
        )


def _judge(mentions: CaptionMentions, truth: dict[str, str], names: dict[str, str | None]) -> _Judged:
    groups = tuple(group for group, listed in names.items() if listed is not None)
    mentions = mentions.only([image for image in mentions.images if truth.get(image) in groups])
    place = {group: index for index, group in enumerate(groups)}
    labels = np.array([place[truth[image]] for image in mentions.images], dtype=np.int64)
    # The lexicon's columns in the order of the study's groups; the lexicon may have more groups than the study.
    listed = [mentions.groups.index(str(names[group])) for group in groups]
    several = mentions.how_many
    chosen = mentions.named[:, listed]
    one = np.where((several == 1) & chosen.any(axis=1), chosen.argmax(axis=1), -1)
    right = one == labels[mentions.image]
    outcome = np.select([several == 0, several > 1, right], [2, 3, 0], default=1)
    return _Judged(mentions, groups, labels, outcome, one)


def _measure_outcomes(
    builder: ResultBuilder, source: str, group: str | None, judged: _Judged, seed: int, n_resamples: int
) -> None:
    """Right, wrong, neutral, both and error of one group, or of all images where `group` is None."""
    mentions = judged.mentions
    mine = (
        np.ones(len(mentions.images), dtype=bool)
        if group is None
        else judged.truth == judged.groups.index(group)
    )
    images = tuple(name for name, yes in zip(mentions.images, mine, strict=True) if yes)
    counts = mentions.share_per_image(np.eye(len(OUTCOMES))[judged.outcome])[mine]
    nothing = (
        None if images else "no captioned image of this group" if group else "no captioned image with a label"
    )
    draw = resampler(images, seed, n_resamples)
    captions = float(mine[mentions.image].sum())
    for index, outcome in enumerate(OUTCOMES):
        estimate = rate(counts[:, index], np.ones(len(images)), draw, most=captions) if images else None
        evidence = mentions.evidence(mine[mentions.image] & (judged.outcome == index), judged.described)
        builder.add(
            outcome,
            estimate,
            system=source,
            group=group,
            n=len(images),
            reason=nothing,
            evidence=evidence,
            resampler=draw,
        )
    # Captions are counted here, not images: an image of which two captions name a group decides twice.
    right, wrong = mentions.count_per_image(np.eye(len(OUTCOMES))[judged.outcome])[mine, :2].T
    decided = mine[mentions.image] & (judged.outcome <= 1)
    builder.add(
        "error",
        rate(wrong, right + wrong, draw) if decided.any() else None,
        system=source,
        group=group,
        n=int(decided.sum()),
        n_unit="caption",
        support=len(np.unique(mentions.image[decided])),
        reason=nothing or (None if decided.any() else "no caption names exactly one group"),
        evidence=mentions.evidence(decided & (judged.outcome == 1), judged.described),
        resampler=draw,
    )


def _measure_ratio(
    builder: ResultBuilder, source: str, group: str | None, judged: _Judged, seed: int, n_resamples: int
) -> None:
    """Captions that name one group for each that names another; without a group, the rarest to the commonest.

    Which group is rare is decided by the images' labels, so that every speaker is measured the same way round.
    The mix of groups is itself random, so images are drawn from all of them together.
    """
    mentions, places = judged.mentions, range(len(judged.groups))
    shown = np.bincount(judged.truth, minlength=len(judged.groups))
    ranked = sorted(places, key=lambda place: (shown[place], judged.groups[place]))
    if group is not None:
        top = [judged.groups.index(group)]
        bottom = [place for place in places if place not in top]
    else:
        top, bottom = ranked[:1], ranked[-1:]
    named = np.isin(judged.names, top + bottom)
    sides = np.column_stack([np.isin(judged.names, top), np.isin(judged.names, bottom)]).astype(np.float64)
    counts = mentions.count_per_image(sides)
    reason = None
    if len(judged.groups) < 2:
        reason = "the study has one group only that the lexicon names"
    elif not mentions.images:
        reason = "no captioned image with a label"
    elif not counts[:, 1].any():
        reason = f"no caption names only {' or '.join(judged.groups[place] for place in bottom)}"
    # The row of all people repeats a group's number where there are two groups: it has to say which.
    of_all = None
    if group is None and reason is None:
        rarest, commonest = judged.groups[top[0]], judged.groups[bottom[0]]
        of_all = f"The ratio of all people is that of {rarest}, the rarest group, to {commonest}."
    draw = resampler(mentions.images, seed, n_resamples)
    # Is it the labels' ratio? That one is drawn along with it: other images would have had other labels.
    labelled = np.column_stack([np.isin(judged.truth, top), np.isin(judged.truth, bottom)]).astype(np.float64)
    against = None if reason else bootstrap(np.hstack([counts, labelled]), _ratio_to_labels, draw)[0]
    builder.add(
        "ratio",
        None if reason else bootstrap(counts, divide_columns, draw)[0],
        p=None if against is None else bootstrap_p(against.replicates, null=1.0),
        system=source,
        group=group,
        n=int(named.sum()),
        n_unit="caption",
        support=len(np.unique(mentions.image[named])),
        reason=reason,
        caution=of_all,
        ideal=float(shown[top].sum() / shown[bottom].sum()) if shown[bottom].sum() else None,
        evidence=mentions.evidence(named, judged.described),
        resampler=draw,
    )


def _ratio_to_labels(totals: NDArray[np.float64]) -> NDArray[np.float64]:
    return divide_columns(np.column_stack([totals[:, 0] * totals[:, 3], totals[:, 1] * totals[:, 2]]))
