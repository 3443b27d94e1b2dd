"""Does the caption name the group of the person shown?"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Annotated

import polars as pl

from portrayal.errors import Undefined
from portrayal.lexicon import Finder, Lexicon, lexicon_for, load_lexicon
from portrayal.metrics.card import Card, Term
from portrayal.metrics.findings import Findings
from portrayal.metrics.metric import metric
from portrayal.study import Study

OUTCOMES = ("right", "wrong", "neutral", "both")

CARD = Card(
    name="error",
    title="Naming the person's group",
    question="How often do captions name the group of the person shown, the wrong group, none, or several?",
    formula=(
        "Over the images of a group: right, wrong, neutral and both are the shares of captions that name only "
        "that group, only another one, none, and several; they add up to 1. "
        "error = wrong / (right + wrong). "
        "ratio = captions naming only this group / captions naming only another one."
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
)  # fmt: skip


@metric(CARD)
def error(
    study: Study,
    *,
    attribute: str,
    lexicon: Annotated[
        str | Lexicon | None, "Words that name the groups: a shipped list or a TOML file."
    ] = None,
) -> Findings:
    """Right, wrong, neutral and both per group, and the error and ratio made from them.

    An image with several captions (samples, or people's references) counts once: each of its captions has
    an equal part in it.

    >>> import polars as pl, portrayal
    >>> study = portrayal.Study.from_frames(
    ...     captions=pl.DataFrame({"image_id": [1, 2, 3], "system": ["s"] * 3,
    ...                            "caption": ["a man", "a man", "a person"]}),
    ...     attributes=pl.DataFrame({"image_id": [1, 2, 3], "gender": ["male", "female", "female"]}))
    >>> {m.term: m.value for m in portrayal.metrics.error(study).measurements if m.group == "female"}
    {'right': 0.0, 'wrong': 0.5, 'neutral': 0.5, 'both': 0.0, 'error': 1.0, 'ratio': 0.0}
    """
    words = load_lexicon(lexicon) if lexicon is not None else lexicon_for(attribute)
    groups = study.groups(attribute)
    listed = listed_groups(groups, words)
    if not any(listed.values()):
        raise Undefined(
            f"The lexicon '{words.name}' has words for {', '.join(words.groups) or 'no group'}, but the groups of "
            f"'{attribute}' are {', '.join(groups) or 'none'}; give a lexicon that names them (--lexicon)."
        )
    findings = Findings(CARD, attribute, {"lexicon": words.label})
    for speaker in study.speakers:
        outcomes = caption_outcomes(study, speaker, attribute, Finder(words), listed)
        for group in (None, *groups):
            _measure(findings, speaker, group, outcomes, words, listed)
    return findings


def listed_groups(groups: tuple[str, ...], lexicon: Lexicon) -> dict[str, str | None]:
    """The study's groups with the lexicon's name for each, whatever the case; None where it has no words."""
    known = {group.casefold(): group for group in lexicon.groups}
    return {group: known.get(group.casefold()) for group in groups}


def caption_outcomes(
    study: Study, speaker: str, attribute: str, finder: Finder, listed: dict[str, str | None]
) -> pl.DataFrame:
    """One row per caption of a labelled image: image_id, caption, detail, truth, outcome, names, weight.

    `names` is the one group (in the study's own word) that the caption names, else null. `weight` is one
    over the number of the image's captions. Images of a group for which the lexicon has no words have no outcome.
    """
    spoken = study.spoken(speaker).join(
        study.labels(attribute), on="image_id", how="inner", maintain_order="left"
    )
    ours = {theirs: group for group, theirs in listed.items() if theirs is not None}
    mentions: dict[str, list[tuple[str, str]]] = {}
    outcomes: list[str | None] = []
    names: list[str | None] = []
    details: list[str] = []
    for caption, truth in zip(spoken["caption"], spoken[attribute], strict=True):
        if caption not in mentions:  # generated captions repeat a lot
            mentions[caption] = [(m.group, m.word) for m in finder.mentions(caption)]
        found = list(dict.fromkeys(ours.get(group, group) for group, _ in mentions[caption]))
        outcomes.append(_outcome(truth, found) if listed[truth] is not None else None)
        names.append(found[0] if len(found) == 1 else None)
        detail = {"labelled": truth, "named": found, "words": [word for _, word in mentions[caption]]}
        details.append(json.dumps(detail, ensure_ascii=False))
    return spoken.select(
        "image_id",
        "caption",
        pl.Series("detail", details, dtype=pl.String),
        pl.col(attribute).alias("truth"),
        pl.Series("outcome", outcomes, dtype=pl.String),
        pl.Series("names", names, dtype=pl.String),
        (1 / pl.len().over("image_id")).alias("weight"),
    )


def weight_by(rows: pl.DataFrame, column: str) -> dict[str, float]:
    """The summed weight of each value of a column; exactly rounded, so that no order of rows changes a digit."""
    parts = rows.partition_by(column, as_dict=True)
    return {str(value): math.fsum(part["weight"]) for (value,), part in parts.items()}


def _outcome(truth: str, named: list[str]) -> str:
    if not named:
        return "neutral"
    if len(named) > 1:
        return "both"
    return "right" if named[0] == truth else "wrong"


def _measure(
    findings: Findings,
    speaker: str,
    group: str | None,
    outcomes: pl.DataFrame,
    words: Lexicon,
    listed: dict[str, str | None],
) -> None:
    """The rows of one group, or of all images where `group` is None."""
    judged = outcomes.filter(pl.col("outcome").is_not_null())
    mine = judged if group is None else judged.filter(pl.col("truth") == group)
    images = outcomes if group is None else outcomes.filter(pl.col("truth") == group)
    n = mine["image_id"].n_unique()
    sums = weight_by(mine, "outcome")
    if group is not None and listed[group] is None:
        reason: str | None = f"the lexicon '{words.name}' has no words for the group '{group}'"
        n = images["image_id"].n_unique()
    else:
        reason = (
            None if n else "no captioned image of this group" if group else "no captioned image with a label"
        )
    for outcome in OUTCOMES:
        findings.add(
            outcome,
            system=speaker,
            group=group,
            value=None if reason else sums.get(outcome, 0.0) / n,
            n=n,
            n_unit="image",
            reason=reason,
            evidence=mine.filter(pl.col("outcome") == outcome),
        )
    wrong, one = sums.get("wrong", 0.0), sums.get("wrong", 0.0) + sums.get("right", 0.0)
    decided = mine.filter(pl.col("outcome").is_in(["right", "wrong"]))
    findings.add(
        "error",
        system=speaker,
        group=group,
        value=None if reason or not one else wrong / one,
        n=decided.height,
        n_unit="caption",
        reason=reason or (None if one else "no caption names exactly one group"),
        evidence=decided.filter(pl.col("outcome") == "wrong"),
    )
    _measure_ratio(findings, speaker, group, judged, [name for name in listed if listed[name]], reason)


def _measure_ratio(
    findings: Findings,
    speaker: str,
    group: str | None,
    judged: pl.DataFrame,
    groups: Sequence[str],
    reason: str | None,
) -> None:
    """Captions that name one group for each that names another; without a group, the rarest to the most common.

    Which group is rare is decided by the images' labels, so that every speaker is measured the same way round.
    """
    images = judged.unique("image_id").group_by("truth").len()
    shown = dict(images.iter_rows())
    ranked = sorted(groups, key=lambda name: (shown.get(name, 0), name))
    if group is not None:
        top, bottom = [group], [other for other in groups if other != group]
    else:
        top, bottom = ranked[:1], ranked[-1:]
    named = judged.filter(pl.col("names").is_in(top + bottom))
    weights = weight_by(named, "names")
    above, below = (sum(weights.get(name, 0.0) for name in side) for side in (top, bottom))
    truth_above, truth_below = (sum(shown.get(name, 0) for name in side) for side in (top, bottom))
    if reason is None and len(groups) < 2:
        reason = "the study has one group only that the lexicon names"
    if reason is None and not below:
        reason = f"no caption names only {' or '.join(bottom)}"
    findings.add(
        "ratio",
        system=speaker,
        group=group,
        value=None if reason else above / below,
        n=named.height,
        n_unit="caption",
        reason=reason,
        ideal=truth_above / truth_below if truth_below else None,
        evidence=named,
    )
